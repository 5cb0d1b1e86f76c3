//===- RunDifferences.h - differences between two runs -------------------===//
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

/// Two programs in float64 that mean the same differ by less than this in one step from the same
/// weights, relative to the norm of a tensor.
inline constexpr double kTolerance = 1e-10;

/// Relative distance of `got` from `expected`, by 2-norms. A tensor of a norm below 1e-10 of
/// `scale` holds nothing but rounding, as the gradient of a key's bias does, which is zero in
/// truth: it is measured against `scale`. Infinite where lengths differ or something is not a
/// number.
double distance(const std::vector<double> &got, const std::vector<double> &expected, double scale);

/// The 2-norm over those of `tensors` that have one of these names.
double normOf(const Tensors &tensors, const std::vector<std::string> &names);

/// The differences between the values of one kind, such as losses or gradients.
struct ClassDifference {
  std::string name;
  /// Values that are further apart than this differ.
  double tolerance = kTolerance;
  /// True if these values depend on one step alone, and not on the steps before it.
  bool isOfStep = true;
  size_t compared = 0, differing = 0;
  double greatest = 0;
  /// The first value that differs, in the order of steps, and the step that computed it; empty
  /// where none differs.
  std::string first = {};
  int64_t step = 0;
};

/// Collects the differences between runs, by kinds of values. For one thread.
class RunComparison {
public:
  /// `parameters` are those of the model, in its order.
  explicit RunComparison(std::vector<std::string> parameters);

  /// Compares all values of two runs of one step from the same weights, up to kTolerance.
  void compareStep(const TrainingRun &got, const TrainingRun &expected);

  /// Compares two runs of one program to the same step, where the second begins later, with the
  /// weights that the first had then. The steps of both must agree bit for bit.
  void compareResumed(const TrainingRun &unbroken, const TrainingRun &resumed);

  /// Returns true if a value differs that one step computed.
  bool stepDiffers() const;

  /// The kinds of values that were compared, in the order in which a step computes them, and last
  /// those that no step computes.
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
