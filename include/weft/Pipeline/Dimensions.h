//===- Dimensions.h - classes of equal dimensions of values ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Variables name their dimensions (batch, ffn, vocab, …), other values do not. But a factor of an
// op is the same index in all operands and results that have it, and a call passes values on
// unchanged. So dimensions fall into classes, and a class has the names of the variables'
// dimensions in it:
//
//   read @up ["ffn", "hidden"]        %h = contract "bsk,nk->bsn"(%x, %up)
//                                     n is ffn, and so is the last dimension of %h
//
// The classes are the same before and after Plan, as the operand and the result of a reshard are
// one value. Where an op merges or splits dimensions, as a reshape does, its operand and its result
// have different classes. So have a dimension that variables are padded along between steps and the
// same without padding, after a weft.extract or before a weft.pad, but these have the same names.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_DIMENSIONS_H
#define WEFT_PIPELINE_DIMENSIONS_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/CallLinks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

/// The classes of the dimensions of all values of a module, which must not change afterwards.
class Dimensions {
public:
  explicit Dimensions(mlir::ModuleOp module);

  /// Returns the names that variables give the dimensions of factor number `factor` in `rule`, the
  /// rule of `op`. There are none for a dimension with the padding that variables alone have: what
  /// a plan says of many ops by these names is meant for dimensions without it.
  llvm::SmallVector<llvm::StringRef> namesOf(ShardableOpInterface op, const FactorRule &rule,
                                             unsigned factor);
  /// Returns the names with those of such dimensions: what a plan says of `op` by its own name is
  /// meant for them too, since other entries decide whether they have padding.
  llvm::SmallVector<llvm::StringRef> namesOfOne(ShardableOpInterface op, const FactorRule &rule,
                                                unsigned factor);

  /// Returns the first name that variables give the class of dimension `dim` of `value`; empty if
  /// there is none.
  llvm::StringRef nameOf(mlir::Value value, int64_t dim);

  /// Returns the number of the class of dimension `dim` of a value or a variable.
  uint32_t classOf(mlir::Value value, int64_t dim) {
    return classOf(numberOf(value) + uint32_t(dim));
  }
  uint32_t classOf(VariableOp variable, int64_t dim) {
    return classOf(numberOf(variable) + uint32_t(dim));
  }

private:
  llvm::SmallVector<llvm::StringRef> collectNames(ShardableOpInterface op, const FactorRule &rule,
                                                  unsigned factor, bool withPaddedAlone);
  /// Returns the number of the first dimension of a value or a variable; the others follow.
  uint32_t numberOf(const void *owner, mlir::RankedTensorType type);
  uint32_t numberOf(mlir::Value value) {
    return numberOf(value.getAsOpaquePointer(),
                    mlir::cast<mlir::RankedTensorType>(value.getType()));
  }
  uint32_t numberOf(VariableOp variable) {
    return numberOf(variable.getOperation(), variable.getTensorType());
  }
  uint32_t classOf(uint32_t number);
  void join(uint32_t a, uint32_t b);
  void join(mlir::Value a, mlir::Value b);
  void joinVariable(VariableOp variable, mlir::Value value);
  void joinFactors(ShardableOpInterface op);
  void nameWithoutPadding(mlir::ModuleOp module);

  mlir::SymbolTable symbols;
  llvm::DenseMap<const void *, uint32_t> numbers;
  CallLinks calls;
  /// Union-find: the parent of each dimension, itself for the root of a class.
  std::vector<uint32_t> parents;
  /// The roots of classes with the padding that variables alone have.
  llvm::DenseSet<uint32_t> paddedAlone;
  /// The names of each class, by its root.
  llvm::DenseMap<uint32_t, llvm::SmallVector<llvm::StringRef, 2>> names;
};

} // namespace weft

#endif // WEFT_PIPELINE_DIMENSIONS_H
