//===- DimensionClasses.h - dimensions that run along together ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two dimensions are of one class if they carry one factor of an op, or if they are of the
// same value: before and after a reshard, in a call and in the layer that it calls. A sequence is
// one class from the tokens to the loss, forward and backward, as long as nothing merges it with
// another dimension.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PARTITION_DIMENSIONCLASSES_H
#define WEFT_LIB_PIPELINE_PARTITION_DIMENSIONCLASSES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace weft {

class DimensionClasses {
public:
  explicit DimensionClasses(mlir::ModuleOp module);

  /// The number of the class that dimension `dim` of `value` is in.
  unsigned of(mlir::Value value, int64_t dim);

private:
  void join(mlir::Value a, int64_t dim, mlir::Value b, int64_t otherDim);
  /// All dimensions of two values of one shape.
  void join(mlir::Value a, mlir::Value b);
  void joinFactors(ShardableOpInterface op);

  llvm::DenseMap<std::pair<mlir::Value, int64_t>, unsigned> numbers;
  llvm::EquivalenceClasses<unsigned> joined;
};

/// A value that carries `factor` of `op`, and the dimension that does; nothing if none does.
std::optional<std::pair<mlir::Value, int64_t>> findCarrier(mlir::Operation *op,
                                                           const FactorRule &rule, unsigned factor);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PARTITION_DIMENSIONCLASSES_H
