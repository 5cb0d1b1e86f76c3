//===- RunDifferences.h - how far two runs are apart ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_TOOLS_WEFT_RUNDIFFERENCES_H
#define WEFT_TOOLS_WEFT_RUNDIFFERENCES_H

#include "TrainingRun.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// Two programs of float64 that mean the same differ by less, relative to the norm of a tensor.
inline constexpr double kTolerance = 1e-10;

/// Relative distance of `got` from `expected`, by 2-norms. A tensor of a norm below 1e-10 of
/// `scale` holds nothing but rounding, as the gradient of a key's bias does, which is zero in
/// truth: it is measured against `scale`. Infinite where lengths differ or something is not a
/// number.
double distance(const std::vector<double> &got, const std::vector<double> &expected, double scale);

/// The 2-norm over those of `tensors` that have one of these names.
double normOf(const Tensors &tensors, const std::vector<std::string> &names);

/// Losses, or gradients, or another kind of things that were compared.
struct ClassDifference {
  std::string name;
  size_t compared = 0, differing = 0;
  double greatest = 0;
  /// The first that differs, in the order of a step, and the number of the step that made it;
  /// empty where none does.
  std::string first = {};
  double firstDistance = 0;
  int64_t step = 0;
};

/// A pair of runs of one program each, of which gradients of the first and the last step are known.
struct RunPair {
  TrainingRun first, last;
};

/// Compares everything, in the order in which a step makes it. `parameters` are those of the
/// program, in the order of the model.
std::vector<ClassDifference> compareRuns(const RunPair &got, const RunPair &expected,
                                         const std::vector<std::string> &parameters);

} // namespace weft

#endif // WEFT_TOOLS_WEFT_RUNDIFFERENCES_H
