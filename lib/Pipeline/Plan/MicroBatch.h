//===- MicroBatch.h - what is done for each part of a batch ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The steps of accumulate-micro-batches, see its description in Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_MICROBATCH_H
#define WEFT_LIB_PIPELINE_PLAN_MICROBATCH_H

#include "BatchRoles.h"

#include <map>

namespace weft {

/// Functions that begin and continue sums. Values of one kind, results of one function, share
/// theirs, so that one decision holds for all layers.
class SumFunctions {
public:
  explicit SumFunctions(mlir::ModuleOp module) : symbols(module) {}

  /// The type of the sum of values like `value`: as wide as sums are computed.
  static mlir::RankedTensorType typeOf(mlir::Value value);

  /// A sum of nothing, for values like `value`.
  mlir::Value createStart(mlir::OpBuilder &builder, mlir::Value value);
  /// `sum` and `value` together.
  mlir::Value createNext(mlir::OpBuilder &builder, mlir::Value sum, mlir::Value value);

private:
  struct Pair {
    mlir::func::FuncOp start, next;
  };
  const Pair &find(CallOp producer, mlir::OpResult value);
  mlir::func::FuncOp build(llvm::StringRef name, mlir::TypeRange arguments, mlir::Value like,
                           mlir::Location loc);

  mlir::SymbolTable symbols;
  std::map<std::pair<std::string, unsigned>, Pair> pairs;
};

/// Moves what `root` does for each sample into a private function of one micro-batch, and calls
/// that `count` times. Its results are added up, and of those that are no sums the greatest is
/// taken. Its first argument is the micro-batch's number.
/// REQUIRES: `roles` are those of `root`, whose samples depend on no sum over others. Inputs are
/// divided into `count` micro-batches, their reads not yet.
mlir::func::FuncOp buildMicroBatch(mlir::func::FuncOp root, const BatchRoles &roles, int64_t count,
                                   SumFunctions &sums);

/// Tells ops that number samples which of all `samples` those of a micro-batch are. For that the
/// number of the micro-batch becomes an argument of every function with such ops.
void numberSamples(mlir::ModuleOp module, llvm::ArrayRef<mlir::func::FuncOp> microBatches,
                   int64_t count, int64_t samples);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_MICROBATCH_H
