//===- TrainingRun.h - runs a program and reads its results --------------===//
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
  /// In row-major order.
  std::vector<double> values;
};

using Tensors = std::map<std::string, Tensor>;

/// The results that a run wrote.
struct TrainingRun {
  /// The message of the program if it ended because a number was not finite: a loss or a gradient
  /// norm, then there are results of the steps before, and no tensors; or a weight or an optimizer
  /// state after the last step, which the program does not save, then only `weights` is empty.
  std::string notFinite;
  /// The first step of the run; the results are of this step and of later ones.
  int64_t firstStep = 0;
  /// The loss and the norm of all gradients, one of each per step.
  std::vector<double> losses, norms;
  /// The numbers of dropped tokens, by step, then by layer.
  std::vector<double> dropped;
  /// The loss of a batch after the last step, if the request asked for it.
  std::vector<double> validation;
  /// The values observed in the last step: gradients, by the names of their parameters, and all
  /// other values that the program writes.
  Tensors gradients;
  /// Parameters and states of the optimizer after the last step.
  Tensors weights;
};

struct RunRequest {
  /// An executable of float64.
  std::string program;
  /// A file that `writeMadeUpData` wrote.
  std::string data;
  bool readsTokens = true;
  /// The seed of the initial weights and of the order of the data.
  uint64_t seed = 0;
  /// The steps [firstStep, endStep). The results have the gradients of the last one.
  int64_t firstStep = 0, endStep = 1;
  /// True if the run computes the loss of a batch after the last step.
  bool validates = false;
  /// A file of parameters and states of the optimizer before `firstStep`, which another run wrote;
  /// empty for the initial ones.
  std::string load;
  /// The file that receives the parameters and states after the last step; empty for none.
  std::string save;
  /// A folder for all other files of the run, which overwrites files of the same names.
  std::string folder;
};

/// Runs a program with its ranks as threads of one child process, which does not outlive this one.
/// Fails with the program's message if the program fails, but not if it stops because a number is
/// not finite.
llvm::Expected<TrainingRun> runTraining(const RunRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_TRAININGRUN_H
