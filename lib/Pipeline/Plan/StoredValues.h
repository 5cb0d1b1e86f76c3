//===- StoredValues.h - values that have the padding of variables ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some variables are padded along a dimension between steps. A value is stored if it has that
// padding too. A parameter is, from where it is read to the op that multiplies it by samples, and a
// gradient, from the op that sums it over samples to the update:
//
//   read @w ──▶ cast ──▶ (call) ──▶ extract ──▶ contract "bsk,nk->bsn"      forward
//   contract "bsn,bsk->nk" ──▶ pad ──▶ (return) ──▶ update ──▶ assign @w    backward
//
// So casts, sums over micro-batches, norms of gradients and updates work on shards of equal
// lengths, and all-gathers and reduce-scatters move such shards. Ops on samples never see padding.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_STOREDVALUES_H
#define WEFT_LIB_PIPELINE_PLAN_STOREDVALUES_H

#include "weft/Pipeline/Dimensions.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

namespace weft {

/// A class of dimensions along which variables are to be padded.
struct StoredClass {
  uint32_t dimension = 0;
  /// The size without padding, and with it.
  int64_t size = 0, padded = 0;
  llvm::SmallSetVector<mlir::Operation *, 8> variables;
};

/// The classes of the dimensions of inputs, of samples and tokens. The dimensions must outlive this
/// object.
class SampleClasses {
public:
  SampleClasses(mlir::ModuleOp module, Dimensions &dimensions);

  /// Returns true if the value has a dimension of samples or tokens.
  bool dependsOnSamples(mlir::Value value) const;
  /// Returns true if an operand or a result does.
  bool dependsOnSamples(mlir::Operation *op) const;

private:
  Dimensions &dimensions;
  llvm::DenseSet<uint32_t> classes;
};

/// The stored values of a module, which must not change afterwards.
class StoredValues {
public:
  /// All arguments must outlive this object.
  StoredValues(mlir::ModuleOp module, Dimensions &dimensions, const StoredClass &stored);

  /// Returns the dimensions of a value or variable that are of the class.
  llvm::SmallVector<int64_t> dimsOf(mlir::Value value);
  llvm::SmallVector<int64_t> dimsOf(VariableOp variable);
  /// Returns true if the value has the padding.
  bool isStored(mlir::Value value) const { return storedValues.contains(value); }
  /// Returns true if `op` computes its results with the padding, from operands with the padding.
  bool makesStored(mlir::Operation *op);
  /// Returns true if the user of the operand needs it with the padding.
  bool needsStored(mlir::OpOperand &operand);

private:
  bool hasClass(mlir::Value value) { return !dimsOf(value).empty(); }
  bool mayMakeStored(mlir::Operation *op);

  bool spread();
  bool spread(CallOp call);
  bool add(mlir::Value value);
  void assumeWanted();
  bool refuteWanted();
  bool isWanted(mlir::Value value);
  bool wants(mlir::OpOperand &use);
  bool isStoredOrWanted(mlir::Value value) const {
    return storedValues.contains(value) || wanted.contains(value);
  }

  mlir::ModuleOp module;
  Dimensions &dimensions;
  const StoredClass &stored;
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<CallOp>> callers;
  SampleClasses samples;
  llvm::DenseMap<mlir::Operation *, bool> mayMake;
  llvm::DenseSet<mlir::Value> storedValues;
  llvm::SetVector<mlir::Value> wanted;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_STOREDVALUES_H
