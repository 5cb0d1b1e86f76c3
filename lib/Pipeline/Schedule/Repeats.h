//===- Repeats.h - work on micro-batches that repeats ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A section works on micro-batches by calls of functions of one micro-batch, numbered 0, 1, ...
// In the module of a pipeline stage there are also sends of their results, receives of what they
// read, and what stands between: reshards of what is received, or is to be sent. All calls of one
// function are of one kind, and so are transfers of one number, and equal ops on operands of the
// same kinds. The work repeats if it stands together in the section and each kind is there once for
// each micro-batch, in their order, with operands that
//
//   - are the same for all,
//   - are results of work on the same micro-batch, or
//   - are results of the call of the same function for the micro-batch before: the first call gets
//     a value that nothing else reads.
//
// Only what is passed on in this way is read by others behind the work. Micro-batches may have the
// kinds in different orders, as gradients of weights wait for one or several others.
//
// Among that work may stand calls of functions that gather the parameters of a chunk, or reduce its
// sums of gradients. Those of one function that gathers get the same operands, from outside, and
// each call of the chunk reads the results of the latest of them. One that reduces is called once,
// on what the last calls of the chunk pass on.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_SCHEDULE_REPEATS_H
#define WEFT_LIB_PIPELINE_SCHEDULE_REPEATS_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <optional>
#include <string>

namespace weft {

struct ModuleSymbols;

/// A call, a send, a receive, or an op between a transfer and a call.
struct RepeatedOp {
  mlir::Operation *op;
  int64_t microBatch = 0;
  uint32_t kind = 0;
};

/// Operand `operand` of a call is result `result` of the one before.
struct PassedOn {
  unsigned operand = 0, result = 0;
};

/// A call among the work that is of no micro-batch.
struct CallBetween {
  CallOp op;
  /// The number of ops of the repeat that stand before it.
  size_t place = 0;
};

struct RepeatedKind {
  /// That of the first micro-batch.
  mlir::Operation *first;
  /// Work of this kind always follows right after that of the kind before, for one micro-batch.
  bool followsRight = false;
  llvm::SmallVector<PassedOn> passedOn = {};
};

struct Repeat {
  /// In the order of the section.
  llvm::SmallVector<RepeatedOp> ops;
  llvm::SmallVector<CallBetween> gathers = {}, reductions = {};
  /// In the order of the first micro-batch.
  llvm::SmallVector<RepeatedKind> kinds;
  /// Some micro-batches have another order.
  bool hasOtherOrders = false;
};

/// Returns the work that repeats. Calls of a single function, without transfers, are left out for
/// the first and the last micro-batch: communication before and after all calls can then run
/// beside these two. Nothing if the work does not repeat, or there are less than two calls of each
/// function.
std::optional<Repeat> findRepeat(mlir::func::FuncOp section, const ModuleSymbols &symbols);

/// Returns the first of several calls of each function.
llvm::SmallVector<CallOp> firstCalls(llvm::ArrayRef<CallBetween> calls);

/// Returns "step_forward_0", "send_3".
std::string nameOfWork(mlir::Operation *op);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_SCHEDULE_REPEATS_H
