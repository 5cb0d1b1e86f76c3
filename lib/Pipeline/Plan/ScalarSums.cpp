//===- ScalarSums.cpp - sums of scalars of a root, stage by stage -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarSums.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace weft {
namespace {

/// Terms of a sum, by the stages that compute them.
using StageTerms = llvm::MapVector<int64_t, SmallVector<Value>>;

/// Returns true if `op` adds up scalars of its result's type. A sum that is rounded with each term
/// is another one if stages add up their own terms.
bool isScalarSum(Operation *op) {
  auto map = dyn_cast_or_null<MapOp>(op);
  return map && isSum(map) && map.getOutputType().getRank() == 0 &&
         !isNarrow(map.getOutputType().getElementType()) &&
         llvm::all_equal(map->getOperandTypes()) &&
         map.getInputs()[0].getType() == map.getOutputType();
}

Value beforeTransfer(Value value) {
  auto transfer = value.getDefiningOp<TransferOp>();
  return transfer ? transfer.getInput() : value;
}

/// Returns the sum that `value` is, if it is only used where `value` is; else null.
MapOp partialSumOf(Value value) {
  Value source = beforeTransfer(value);
  bool isOnlyTerm = value.hasOneUse() && source.hasOneUse();
  return isOnlyTerm && isScalarSum(source.getDefiningOp()) ? source.getDefiningOp<MapOp>()
                                                           : MapOp();
}

/// Returns true if the result of `sum` is a term of another sum, and nothing else.
bool isPartial(MapOp sum) {
  Value value = sum->getResult(0);
  auto transfer = value.hasOneUse() ? dyn_cast<TransferOp>(*value.user_begin()) : TransferOp();
  value = transfer ? transfer.getOutput() : value;
  return value.hasOneUse() && isScalarSum(*value.user_begin());
}

/// Adds the terms of `sum` to `terms`. What is of no stage belongs to stage `own`.
void collectTerms(MapOp sum, int64_t own, StageTerms &terms) {
  for (Value input : sum.getInputs()) {
    if (MapOp partial = partialSumOf(input)) {
      collectTerms(partial, own, terms);
    } else {
      Value source = beforeTransfer(input);
      terms[markedStageOf(source.getDefiningOp()).value_or(own)].push_back(source);
    }
  }
}

/// Adds up `terms` one after the other, so that each addition may have shardings of its own.
Value addUp(OpBuilder &builder, Location loc, ArrayRef<Value> terms, int64_t stage) {
  Value sum = terms.front();
  for (Value term : terms.drop_front()) {
    sum = createSum(builder, loc, {sum, term});
    markStage(sum.getDefiningOp(), stage);
  }
  return sum;
}

/// Erases sums and transfers that nothing uses any more.
void eraseUnused(Value value) {
  Operation *op = value.getDefiningOp();
  if (value.use_empty() && (isa<TransferOp>(op) || isScalarSum(op))) {
    SmallVector<Value> operands(op->getOperands());
    op->erase();
    llvm::for_each(operands, eraseUnused);
  }
}

void separate(MapOp total) {
  const int64_t own = *markedStageOf(total);
  StageTerms terms;
  collectTerms(total, own, terms);
  if (terms.size() < 2) {
    return;
  }
  OpBuilder builder(total);
  SmallVector<Value> sums;
  for (const auto &[stage, values] : terms) {
    Value sum = addUp(builder, total.getLoc(), values, stage);
    sums.push_back(
        stage == own ? sum
                     : TransferOp::create(builder, total.getLoc(), sum.getType(), sum, stage, own));
  }
  total->replaceAllUsesWith(ValueRange(addUp(builder, total.getLoc(), sums, own)));
  eraseUnused(total->getResult(0));
}

} // namespace

void separateScalarSums(func::FuncOp root) {
  SmallVector<MapOp> totals;
  for (auto map : root.getOps<MapOp>()) {
    if (markedStageOf(map) && isScalarSum(map) && !isPartial(map)) {
      totals.push_back(map);
    }
  }
  llvm::for_each(totals, separate);
}

} // namespace weft
