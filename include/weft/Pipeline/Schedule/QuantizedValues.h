//===- QuantizedValues.h - what values were scaled by ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value is quantized if a `weft.quantize` gives it, or if it is nothing but such values moved: by
// reshapes, permutations, reshards and collectives that add nothing, into functions that are called
// and out of them. Modules may be of Plan, or of Partition and later.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_QUANTIZEDVALUES_H
#define WEFT_PIPELINE_SCHEDULE_QUANTIZEDVALUES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"

#include <optional>

namespace weft {

class QuantizedValues {
public:
  explicit QuantizedValues(mlir::ModuleOp module);

  /// The format of a value that is quantized by what is of float32; nothing for others, nor where
  /// it cannot be told what a value was scaled by.
  std::optional<Float8> formatOf(mlir::Value value);
  /// Whether anything that is quantized by what is of float32 is in `value`.
  bool isAnyQuantized(mlir::Value value) const;

  /// Notes that `amaxOf` will be asked of a quantized value.
  void bring(mlir::Value value);
  /// Gives functions the arguments and results that all this needs. Calls become others, and so do
  /// their results: whoever has kept one asks for it again.
  void materialize();
  /// What a value that was brought is scaled by, where it is.
  mlir::Value amaxOf(mlir::Value value) const;

private:
  /// An argument or a result of a function.
  using Port = std::pair<mlir::func::FuncOp, unsigned>;

  std::optional<Port> resultOf(mlir::Value value) const;
  std::optional<Port> argumentOf(mlir::Value value) const;
  void findCalls();
  std::optional<Float8> findFormat(mlir::Value source);

  mlir::ModuleOp module;
  mlir::SymbolTable symbols;
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<CallOp>> calls;
  /// What is known of values before calls become others.
  llvm::DenseMap<mlir::Value, std::optional<Float8>> formats;
  /// Of these the number of the argument or result that says what they are scaled by.
  llvm::MapVector<Port, unsigned> arguments, results;
};

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_QUANTIZEDVALUES_H
