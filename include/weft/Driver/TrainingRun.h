//===- TrainingRun.h - what a program computes in a few steps ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_TRAININGRUN_H
#define WEFT_DRIVER_TRAININGRUN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace weft {

struct Tensor {
  std::vector<int64_t> shape;
  /// The last dimension's neighbours beside each other.
  std::vector<double> values;
};

using Tensors = std::map<std::string, Tensor>;

/// What a run wrote.
struct TrainingRun {
  /// Where it ended because a loss or a gradient norm was not finite, what the program said of it.
  /// Then there is what it told of the steps before, and no tensors.
  std::string notFinite;
  /// The first of its steps; what follows is of this step and those behind it.
  int64_t firstStep = 0;
  /// One for each step: the loss, the norm of all gradients.
  std::vector<double> losses, norms;
  /// Tokens that were dropped, step by step, layer by layer.
  std::vector<double> dropped;
  /// The loss of a batch after the last step, if that was asked for.
  std::vector<double> validation;
  /// What was observed in the last step: gradients, by the names of their parameters, and
  /// whatever else the program shows.
  Tensors gradients;
  /// Parameters and states of the optimizer after the last step.
  Tensors weights;
};

struct RunRequest {
  /// An executable of float64.
  std::string program;
  /// As `writeMadeUpData` writes it.
  std::string data;
  bool readsTokens = true;
  /// Of initial weights and the order of the data.
  uint64_t seed = 0;
  /// The steps from `firstStep` to before `endStep`. Of the last, gradients are read.
  int64_t firstStep = 0, endStep = 1;
  /// Whether it looks at the loss of a batch after the last step.
  bool validates = false;
  /// Parameters and states of the optimizer as they are before `firstStep`, which a run has
  /// written; empty for what the program begins with.
  std::string load;
  /// For those after the last step.
  std::string save;
  /// For what else the run writes; files of the same names are overwritten.
  std::string folder;
};

/// Runs a program on threads of one process, which does not outlive this one. Fails where it does,
/// with what it said, but for losses that are not finite.
llvm::Expected<TrainingRun> runTraining(const RunRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_TRAININGRUN_H
