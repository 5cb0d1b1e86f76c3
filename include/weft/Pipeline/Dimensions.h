//===- Dimensions.h - what the dimensions of values mean ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Variables name their dimensions (batch, ffn, vocab, …), other values do not. But an op's factor
// is one index, whichever operands and results carry it, and a call passes values on as they are.
// So dimensions fall into classes, and a class has the names of the variables' dimensions in it:
//
//   read @up ["ffn", "hidden"]        %h = contract "bsk,nk->bsn"(%x, %up)
//                                     n is ffn, and so is the last dimension of %h
//
// Plan changes nothing of that: a reshard's two sides are one value. Where an op merges or splits
// dimensions, as a reshape does, the classes of its two sides stay apart.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_DIMENSIONS_H
#define WEFT_PIPELINE_DIMENSIONS_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace weft {

/// Holds for the module as it was.
class Dimensions {
public:
  explicit Dimensions(mlir::ModuleOp module);

  /// What variables call the factor with that number in `rule`, the rule of `op`.
  llvm::SmallVector<llvm::StringRef> namesOf(ShardableOpInterface op, const FactorRule &rule,
                                             unsigned factor);

  /// What variables call dimension `dim` of `value`, the first of several names; empty for none.
  llvm::StringRef nameOf(mlir::Value value, int64_t dim);

  /// The number of the class that dimension `dim` of `value`, or of a variable, belongs to.
  uint32_t classOf(mlir::Value value, int64_t dim) { return classOf(numberOf(value, dim)); }
  uint32_t classOf(VariableOp variable, int64_t dim) {
    return classOf(numberOf(variable.getOperation(), dim));
  }

private:
  uint32_t numberOf(const void *owner, int64_t dim);
  uint32_t numberOf(mlir::Value value, int64_t dim) {
    return numberOf(value.getAsOpaquePointer(), dim);
  }
  uint32_t classOf(uint32_t number);
  void join(uint32_t a, uint32_t b);
  void join(mlir::Value a, mlir::Value b);
  void joinVariable(VariableOp variable, mlir::Value value);
  void joinFactors(ShardableOpInterface op);
  void joinCall(CallOp call, mlir::func::FuncOp callee);

  mlir::SymbolTable symbols;
  llvm::DenseMap<std::pair<const void *, int64_t>, uint32_t> numbers;
  /// Union-find: a member of the same class that stands nearer to the one that stands for it.
  std::vector<uint32_t> parents;
  /// By the member that stands for a class.
  llvm::DenseMap<uint32_t, llvm::SmallVector<llvm::StringRef, 2>> names;
};

} // namespace weft

#endif // WEFT_PIPELINE_DIMENSIONS_H
