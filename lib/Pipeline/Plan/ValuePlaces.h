//===- ValuePlaces.h - where values of functions go -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_VALUEPLACES_H
#define WEFT_LIB_PIPELINE_PLAN_VALUEPLACES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"

#include <map>
#include <string>
#include <vector>

namespace weft {

/// Tells the values of functions apart by their uses. Each call of a layer has other values, but
/// they go to the same arguments, mostly through simple ops: ops with one result and at most one
/// tensor operand, such as casts.
class ValuePlaces {
public:
  /// `symbols` are those of the module, and must outlive this object.
  explicit ValuePlaces(const mlir::SymbolTable &symbols) : symbols(symbols) {}

  void add(mlir::func::FuncOp function);

  /// Returns true if `op` stands directly in the body of one of the functions.
  bool holds(mlir::Operation *op) const { return numbers.contains(op); }

  static bool isSimple(mlir::Operation *op);

  /// Returns all places that `value` goes to, as text. The texts are equal for values that go to
  /// the same arguments of the same functions, to variables of the same type that have shardings
  /// already, or to equal simple ops whose results do.
  std::string of(mlir::Value value);

  /// Returns the place that `value` comes from, in the same sense.
  std::string sourceOf(mlir::Value value) const;

  /// Returns a number that is equal for simple ops which differ only in operands and location.
  uint32_t kindOf(mlir::Operation *op);

private:
  std::string placeOf(mlir::OpOperand &use);
  std::string nameOf(mlir::Operation *op) const;

  const mlir::SymbolTable &symbols;
  /// A number for each op of the functions.
  llvm::DenseMap<mlir::Operation *, size_t> numbers;
  /// By hash, one op of each kind and the kind's number.
  std::map<size_t, llvm::SmallVector<std::pair<mlir::Operation *, uint32_t>, 1>> kinds;
  uint32_t numKinds = 0;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_VALUEPLACES_H
