//===- MicroBatch.h - functions of micro-batches --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The parts of accumulate-micro-batches, see its description in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_MICROBATCH_H
#define WEFT_LIB_PIPELINE_PLAN_MICROBATCH_H

#include "BatchRoles.h"

#include <map>
#include <tuple>

namespace weft {

/// Creates the sum of `sum` and `value`, of the type of `sum`.
mlir::Value createNextSum(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sum,
                          mlir::Value value);

/// Functions that start and continue sums. The same results of all calls of a function share their
/// functions, so that one decision holds for all layers.
class SumFunctions {
public:
  explicit SumFunctions(mlir::ModuleOp module) : symbols(module) {}

  /// Creates a sum of type `type` of no values, for values like `value`.
  mlir::Value createStart(mlir::OpBuilder &builder, mlir::Value value, mlir::RankedTensorType type);
  /// Creates the sum of `sum` and `value`, of the type of `sum`.
  mlir::Value createNext(mlir::OpBuilder &builder, mlir::Value sum, mlir::Value value);

private:
  struct Pair {
    mlir::func::FuncOp start, next;
  };
  const Pair &find(CallOp producer, mlir::OpResult value, mlir::RankedTensorType type);
  mlir::func::FuncOp build(llvm::StringRef name, mlir::TypeRange arguments,
                           mlir::RankedTensorType type, mlir::Location loc);

  mlir::SymbolTable symbols;
  /// By callee, number of the result, and whether the sum is narrow.
  std::map<std::tuple<std::string, unsigned, bool>, Pair> pairs;
};

/// Moves the ops of `root` that depend on samples into a private function of one micro-batch, and
/// calls it `count` times. Its first argument is the number of the micro-batch. Sums are added over
/// the calls, of other results the greatest is kept.
/// REQUIRES: `roles` are those of `root`, in which no sample depends on other samples. The types of
/// inputs have `count` micro-batches already, those of their reads do not.
mlir::func::FuncOp buildMicroBatch(mlir::func::FuncOp root, const BatchRoles &roles, int64_t count,
                                   SumFunctions &sums);

/// Gives ops that number samples the number of their micro-batch's first sample, of `samples` in
/// all. The number of the micro-batch becomes an argument of every function with such ops.
void numberSamples(mlir::ModuleOp module, llvm::ArrayRef<mlir::func::FuncOp> microBatches,
                   int64_t count, int64_t samples);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_MICROBATCH_H
