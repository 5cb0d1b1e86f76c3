//===- FunctionCosts.h - what functions cost, with what they call ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DIALECT_WEFT_IR_FUNCTIONCOSTS_H
#define WEFT_DIALECT_WEFT_IR_FUNCTIONCOSTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

#include <functional>

namespace weft {

/// Adds up costs over the ops of functions. A call costs what its function does, so that one counts
/// for each call, but is visited once. Not for two threads at once. REQUIRES: the module does not
/// change while it is used, and no function calls itself.
class FunctionCosts {
public:
  /// `ofOp` gives the cost of an op that is no call, in any unit.
  FunctionCosts(mlir::ModuleOp module, std::function<double(mlir::Operation *)> ofOp)
      : symbols(module), ofOp(std::move(ofOp)) {}

  double of(mlir::func::FuncOp function);
  /// Returns the cost of one op, which may be a call.
  double of(mlir::Operation *op);

private:
  mlir::SymbolTable symbols;
  std::function<double(mlir::Operation *)> ofOp;
  llvm::DenseMap<mlir::Operation *, double> known;
};

} // namespace weft

#endif // WEFT_DIALECT_WEFT_IR_FUNCTIONCOSTS_H
