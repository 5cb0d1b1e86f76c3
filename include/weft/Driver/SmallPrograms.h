//===- SmallPrograms.h - the programs that weft verify compares ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_SMALLPROGRAMS_H
#define WEFT_DRIVER_SMALLPROGRAMS_H

#include "weft/Driver/CompileOptions.h"
#include "weft/Driver/Descriptions.h"

#include "weft/Verify/ObserveValues.h"
#include "weft/Verify/Shrink.h"

#include "weft-rt/Program.h"

#include <map>
#include <string>
#include <vector>

namespace weft {

/// The sharding of a model of full size.
struct OriginalPlan {
  /// The module with its shardings and collectives, before it is cut into shards.
  std::string text;
  /// The names of the ops that backward recomputes.
  std::vector<std::string> recomputed;
  /// The sizes of dimensions that are padded in ops, by name; only for devices, where no entry of
  /// the plan may tell them.
  std::map<std::string, int64_t> paddedSizes;
  /// The mesh; the small program has parts of other sizes in the same places.
  MeshParts mesh;
  /// The number of collectives and transfers of each kind in the code of one rank of each stage.
  std::map<std::string, int64_t> collectives;
};

/// Plans the model of `descriptions` without compiling it; the search leaves `reserve` bytes of a
/// device's memory unused. Prints errors of the compiler.
llvm::Expected<OriginalPlan> planOriginal(const CompileOptions &options,
                                          const Descriptions &descriptions, int64_t reserve);

/// A request for a program of the small model. It owns nothing.
struct SmallProgramRequest {
  const verify::Shrunk *shrunk = nullptr;
  /// The descriptions of the original model; a graph belongs to both models.
  const Descriptions *original = nullptr;
  /// The plan to follow; null for one rank.
  const OriginalPlan *plan = nullptr;
  /// The names of the ops that backward recomputes as in the original: whether an op is cheap
  /// depends on sizes and precision.
  llvm::ArrayRef<std::string> recomputed;
  /// True if one rank takes the batch in the plan's micro-batches, false if at once.
  bool accumulates = false;
  /// A mistake to plant in the program of several ranks.
  std::optional<MutateCollectivePassOptions> mutation;
  /// True if the program writes every value of a step.
  bool observes = false;
};

struct SmallProgram {
  std::string path;
  rt::Programs programs;
  std::map<std::string, int64_t> collectives;
  /// The values that the program writes, if the request asks for them, in the order of the step.
  std::vector<verify::ObservedValue> values;
};

/// Compiles the small model to the executable `path`. Prints errors of the compiler.
llvm::Expected<SmallProgram> compileSmall(const SmallProgramRequest &request,
                                          const std::string &path);

} // namespace weft

#endif // WEFT_DRIVER_SMALLPROGRAMS_H
