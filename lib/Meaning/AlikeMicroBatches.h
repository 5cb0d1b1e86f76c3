//===- AlikeMicroBatches.h - ops that repeat with each micro-batch ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_ALIKEMICROBATCHES_H
#define WEFT_LIB_MEANING_ALIKEMICROBATCHES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/SetVector.h"

#include <optional>
#include <vector>

namespace weft::meaning {

/// A running total: each micro-batch reads that of the one before, and gives its own.
struct RunningTotal {
  /// The op that gives it, by its place among those of its micro-batch, and the result.
  size_t op;
  unsigned result;
  /// What the first micro-batch reads.
  mlir::Value start;
};

/// The ops of a function that work for one micro-batch after the other, in the same way: calls with
/// the number of the micro-batch, and what depends on these. With pipeline stages a micro-batch has
/// many calls, and transfers between them.
struct AlikeMicroBatches {
  /// The ops of each micro-batch in order. Ops at the same place differ at most in labels and in
  /// operands: what they read is of their own micro-batch, a total, the number, or the same value.
  std::vector<llvm::SmallVector<mlir::Operation *>> ops;
  /// What ops of the second micro-batch read, beside each other's results: its number, the totals
  /// of the first (ops[0]), and values that all micro-batches read.
  mlir::Value number;
  std::vector<RunningTotal> totals;
  llvm::SetVector<mlir::Value> shared;
};

/// The micro-batches of which the first begins with `first`. None if there are not several, or if
/// another op reads more of them than the totals of the last.
std::optional<AlikeMicroBatches> findMicroBatches(CallOp first);

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_ALIKEMICROBATCHES_H
