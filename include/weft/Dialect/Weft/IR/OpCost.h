//===- OpCost.h - what ops cost, as functions of the batch ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_OPCOST_H
#define WEFT_DIALECT_WEFT_IR_OPCOST_H

#include "mlir/IR/Operation.h"

#include <optional>

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
  /// Bytes read and written, each value once, even if it is an operand twice.
  BatchPolynomial bytes;
  /// Operations of the model's matmuls, from which model FLOPs utilization is computed. Recomputed
  /// operations count in `flops` alone.
  BatchPolynomial modelFlops = {};
  /// The factors of the op's rule whose sizes decide how fast a device's library computes it: of
  /// attention the keys and the features of a head. None for other ops.
  struct RateFactors {
    unsigned positions, features;
    /// No library computes causal attention if ranks share these, in an order that balances their
    /// work, and each has all positions: its chunks then see keys from all over.
    std::optional<unsigned> queries = std::nullopt;
  };
  std::optional<RateFactors> rateFactors = std::nullopt;
};

/// Returns `scale` times the number of elements of `shape`, linear in the batch if a dimension is
/// unknown.
BatchPolynomial elementCount(llvm::ArrayRef<int64_t> shape, double scale = 1);

/// Returns the bytes of all distinct operands and results, and `flopsPerElement` for each element
/// of the largest of them.
OpCost elementwiseCost(mlir::Operation *op, double flopsPerElement);
/// Returns the bytes of all distinct operands and results, and `flopsPerPoint` for each point of
/// the op's iteration space, which all factors span.
OpCost iterationCost(mlir::Operation *op, double flopsPerPoint);
/// Returns the cost of `op`: that of CostOpInterface, or of ops that state none, one operation for
/// each element.
OpCost costOf(mlir::Operation *op);

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_OPCOST_H
