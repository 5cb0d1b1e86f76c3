//===- BuildBatchNorm.h - norms of channels over samples ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A batch norm subtracts each channel's mean, divides by its standard deviation, scales and shifts.
// In training, mean and variance are those of a group of samples that the model or recipe names:
// the global batch, or ghost batches of n neighbouring samples. The norm consists of sums and maps,
// so that its derivative includes the statistics, and ranks that share a batch reduce its sums like
// all others. The variance is the mean of squared distances from the mean, which avoids
// cancellation.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_IMPORT_BUILDBATCHNORM_H
#define WEFT_LIB_PIPELINE_IMPORT_BUILDBATCHNORM_H

#include "mlir/IR/Builders.h"

namespace weft {

/// The parameters and statistics of a batch norm, each a tensor [channels].
struct BatchNormParameters {
  mlir::Value scale, bias;
  /// Running statistics of all samples so far, which training updates and evaluation uses.
  mlir::Value runningMean, runningVariance;
};

struct BatchNormSpec {
  /// Samples in the global batch.
  int64_t batch = 0;
  /// Neighbouring samples that share statistics; 0 for all.
  int64_t group = 0;
  double epsilon = 1e-5;
  /// Weight of the old running statistics in the new ones, from 0 to 1.
  double momentum = 0.9;

  int64_t samples() const { return group == 0 ? batch : group; }
};

struct BatchNorm {
  mlir::Value output;
  /// The new running statistics: means over all groups, of unbiased variances (divided by one less
  /// than the number of elements).
  mlir::Value runningMean, runningVariance;
};

/// Normalizes `input`, [sample, channel, place…], by its own statistics.
/// REQUIRES: the group divides the batch, and a channel has at least two elements in a group.
BatchNorm buildBatchNorm(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                         const BatchNormParameters &parameters, const BatchNormSpec &spec);

/// Normalizes `input` by the running statistics.
mlir::Value buildBatchNormOfRunning(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value input,
                                    const BatchNormParameters &parameters, double epsilon);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_IMPORT_BUILDBATCHNORM_H
