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
#include "llvm/ADT/StringMap.h"

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

  /// The function must stay as it is while this object is asked.
  void add(mlir::func::FuncOp function);

  /// Returns true if `op` stands directly in the body of one of the functions.
  bool holds(mlir::Operation *op) const { return numbers.contains(op); }

  static bool isSimple(mlir::Operation *op);

  /// Returns a number for all places that `value` goes to. It is equal for values that go to the
  /// same arguments of the same functions, to variables of the same type that have shardings
  /// already, or to equal simple ops whose results do. Functions that were added and only pass an
  /// argument on to calls do not count.
  uint32_t of(mlir::Value value);

  /// Returns the place that `value` comes from, in the same sense.
  std::string sourceOf(mlir::Value value) const;

  /// Returns a number that is equal for simple ops which differ only in operands and location.
  uint32_t kindOf(mlir::Operation *op);

  /// The uses that were followed so far: each of simple ops at most once, whatever was asked.
  size_t getNumFollowed() const { return followed; }

private:
  std::string placeOf(mlir::OpOperand &use);
  std::string placesInside(mlir::BlockArgument argument);
  std::string nameOf(mlir::Operation *op) const;

  const mlir::SymbolTable &symbols;
  /// A number for each op of the functions.
  llvm::DenseMap<mlir::Operation *, size_t> numbers;
  /// By hash, one op of each kind and the kind's number.
  std::map<size_t, llvm::SmallVector<std::pair<mlir::Operation *, uint32_t>, 1>> kinds;
  uint32_t numKinds = 0;
  /// The number of each list of places, and of the values that were asked for.
  llvm::StringMap<uint32_t> placesByText;
  /// The lists by their numbers.
  std::vector<llvm::StringRef> texts;
  llvm::DenseMap<mlir::Value, uint32_t> known;
  size_t followed = 0;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_VALUEPLACES_H
