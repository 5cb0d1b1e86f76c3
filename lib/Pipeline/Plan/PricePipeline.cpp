//===- PricePipeline.cpp - prices of a planned module's stages ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PricePipeline.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/BackwardParts.h"
#include "weft/Dialect/Weft/IR/FunctionCosts.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;

namespace {

/// The calls of one function of a chunk, one for each micro-batch, in their order.
struct ActionCalls {
  func::FuncOp function;
  SmallVector<CallOp> calls;
};

/// What scratch memory functions take: values that are made and used in them. Reads are views of
/// variables.
class Scratch {
public:
  explicit Scratch(ModuleOp module) : symbols(module) {}

  double of(func::FuncOp function) {
    if (auto found = known.find(function); found != known.end()) {
      return found->second;
    }
    Block &body = function.getBody().front();
    double live = 0, most = 0;
    for (Operation &op : body) {
      auto call = dyn_cast<CallOp>(op);
      double inside = call ? of(symbols.lookup<func::FuncOp>(call.getCallee())) : 0;
      for (Value result : op.getResults()) {
        live += bytesOf(result);
      }
      most = std::max(most, live + inside);
      for (Value value : endingAt(op)) {
        live -= bytesOf(value);
      }
    }
    return known[function] = most;
  }

private:
  /// Returns 0 for what outlives the function.
  static double bytesOf(Value value) {
    bool isReturned = llvm::any_of(
        value.getUsers(), [](Operation *user) { return user->hasTrait<OpTrait::IsTerminator>(); });
    return isReturned || isa<ReadOp>(value.getDefiningOp()) ? 0 : localBytes(value.getType());
  }

  /// Returns the values of the op's block that nobody uses behind it.
  static llvm::SmallSetVector<Value, 8> endingAt(Operation &op) {
    llvm::SmallSetVector<Value, 8> ending;
    auto endsHere = [&](Value value) {
      return llvm::none_of(value.getUsers(),
                           [&](Operation *user) { return op.isBeforeInBlock(user); });
    };
    for (Value value : llvm::concat<Value>(SmallVector<Value>(op.getOperands()),
                                           SmallVector<Value>(op.getResults()))) {
      if (value.getDefiningOp() && endsHere(value)) {
        ending.insert(value);
      }
    }
    return ending;
  }

  SymbolTable symbols;
  llvm::DenseMap<Operation *, double> known;
};

class StagePricing {
public:
  StagePricing(func::FuncOp step, PlannedSeconds &planned)
      : step(step), module(step->getParentOfType<ModuleOp>()), symbols(module), scratch(module),
        seconds(module, [&](Operation *op) { return planned.of(op).seconds(); }), parts(module) {}

  PipelinePrice run() {
    findCalls();
    price.chunks.resize(forward.size());
    price.stages.resize(size_t(countStages(module)));
    for (auto &[chunk, own] : forward) {
      price.chunks[size_t(chunk)] = priceChunk(chunk);
    }
    priceVariables();
    priceOnce();
    for (auto *direction : {&forward, &backward}) {
      for (auto &[chunk, own] : *direction) {
        addHeld(own);
      }
    }
    return std::move(price);
  }

private:
  /// Of a chunk's two functions the one that is called first is forward.
  void findCalls() {
    for (auto call : step.getOps<CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!isOfMicroBatch(callee)) {
        continue;
      }
      int64_t chunk = *markedChunkOf(callee);
      auto [own, isNew] = forward.try_emplace(chunk, ActionCalls{callee, {}});
      bool isForward = own->second.function == callee;
      ActionCalls &calls = isForward ? own->second : backward[chunk];
      calls.function = callee;
      calls.calls.push_back(call);
    }
  }

  static bool isOfMicroBatch(func::FuncOp function) {
    return markedStageOf(function) && function->hasAttr(kMicroBatchAttrName);
  }

  ChunkPrice priceChunk(int64_t chunk) {
    const ActionCalls &first = forward[chunk];
    ChunkPrice own{*markedStageOf(first.function), priceAction(first.function), {}, 0};
    auto second = backward.find(chunk);
    if (second == backward.end()) {
      return own;
    }
    own.backward = priceAction(second->second.function);
    CallOp before = first.calls.front(), after = second->second.calls.front();
    llvm::SmallSetVector<Value, 8> kept;
    for (Value operand : after.getOperands()) {
      bool isGotten = llvm::is_contained(before.getOperands(), operand) && !isOfStep(operand);
      if (operand.getDefiningOp() == before || isGotten) {
        kept.insert(operand);
      }
    }
    for (Value value : kept) {
      own.keptBytes += localBytes(value.getType());
    }
    const FunctionParts &cut =
        parts.of(second->second.function, findAwaitedResults(after, symbols));
    addParts(cut, own);
    for (unsigned argument : cut.secondArguments.set_bits()) {
      Value operand = after.getOperand(argument);
      own.keptForWeightsBytes += kept.contains(operand) ? localBytes(operand.getType()) : 0;
    }
    return own;
  }

  /// Adds the parts of backward. The first one's scratch memory is about that of both.
  void addParts(const FunctionParts &cut, ChunkPrice &price) {
    auto add = [&](const llvm::SetVector<Operation *> &ops, ActionPrice &to) {
      for (Operation *op : ops) {
        to.seconds += cut.calls.contains(op) ? 0 : seconds.of(op);
      }
    };
    add(cut.first, price.inputGradients);
    add(cut.second, price.weightGradients);
    price.inputGradients.scratchBytes = price.backward.scratchBytes;
    for (Operation *op : cut.second) {
      for (Value result : op->getResults()) {
        double &most = price.weightGradients.scratchBytes;
        most = std::max(most, cut.calls.contains(op) ? 0 : localBytes(result.getType()));
      }
    }
    for (Value value : cut.kept) {
      price.keptForWeightsBytes += localBytes(value.getType());
    }
    for (const FunctionParts *callee : llvm::make_second_range(cut.calls)) {
      addParts(*callee, price);
    }
  }

  ActionPrice priceAction(func::FuncOp function) {
    return {seconds.of(function), scratch.of(function)};
  }

  /// Returns true if the value is not of a micro-batch.
  bool isOfStep(Value value) {
    while (isa_and_nonnull<TransferOp, ReshardOp>(value.getDefiningOp())) {
      value = value.getDefiningOp()->getOperand(0);
    }
    auto call = value.getDefiningOp<CallOp>();
    return !call || !isOfMicroBatch(symbols.lookup<func::FuncOp>(call.getCallee()));
  }

  void priceVariables() {
    for (auto variable : module.getOps<VariableOp>()) {
      addTo(variable, &StagePrice::heldBytes, localBytes(variable.getTensorType()));
    }
  }

  /// Adds to what belongs to the stage of `op`, or to all stages.
  void addTo(Operation *op, double StagePrice::*part, double amount) {
    std::optional<int64_t> own = markedStageOf(op);
    for (auto [number, stage] : llvm::enumerate(price.stages)) {
      stage.*part += !own || size_t(*own) == number ? amount : 0;
    }
  }

  void priceOnce() {
    for (Operation &op : step.getOps()) {
      auto call = dyn_cast<CallOp>(op);
      auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
      if ((callee && isOfMicroBatch(callee)) || isa<TransferOp>(op)) {
        continue;
      }
      if (CallOp user = microBatchUserOf(op)) {
        priceOf(user).seconds += seconds.of(&op) / double(forward[0].calls.size());
      } else {
        addTo(&op, &StagePrice::onceSeconds, seconds.of(&op));
      }
    }
  }

  /// Returns the first call of a micro-batch that gets what `op` makes of another's result, such as
  /// a received value in another sharding; or null.
  CallOp microBatchUserOf(Operation &op) {
    if (op.getNumResults() != 1 || isOfStep(op.getResult(0))) {
      return {};
    }
    CallOp first;
    for (Operation *user : op.getUsers()) {
      auto call = dyn_cast<CallOp>(user);
      bool isUser = call && isOfMicroBatch(symbols.lookup<func::FuncOp>(call.getCallee()));
      first = isUser && (!first || call->isBeforeInBlock(first)) ? call : first;
    }
    return first;
  }

  /// Returns the price of the action that a call of a micro-batch is.
  ActionPrice &priceOf(CallOp call) {
    int64_t chunk = *markedChunkOf(symbols.lookup<func::FuncOp>(call.getCallee()));
    bool isForward = func::FuncOp(forward[chunk].function).getSymName() == call.getCallee();
    ChunkPrice &own = price.chunks[size_t(chunk)];
    return isForward ? own.forward : own.backward;
  }

  /// Adds what micro-batches add to, and values of the step that they use. The last call has both
  /// as operands: what it gets of the call before are sums.
  void addHeld(const ActionCalls &own) {
    StagePrice &stage = price.stages[size_t(*markedStageOf(own.function))];
    auto &seen = held[*markedStageOf(own.function)];
    for (Value operand : CallOp(own.calls.back()).getOperands()) {
      auto call = operand.getDefiningOp<CallOp>();
      bool isSum = call && call.getCallee() == func::FuncOp(own.function).getSymName();
      bool isView = operand.getDefiningOp<ReadOp>() != nullptr;
      if ((isSum || isOfStep(operand)) && !isView && seen.insert(operand).second) {
        stage.heldBytes += localBytes(operand.getType());
      }
    }
  }

  func::FuncOp step;
  ModuleOp module;
  SymbolTable symbols;
  Scratch scratch;
  FunctionCosts seconds;
  BackwardParts parts;
  /// By chunk.
  std::map<int64_t, ActionCalls> forward, backward;
  /// By stage: what is held by it.
  std::map<int64_t, llvm::SmallDenseSet<Value>> held;
  PipelinePrice price;
};

} // namespace

PipelinePrice weft::pricePipeline(func::FuncOp step, PlannedSeconds &planned) {
  bool hasStages = countStages(step->getParentOfType<ModuleOp>()) > 1;
  return hasStages ? StagePricing(step, planned).run() : PipelinePrice();
}
