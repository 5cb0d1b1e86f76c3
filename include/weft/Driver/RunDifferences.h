//===- RunDifferences.h - how far two runs are apart ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_RUNDIFFERENCES_H
#define WEFT_DRIVER_RUNDIFFERENCES_H

#include "weft/Driver/TrainingRun.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <vector>

namespace weft {

/// What two programs of float64 that mean the same make in one step of the same weights differs by
/// less, relative to the norm of a tensor.
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
  /// What is further apart differs.
  double tolerance = kTolerance;
  /// Whether one step makes them by itself.
  bool isOfStep = true;
  size_t compared = 0, differing = 0;
  double greatest = 0;
  /// Of those that differ the first, in the order of steps, and the step that made it; empty where
  /// none does.
  std::string first = {};
  int64_t step = 0;
};

/// Collects how far runs are apart, by kinds of things. For one thread.
class RunComparison {
public:
  /// `parameters` are those of the model, in its order.
  explicit RunComparison(std::vector<std::string> parameters);

  /// Of two runs of one step, which began with the same weights: everything, up to kTolerance.
  void compareStep(const TrainingRun &got, const TrainingRun &expected);

  /// Of two runs of one program to the same step, the second of which begins later, with what the
  /// first had then: what both did. It must be the same bit for bit.
  void compareResumed(const TrainingRun &unbroken, const TrainingRun &resumed);

  /// Whether something differs that a step has made.
  bool stepDiffers() const;

  /// By kinds that there are, in the order in which a step makes them, then those that no step
  /// does.
  std::vector<ClassDifference> classes() const;

private:
  enum Kind { Loss, Dropped, Gradients, Norm, Weights, States, Resumed, Validation };

  void note(Kind kind, const std::string &name, int64_t step, double apart);
  void compareSeries(Kind kind, const std::string &name, int64_t step, llvm::ArrayRef<double> got,
                     llvm::ArrayRef<double> expected);
  void compareTensors(Kind kind, int64_t step, const Tensors &got, const Tensors &expected,
                      const std::vector<std::string> &names);

  std::vector<std::string> parameters, gradients;
  std::vector<ClassDifference> found;
};

} // namespace weft

#endif // WEFT_DRIVER_RUNDIFFERENCES_H
