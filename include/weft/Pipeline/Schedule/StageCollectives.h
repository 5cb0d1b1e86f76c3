//===- StageCollectives.h - gathers and reductions of a chunk --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A root gathers the parameters of a chunk of the pipeline before it calls the chunk's functions,
// and reduces the sums of its gradients behind them. These functions take both out of the root, so
// that a schedule may place calls of them among those of the chunk.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_SCHEDULE_STAGECOLLECTIVES_H
#define WEFT_PIPELINE_SCHEDULE_STAGECOLLECTIVES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

#include <optional>

namespace weft {

/// The calls of a chunk's functions in a root, in the order of the root.
struct ChunkCalls {
  int64_t chunk = 0, stage = 0;
  llvm::SmallVector<CallOp> calls;
};

/// A function that gathers all that a chunk's calls get of gathered parameters.
struct ChunkGather {
  mlir::func::FuncOp function;
  /// What the function gets: what the root has computed of parameters on its way to a gather, if
  /// it is a scalar or was received.
  llvm::SmallVector<mlir::Value> inputs;
  /// The values of the root that the function's results are.
  llvm::SmallVector<mlir::Value> gathered;
};

/// Makes a function of what lies between shards of the chunk's parameters and the operands of its
/// calls, as far as that has an all-gather: the all-gather, and, all the way from the variables,
/// the rounding before and the reshapes behind it. The root does not change. Returns nothing if it
/// gathers no parameters for the chunk.
std::optional<ChunkGather> outlineGather(mlir::func::FuncOp root, const ChunkCalls &chunk);

/// Moves the reductions of the chunk's sums of gradients from the root into a function, with all
/// that lies between them and results of the chunk's calls, and calls it right behind the last of
/// these. Returns the call; nothing if the root reduces no gradients of the chunk alone.
CallOp outlineReduction(mlir::func::FuncOp root, const ChunkCalls &chunk);

/// Erases what the ops before `end` compute for nobody.
void eraseUnusedBefore(mlir::Operation *end);

} // namespace weft

#endif // WEFT_PIPELINE_SCHEDULE_STAGECOLLECTIVES_H
