//===- QuantizedValues.h - formats and scales of quantized values ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A value is quantized if a `weft.quantize` computes it, or if it consists of quantized values that
// were only moved: by reshapes, permutations, reshards, collectives that add nothing, and as
// arguments and results of functions. Accepts modules of Plan, and of Partition and later.
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

  /// Returns the format of a value that was quantized from float32; nothing for other values, or if
  /// the scale of the value is unknown.
  std::optional<Float8> formatOf(mlir::Value value);
  /// Returns true if any part of `value` was quantized from float32.
  bool isAnyQuantized(mlir::Value value) const;

  /// Announces a later call of `amaxOf` for a quantized value.
  void bring(mlir::Value value);
  /// Gives functions the arguments and results that the announced calls need. This replaces calls
  /// and their results: callers must look up again the values that they have kept.
  void materialize();
  /// Returns the scale of an announced value, at the place of that value.
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
  /// Formats of values, found before calls are replaced.
  llvm::DenseMap<mlir::Value, std::optional<Float8>> formats;
  /// For a quantized argument or result, the number of the one that carries its scale.
  llvm::MapVector<Port, unsigned> arguments, results;
};

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_QUANTIZEDVALUES_H
