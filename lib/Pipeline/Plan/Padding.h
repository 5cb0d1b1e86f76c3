//===- Padding.h - zeros in padding ---------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After pad-dimensions, elements beyond the end of a dimension are either known to be zero, or are
// any finite numbers. Parameters and optimizer states are zero there. Each op tells which of its
// results are zero there if its operands are (isNothingBeyond):
//
//   %h = contract "bsk,nk->bsn"(%x, %up)    n padded: zero where %up is
//   %g = map … silu(%h)                     zero where %h is
//   %y = contract "bsn,kn->bsk"(%g, %down)  nothing is added from where %g, or %down, is zero
//
// A fault is a place where padding that is not known to be zero would be added to a sum, or stored
// in a variable.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_PADDING_H
#define WEFT_LIB_PIPELINE_PLAN_PADDING_H

#include "weft/Pipeline/Dimensions.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace weft {

/// Padding that has to be zero, but is not known to be.
struct PaddingFault {
  mlir::Operation *op = nullptr;
  /// The class of the padded dimension.
  uint32_t dimension = 0;
  /// The value that has to be zero beyond the end. Null if result number `result` of `op` depends
  /// on elements beyond the end of `factor`.
  mlir::Value value;
  unsigned factor = 0, result = 0;
};

using MaskedDims = llvm::DenseSet<std::pair<mlir::Value, int64_t>>;

/// The contents of the padding of a module, which must not change afterwards.
class Padding {
public:
  /// `masked` are the values, with their dimensions, that masks set to zero beyond the end.
  Padding(mlir::ModuleOp module, const MaskedDims &masked);

  /// Returns true if `value` has dimensions of class `dimension` and is known to be zero beyond
  /// their end.
  bool isZero(mlir::Value value, uint32_t dimension) { return zeros.contains({value, dimension}); }
  /// Returns the size of a padded dimension without its padding.
  int64_t endOf(uint32_t dimension) { return ends.at(dimension); }
  /// Returns the dimensions of `value` of class `dimension`.
  llvm::SmallVector<int64_t> dimsOf(mlir::Value value, uint32_t dimension);
  /// Returns the factors of a result of `op` of class `dimension`.
  llvm::SmallVector<unsigned> factorsOf(ShardableOpInterface op, mlir::Value result,
                                        uint32_t dimension);
  /// Returns the operands of `op` that have the factor or, for a permuted factor, its partner.
  llvm::SmallVector<unsigned> operandsWith(ShardableOpInterface op, unsigned factor);

  /// Returns the first fault, in callers before their callees, or nothing.
  std::optional<PaddingFault> findFault();

private:
  void assumeZeros();
  bool refute();
  bool refute(mlir::Value value, uint32_t dimension);
  bool stays(mlir::Value value, uint32_t dimension);
  bool staysInResult(ShardableOpInterface op, mlir::Value result, uint32_t dimension);
  bool staysInArgument(mlir::BlockArgument argument, uint32_t dimension);
  llvm::SmallVector<unsigned> zerosOf(ShardableOpInterface op, unsigned factor, uint32_t dimension);
  std::optional<PaddingFault> findFault(mlir::Operation *op);
  std::optional<PaddingFault> findFault(ShardableOpInterface op);

  mlir::ModuleOp module;
  const MaskedDims &masked;
  mlir::SymbolTable symbols;
  Dimensions dimensions;
  /// The sizes without padding, by the classes of padded dimensions.
  llvm::DenseMap<uint32_t, int64_t> ends;
  /// Values with a padded dimension, in order.
  std::vector<std::pair<mlir::Value, uint32_t>> padded;
  llvm::DenseSet<std::pair<mlir::Value, uint32_t>> zeros;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<CallOp>> callers;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_PADDING_H
