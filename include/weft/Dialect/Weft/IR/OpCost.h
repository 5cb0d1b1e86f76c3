//===- OpCost.h - what ops cost, as functions of the batch ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_OPCOST_H
#define WEFT_DIALECT_WEFT_IR_OPCOST_H

#include "mlir/IR/Operation.h"

namespace weft {

/// constant + perSample * batch.
struct BatchPolynomial {
  double constant = 0, perSample = 0;
  BatchPolynomial &operator+=(const BatchPolynomial &other) {
    constant += other.constant;
    perSample += other.perSample;
    return *this;
  }
  double at(double batch) const { return constant + perSample * batch; }
};

/// The cost of an op on the whole (global) tensors.
struct OpCost {
  /// Floating-point operations; a multiply-add counts two.
  BatchPolynomial flops;
  /// Bytes read and written, each operand and result once.
  BatchPolynomial bytes;
  /// Operations of the model's matmuls, from which model FLOPs utilization is computed. Recomputed
  /// operations count in `flops` alone.
  BatchPolynomial modelFlops = {};
};

/// Returns `scale` times the number of elements of `shape`, linear in the batch if a dimension is
/// unknown.
BatchPolynomial elementCount(llvm::ArrayRef<int64_t> shape, double scale = 1);

/// Returns the bytes of all operands and results, and `flopsPerElement` for each element of the
/// largest of them.
OpCost elementwiseCost(mlir::Operation *op, double flopsPerElement);
/// Returns the bytes of all operands and results, and `flopsPerPoint` for each point of the op's
/// iteration space, which all factors span.
OpCost iterationCost(mlir::Operation *op, double flopsPerPoint);
/// Returns the cost of `op`: that of CostOpInterface, or of ops that state none, one operation for
/// each element.
OpCost costOf(mlir::Operation *op);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_OPCOST_H
