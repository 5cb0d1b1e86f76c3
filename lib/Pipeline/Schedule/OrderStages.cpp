//===- OrderStages.cpp - the order of work on micro-batches ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/StageMarks.h"
#include "weft/Schedule/StageOrder.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ORDERSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

using schedule::StageAction;

/// A call of a micro-batch's function, or a transfer of its results, and when it takes place.
struct TimedOp {
  Operation *op;
  double time;
  /// The place in the order before.
  size_t number;

  /// At one time, first what ends the work of a stage on a micro-batch, and calls last.
  auto key() const {
    auto transfer = dyn_cast<TransferOp>(op);
    return std::tuple(time, transfer ? int(isToLaterStage(transfer)) : 2, number);
  }
  static bool isToLaterStage(TransferOp transfer) { return transfer.getTo() > transfer.getFrom(); }
};

/// Backward takes about twice as long as forward: it has two matmuls for each.
double usualTime(const StageAction &action) {
  return action.direction == StageAction::Direction::Forward ? 1 : 2;
}

struct OrderStagesPass : impl::OrderStagesPassBase<OrderStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (countStages(module) > 1 && step && failed(order(module, step))) {
      signalPassFailure();
    }
  }

  LogicalResult order(ModuleOp module, func::FuncOp step) {
    const int64_t stages = countStages(module);
    llvm::MapVector<Operation *, StageAction> actions = findActions(module, step, stages);
    const auto microBatches = static_cast<int64_t>(actions.size()) / (2 * stages);
    auto lists = schedule::makeSchedule(name.getValue(), stages, microBatches);
    if (!lists) {
      return module.emitError("order-stages: unknown schedule '")
             << name.getValue() << "', expected gpipe or 1f1b";
    }
    auto result = schedule::simulate(*lists, microBatches, usualTime);
    if (auto *fault = std::get_if<std::string>(&result)) {
      return module.emitError("order-stages: ") << *fault;
    }
    std::map<StageAction, schedule::TimedAction> times;
    for (const schedule::TimedAction &each : std::get<schedule::Course>(result).actions) {
      times[each.action] = each;
    }
    for (const auto &[call, action] : actions) {
      if (!times.contains(action)) {
        return call->emitError("order-stages: ")
               << schedule::describe(action) << " is not in the schedule";
      }
    }
    move(step, actions, times);
    return success();
  }

  /// Returns the action of each call of a function of a micro-batch. Of a stage's two functions the
  /// one that is called first is forward.
  static llvm::MapVector<Operation *, StageAction> findActions(ModuleOp module, func::FuncOp step,
                                                               int64_t stages) {
    llvm::MapVector<Operation *, StageAction> actions;
    SymbolTable symbols(module);
    std::vector<func::FuncOp> forward(static_cast<size_t>(stages));
    std::map<std::pair<int64_t, StageAction::Direction>, int64_t> counts;
    for (auto call : step.getOps<CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      std::optional<int64_t> stage = markedStageOf(callee);
      if (!stage || !callee->hasAttr(kMicroBatchAttrName)) {
        continue;
      }
      func::FuncOp &first = forward[static_cast<size_t>(*stage)];
      first = first ? first : callee;
      auto direction =
          callee == first ? StageAction::Direction::Forward : StageAction::Direction::Backward;
      actions[call] = {*stage, direction, counts[{*stage, direction}]++};
    }
    return actions;
  }

  /// Moves calls and their transfers, in order of time, to the place of the last of them.
  static void move(func::FuncOp step, const llvm::MapVector<Operation *, StageAction> &actions,
                   const std::map<StageAction, schedule::TimedAction> &times) {
    SmallVector<TimedOp> ops;
    for (Operation &op : step.getOps()) {
      auto transfer = dyn_cast<TransferOp>(op);
      if (auto action = actions.find(&op); action != actions.end()) {
        ops.push_back({&op, times.at(action->second).begin, ops.size()});
      } else if (std::optional<double> time =
                     transfer ? timeOf(transfer, actions, times) : std::nullopt) {
        ops.push_back({&op, *time, ops.size()});
      }
    }
    if (ops.empty()) {
      return;
    }
    Operation *end = ops.back().op->getNextNode();
    llvm::sort(ops, [](const TimedOp &a, const TimedOp &b) { return a.key() < b.key(); });
    for (const TimedOp &each : ops) {
      each.op->moveBefore(end);
    }
  }

  /// Returns the time of a transfer from call to call: while the later of its stages works on the
  /// micro-batch, which is in flight there for the shortest time. So to a later stage when a call
  /// begins that needs the value, to an earlier one when the call ends that makes it.
  static std::optional<double> timeOf(TransferOp transfer,
                                      const llvm::MapVector<Operation *, StageAction> &actions,
                                      const std::map<StageAction, schedule::TimedAction> &times) {
    Operation *made = transfer.getInput().getDefiningOp();
    std::optional<double> begin;
    for (Operation *user : transfer->getUsers()) {
      if (auto action = actions.find(user); action != actions.end()) {
        double own = times.at(action->second).begin;
        begin = std::min(begin.value_or(own), own);
      }
    }
    auto producer = made ? actions.find(made) : actions.end();
    if (producer == actions.end() || !begin) {
      return std::nullopt;
    }
    return TimedOp::isToLaterStage(transfer) ? *begin : times.at(producer->second).end;
  }
};

} // namespace
} // namespace weft
