//===- StageSums.cpp - sums over micro-batches, stage by stage --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageSums.h"

#include "MicroBatch.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

using namespace mlir;

namespace weft {
namespace {

/// Terms of a sum, by the stages that compute them.
using StageTerms = llvm::MapVector<int64_t, SmallVector<Value>>;

class SumSeparator {
public:
  SumSeparator(func::FuncOp function, const StageChunks &chunks, const StagePositions &positions)
      : function(function), chunks(chunks), positions(positions) {}

  void run();
  void replace(MutableArrayRef<CallOp> calls);

private:
  std::optional<int64_t> stageOf(Value value) const;
  bool isOfOneStage(Value value, int64_t stage) const;
  bool collectTerms(Value value, StageTerms &terms) const;
  void separate(unsigned result, MapOp next, StageTerms &terms);
  Value addArgument(unsigned result);
  void addUp(CallOp last, ArrayRef<Value> others) const;

  /// A result of the function of which other stages have sums, too.
  struct SeparateSum {
    unsigned result;
    /// The stage of the result.
    int64_t stage;
    size_t others;
    /// How many of the others stand before it, in the order of terms.
    size_t before;
  };

  func::FuncOp function;
  const StageChunks &chunks;
  const StagePositions &positions;
  /// Their other sums are the last results of the function, in this order.
  SmallVector<SeparateSum> separated;
};

void SumSeparator::run() {
  Operation *end = function.front().getTerminator();
  for (unsigned result = 0, count = function.getNumResults(); result < count; ++result) {
    auto next = end->getOperand(result).getDefiningOp<MapOp>();
    // A sum that is rounded with each term is another one if stages add up their own terms.
    bool isTensor = next && next.getOutputType().getRank() > 0 &&
                    !isNarrow(next.getOutputType().getElementType());
    if (!isTensor || !isSum(next) || next.getInputs()[0] != function.getArgument(result + 1)) {
      continue;
    }
    StageTerms terms;
    if (collectTerms(next.getInputs()[1], terms) && terms.size() > 1) {
      separate(result, next, terms);
    }
  }
}

std::optional<int64_t> SumSeparator::stageOf(Value value) const {
  Operation *definition = value.getDefiningOp();
  std::optional<int64_t> position = definition ? positions.of(definition) : std::nullopt;
  return position ? std::optional(chunks.stageAt(*position)) : std::nullopt;
}

/// Returns the op that only adds up the values of which `value` is the sum, if nothing else uses
/// `value`; else null.
static MapOp sumOf(Value value) {
  auto sum = value.getDefiningOp<MapOp>();
  return sum && isSum(sum) && value.hasOneUse() ? sum : MapOp();
}

/// Returns true if `value` is computed, with all its terms, in `stage`.
bool SumSeparator::isOfOneStage(Value value, int64_t stage) const {
  MapOp sum = sumOf(value);
  return stageOf(value) == stage && (!sum || llvm::all_of(sum.getInputs(), [&](Value term) {
           return isOfOneStage(term, stage);
         }));
}

/// Adds the terms of `value` to `terms`. Fails if one of them belongs to no stage.
bool SumSeparator::collectTerms(Value value, StageTerms &terms) const {
  std::optional<int64_t> stage = stageOf(value);
  if (!stage) {
    return false;
  }
  if (!sumOf(value) || isOfOneStage(value, *stage)) {
    terms[*stage].push_back(value);
    return true;
  }
  return llvm::all_of(sumOf(value).getInputs(),
                      [&](Value term) { return collectTerms(term, terms); });
}

/// Erases sums that nothing uses any more.
static void eraseSums(Value value) {
  MapOp sum = value.use_empty() ? value.getDefiningOp<MapOp>() : MapOp();
  if (sum) {
    SmallVector<Value> terms(sum.getInputs());
    sum.erase();
    llvm::for_each(terms, eraseSums);
  }
}

/// Returns the last of the ops that compute `values`.
static Operation *lastOf(ArrayRef<Value> values) {
  Operation *last = values.front().getDefiningOp();
  for (Value value : values) {
    last = last->isBeforeInBlock(value.getDefiningOp()) ? value.getDefiningOp() : last;
  }
  return last;
}

/// Replaces a sum, which `next` continues, by one for each stage of `terms`.
void SumSeparator::separate(unsigned result, MapOp next, StageTerms &terms) {
  const int64_t own = *stageOf(next.getResult(0));
  Operation *end = function.front().getTerminator();
  Value joined = next.getInputs()[1];
  for (auto &[stage, values] : terms) {
    Value before = stage == own ? function.getArgument(result + 1) : addArgument(result);
    OpBuilder builder(function.getContext());
    builder.setInsertionPointAfter(lastOf(values));
    Value term = createSum(builder, joined.getLoc(), values);
    Value sum = createNextSum(builder, next.getLoc(), before, term);
    if (stage == own) {
      end->setOperand(result, sum);
    } else {
      end->insertOperands(end->getNumOperands(), sum);
    }
  }
  auto before = size_t(terms.find(own) - terms.begin());
  separated.push_back({result, own, terms.size() - 1, before});
  next.erase();
  eraseSums(joined);
}

/// Adds an argument and a result for another sum like `result`, behind all others; returns the
/// argument.
Value SumSeparator::addArgument(unsigned result) {
  unsigned count = function.getNumResults();
  Type type = function.getResultTypes()[result];
  (void)function.insertArgument(count + 1, type, function.getArgAttrDict(result + 1),
                                function.getLoc());
  (void)function.insertResult(count, type, function.getResultAttrDict(result));
  return function.getArgument(count + 1);
}

/// The other sums begin as the function's own do, and go from call to call.
void SumSeparator::replace(MutableArrayRef<CallOp> calls) {
  SmallVector<Value> others;
  for (const SeparateSum &each : separated) {
    others.append(each.others, calls.front().getOperand(each.result + 1));
  }
  const size_t count = function.getNumResults() - others.size();
  for (CallOp &call : calls) {
    SmallVector<Value> operands = call.getOperands();
    operands.insert(operands.begin() + count + 1, others.begin(), others.end());
    OpBuilder builder(call);
    auto more = CallOp::create(builder, call.getLoc(), function.getResultTypes(),
                               function.getSymName(), call.getLabel(), operands);
    call->replaceAllUsesWith(more.getResults().take_front(count));
    call.erase();
    call = more;
    llvm::copy(more.getResults().drop_front(count), others.begin());
  }
  addUp(calls.back(), others);
}

/// Adds up the sums of all stages behind the last call.
void SumSeparator::addUp(CallOp last, ArrayRef<Value> others) const {
  OpBuilder builder(last.getContext());
  builder.setInsertionPointAfter(last);
  for (const SeparateSum &each : separated) {
    Value own = last.getResult(each.result);
    SmallVector<Value> sums(others.take_front(each.others));
    sums.insert(sums.begin() + each.before, own);
    others = others.drop_front(each.others);
    Operation *total = createSum(builder, own.getLoc(), sums).getDefiningOp();
    markStage(total, each.stage);
    own.replaceAllUsesExcept(total->getResult(0), total);
  }
}

} // namespace

void separateSums(func::FuncOp function, MutableArrayRef<CallOp> calls, const StageChunks &chunks,
                  const StagePositions &positions) {
  SumSeparator separator(function, chunks, positions);
  separator.run();
  separator.replace(calls);
}

} // namespace weft
