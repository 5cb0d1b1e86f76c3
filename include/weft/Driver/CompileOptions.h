//===- CompileOptions.h - what the user asked the compiler for ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_COMPILEOPTIONS_H
#define WEFT_DRIVER_COMPILEOPTIONS_H

#include "weft/Driver/CommandLine.h"

#include "weft/Dialect/Weft/IR/RuleMutation.h"
#include "weft/Pipeline/Emit/Emit.h"
#include "weft/Pipeline/Import/Import.h"
#include "weft/Pipeline/Partition/Passes.h"
#include "weft/Pipeline/Phases.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// The options of `weft compile`, checked each by itself and against each other.
struct CompileOptions {
  /// A description of a model, or with `startAfter` a module.
  std::string input;
  std::string machine, recipe;
  /// Nodes of the machine; 0 for as many as its file says.
  int64_t nodes = 0;
  std::vector<std::string> pins;
  /// Axes of which nothing is pinned; empty without.
  std::string mesh;
  /// A plan's file; empty if `pins` or `mesh` say how to split.
  std::string plan;
  TargetKind target = TargetKind::Host;
  /// Leaves what is done to matmuls' results to kernels.
  bool separateEpilogues = false;
  /// Multiplies FP8 numbers in the recipe's precision.
  bool wideMatmuls = false;
  /// Processor to compile for, by LLVM's name.
  std::string cpu = "native";
  std::optional<Phase> startAfter, stopAfter;
  /// Folder that receives the module after every pass; empty for none.
  std::string dumpFolder;
  /// What watches the program while it runs.
  Sanitizer sanitize = Sanitizer::None;
  /// The runtime library to link; empty for the one that belongs to this compiler.
  std::string runtimeLibrary;
  bool keepObject = false;
  /// The folder that keeps code of kernels; empty for none.
  std::string cacheFolder = defaultCacheFolder();
  ImportOptions import;
  bool verbose = false;
  /// The command of `weft` that messages name.
  std::string command = "compile";
  /// Of `weft plan`, in place of the recipe's numbers; 0 for the recipe's.
  int64_t sequenceLength = 0, globalBatch = 0;
  /// Whether a program may need more memory than a device has, because nobody is to run it.
  bool isPlanning = false;
  /// Empty for standard output, which takes only a module.
  std::string output;
  /// A mistake to plant in a reduction between ranks.
  std::optional<MutateCollectivePassOptions> mutation;
  /// A mistake to plant in the sharding rule of an op.
  std::optional<RuleMutation> ruleMutation;

  /// Whether the result is an executable, and not a module.
  bool makesExecutable() const { return !stopAfter || *stopAfter == Phase::Emit; }
};

/// Declares the options that name the model, the machine and the recipe, those that say how to
/// split, and those that plant mistakes. They go to `options`.
void declareDescriptionOptions(CommandLine &line, CompileOptions &options);
void declarePlanOptions(CommandLine &line, CompileOptions &options);
void declareMutationOptions(CommandLine &line, CompileOptions &options);

/// `--target`.
Option targetOption(TargetKind &target);
/// That and what else says by what work is priced: the fastest plan depends on both.
void declareTargetOptions(CommandLine &line, CompileOptions &options);

/// `--cache`.
void declareCacheOption(CommandLine &line, CompileOptions &options);

/// Checks these options against each other.
llvm::Error checkDescriptionOptions(const CompileOptions &options);

/// Declares the options of commands that plan and make no program: the descriptions except the
/// model, the numbers that stand in for a recipe, the target, the plan, and -v.
void declarePlanningOptions(CommandLine &line, CompileOptions &options);
llvm::Error checkPlanningOptions(const CompileOptions &options);

/// Declares the options of `weft compile`, which go to `options`.
CommandLine declareCompileOptions(CompileOptions &options);

/// Checks all options against each other. REQUIRES: the command line has been parsed.
llvm::Error checkCompileOptions(const CompileOptions &options);

} // namespace weft

#endif // WEFT_DRIVER_COMPILEOPTIONS_H
