//===- Padding.h - what padding holds -------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In a module that pad-dimensions has padded, elements beyond the end of a dimension are either
// known to be zero, or are some finite numbers. Parameters and optimizer states are zero there, and
// what follows from zeros the ops say themselves (isNothingBeyond):
//
//   %h = contract "bsk,nk->bsn"(%x, %up)    n padded: zero where %up is
//   %g = map … silu(%h)                     zero where %h is
//   %y = contract "bsn,kn->bsk"(%g, %down)  nothing is added from where %g, or %down, is zero
//
// A fault is a place where something else would be added to a sum, or be kept in a variable.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_PADDING_H
#define WEFT_LIB_PIPELINE_PLAN_PADDING_H

#include "weft/Pipeline/Dimensions.h"

#include "llvm/ADT/DenseSet.h"

#include <optional>

namespace weft {

/// Padding that is not as it has to be.
struct PaddingFault {
  mlir::Operation *op = nullptr;
  /// A class of dimensions.
  uint32_t dimension = 0;
  /// What has to be zero beyond the end; or null, and result number `result` of `op` takes in
  /// something from beyond the end of `factor`.
  mlir::Value value;
  unsigned factor = 0, result = 0;
};

using MaskedDims = llvm::DenseSet<std::pair<mlir::Value, int64_t>>;

/// Holds for the module as it was.
class Padding {
public:
  /// `masked` has the values and their dimensions that were made zero beyond the end.
  Padding(mlir::ModuleOp module, const MaskedDims &masked);

  /// Whether `value` is known to be zero beyond the end of `dimension`; false where it lacks that.
  bool isZero(mlir::Value value, uint32_t dimension) { return zeros.contains({value, dimension}); }
  /// Elements of a padded dimension that are none of its padding.
  int64_t endOf(uint32_t dimension) { return ends.at(dimension); }
  /// The dimensions of `value` that are of that class.
  llvm::SmallVector<int64_t> dimsOf(mlir::Value value, uint32_t dimension);
  /// The factors of a result of `op` that are of that class.
  llvm::SmallVector<unsigned> factorsOf(ShardableOpInterface op, mlir::Value result,
                                        uint32_t dimension);
  /// The operands of `op` that have the factor, or the partner of one that is a permutation.
  llvm::SmallVector<unsigned> operandsWith(ShardableOpInterface op, unsigned factor);

  /// The first fault, in functions that call others before those that they call.
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
  /// By class, of those that are padded.
  llvm::DenseMap<uint32_t, int64_t> ends;
  /// Values with a padded dimension, in order.
  std::vector<std::pair<mlir::Value, uint32_t>> padded;
  llvm::DenseSet<std::pair<mlir::Value, uint32_t>> zeros;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<CallOp>> callers;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_PADDING_H
