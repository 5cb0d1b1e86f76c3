//===- HomedValues.h - values of a step that have homes in plans ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Homes of a plan shard variables between steps. ZeRO also shards values that a step holds from
// beginning to end, so these have homes too:
//
//   NAME            a parameter as the model's ops read it: its rounded copy, if it has one
//   master/NAME     the parameter of full precision, if it has a rounded copy
//   gradient/NAME   the sum of a parameter's gradients over micro-batches
//   gradient/NAME/stage_2   the part of it that stage 2 adds up, if another has the parameter
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_HOMEDVALUES_H
#define WEFT_LIB_PIPELINE_PLAN_HOMEDVALUES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseSet.h"

namespace weft {

/// The rounded copies of parameters in all functions, before and after shardings are chosen. A
/// parameter has copies if ops read only these, apart from the ops of its update.
class WeightCopies {
public:
  explicit WeightCopies(mlir::ModuleOp module);

  /// Returns the copies of a variable, one in each function that computes one; none if it is no
  /// parameter or has no copies.
  llvm::ArrayRef<mlir::Value> of(VariableOp variable) const;

  /// Returns the name of a variable's home.
  std::string homeOf(VariableOp variable) const;

  /// Returns the constraints that hold copies.
  llvm::DenseSet<mlir::Operation *> constraints() const;

  /// Returns the result of the constraint that holds a copy, perhaps after a reshard, or null.
  static mlir::Value heldIn(mlir::Value copy);

private:
  void follow(mlir::Value value, VariableOp variable);

  struct Uses {
    llvm::SmallVector<mlir::Value, 2> copies;
    bool hasOthers = false;
  };
  llvm::DenseMap<mlir::Operation *, Uses> usesOf;
};

/// Returns the op that holds the weight which `value` is: the constraint of its copy, also if that
/// is transferred to another pipeline stage, or the read of a transferred one; null for others.
mlir::Operation *heldBehind(mlir::Value value);

/// Returns true if `use` passes a weight that heldBehind knows to a function that is called several
/// times with it, as that of a micro-batch is. The layout of the weight is that of the argument.
bool isHeldArgument(mlir::OpOperand &use);

/// Returns true if `use` is a held argument, or transfers one with the layout that it has.
bool keepsLayout(mlir::OpOperand &use);

/// The sum of a parameter's gradients, as an argument and a result of the function of a
/// micro-batch.
struct GradientSum {
  VariableOp variable;
  std::string home;
  mlir::func::FuncOp function;
  unsigned argument, result;
};

/// Returns the sums of all parameters, of each stage that has one; none without micro-batches.
llvm::SmallVector<GradientSum> findGradientSums(mlir::ModuleOp module);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_HOMEDVALUES_H
