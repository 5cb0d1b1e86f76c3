//===- CompileOptions.h - the options of weft compile ---------------------===//
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

/// The options of `weft compile`.
struct CompileOptions {
  /// A description of a model, or with `startAfter` a module.
  std::string input;
  std::string machine, recipe;
  /// Nodes of the machine; 0 for the number in its file.
  int64_t nodes = 0;
  std::vector<std::string> pins;
  /// The mesh of `--mesh`, whose axes the search may use freely; empty without the option.
  std::string mesh;
  /// A plan's file; empty if `pins` or `mesh` are given, or nothing.
  std::string plan;
  /// A file with the actions of pipeline stages; empty for the plan's own schedule.
  std::string schedule;
  TargetKind target = TargetKind::Host;
  /// Computes epilogues of matmuls in kernels of their own.
  bool separateEpilogues = false;
  /// Widens FP8 operands of matmuls to the recipe's precision.
  bool wideMatmuls = false;
  /// Processor to compile for, by LLVM's name.
  std::string cpu = "native";
  std::optional<Phase> startAfter, stopAfter;
  /// Folder that receives the module after every pass; empty for none.
  std::string dumpFolder;
  /// The sanitizer that the program is built with.
  Sanitizer sanitize = Sanitizer::None;
  /// The runtime library to link; empty for the one of this build.
  std::string runtimeLibrary;
  bool keepObject = false;
  /// The folder of the cache of kernels' code; empty for no cache.
  std::string cacheFolder = defaultCacheFolder();
  ImportOptions import;
  bool verbose = false;
  /// The command of `weft` that error messages begin with.
  std::string command = "compile";
  /// For `weft plan`: these numbers replace the recipe's; 0 keeps the recipe's.
  int64_t sequenceLength = 0, globalBatch = 0;
  /// True if the program may need more memory than a device has, because it will not run.
  bool isPlanning = false;
  /// The file of the result; empty for standard output, to which only a module is written.
  std::string output;
  /// A mistake to plant in a reduction between ranks.
  std::optional<MutateCollectivePassOptions> mutation;
  /// A mistake to plant in the sharding rule of an op.
  std::optional<RuleMutation> ruleMutation;

  /// Returns true if the result is an executable, false if it is a module.
  bool makesExecutable() const { return !stopAfter || *stopAfter == Phase::Emit; }
};

/// Declare the options for the machine and the recipe, for the plan, and for planted mistakes.
/// Their values go to `options`.
void declareDescriptionOptions(CommandLine &line, CompileOptions &options);
void declarePlanOptions(CommandLine &line, CompileOptions &options);
void declareMutationOptions(CommandLine &line, CompileOptions &options);

/// Returns the option `--target`.
Option targetOption(TargetKind &target);
/// Declares `--target` and `--wide-matmuls`, on which the times of ops depend.
void declareTargetOptions(CommandLine &line, CompileOptions &options);

/// Declares the option `--cache`.
void declareCacheOption(CommandLine &line, CompileOptions &options);

/// Fails if an option of `declareDescriptionOptions` or `declarePlanOptions` is missing or two
/// exclude each other.
llvm::Error checkDescriptionOptions(const CompileOptions &options);

/// Declares the options of commands that only plan: machine, recipe or the numbers that replace it,
/// target, plan, and -v.
void declarePlanningOptions(CommandLine &line, CompileOptions &options);
llvm::Error checkPlanningOptions(const CompileOptions &options);

/// Declares the options of `weft compile`, which go to `options`.
CommandLine declareCompileOptions(CompileOptions &options);

/// Checks all options against each other. REQUIRES: the command line has been parsed.
llvm::Error checkCompileOptions(const CompileOptions &options);

} // namespace weft

#endif // WEFT_DRIVER_COMPILEOPTIONS_H
