//===- ValuePlaces.h - where the values of a function go ------------------===//
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

/// Tells the values of functions apart by what is done with them. A layer is called many times,
/// each time with other values: those go to the same arguments, mostly through simple ops, of one
/// result and at most one tensor as operand, as casts are.
class ValuePlaces {
public:
  /// `symbols` are those of the module, and must outlive this.
  explicit ValuePlaces(const mlir::SymbolTable &symbols) : symbols(symbols) {}

  void add(mlir::func::FuncOp function);

  /// Whether `op` is one of the functions', outside of all regions.
  bool holds(mlir::Operation *op) const { return numbers.contains(op); }

  static bool isSimple(mlir::Operation *op);

  /// All places that `value` goes to, as text. Equal for values that go to the same arguments of
  /// the same functions, to variables of the same type that have shardings already, or to equal
  /// simple ops whose results do.
  std::string of(mlir::Value value);

  /// Where `value` comes from, in the same sense.
  std::string sourceOf(mlir::Value value) const;

  /// Equal for simple ops that differ in operands and location alone.
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
