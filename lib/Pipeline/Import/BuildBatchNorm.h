//===- BuildBatchNorm.h - norms of channels over samples ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A batch norm subtracts each channel's mean, divides by its standard deviation, scales and shifts.
// While a model is trained, mean and variance are those of a group of samples that the model or
// recipe names: all of the global batch, or ghost batches of n neighbours. It is built of sums and
// maps, so its derivative goes through the statistics, and a batch that is cut has its sums joined
// over ranks like any other. The variance is the mean of squared distances from the mean, which
// are computed from it: nothing cancels.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_BUILDBATCHNORM_H
#define WEFT_LIB_PIPELINE_IMPORT_BUILDBATCHNORM_H

#include "mlir/IR/Builders.h"

namespace weft {

/// What belongs to the channels of a batch norm, each a tensor [channels].
struct BatchNormParameters {
  mlir::Value scale, bias;
  /// Of the samples so far: what an evaluation takes, and what training changes.
  mlir::Value runningMean, runningVariance;
};

struct BatchNormSpec {
  /// Samples in the global batch.
  int64_t batch = 0;
  /// Neighbouring samples that share statistics; 0 for all.
  int64_t group = 0;
  double epsilon = 1e-5;
  /// How much of the running statistics a step keeps, from 0 to 1.
  double momentum = 0.9;

  int64_t samples() const { return group == 0 ? batch : group; }
};

struct BatchNorm {
  mlir::Value output;
  /// What the running statistics become: means over all groups, the variance without bias (divided
  /// by one less than the number of elements).
  mlir::Value runningMean, runningVariance;
};

/// The norm of `input`, [sample, channel, place…], by its own statistics.
/// REQUIRES: the group divides the batch, and a channel has at least two elements in it.
BatchNorm buildBatchNorm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                         const BatchNormParameters &parameters, const BatchNormSpec &spec);

/// The norm of `input` by the running statistics.
mlir::Value buildBatchNormOfRunning(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                                    const BatchNormParameters &parameters, double epsilon);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_BUILDBATCHNORM_H
