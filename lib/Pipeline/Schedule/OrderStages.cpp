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

/// A call of a micro-batch's function, or an op that brings its results to another, and when it
/// takes place.
struct TimedOp {
  Operation *op;
  double time;
  /// The place in the order before.
  size_t number;
  auto key() const { return std::tuple(time, isa<CallOp>(op), number); }
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

  /// Moves calls, and the ops that bring results of one to another, such as transfers, in order of
  /// time, to the place of the last of them. These ops take place when the call ends that makes
  /// their operands, before what begins then. What only uses results of calls follows all of them.
  static void move(func::FuncOp step, const llvm::MapVector<Operation *, StageAction> &actions,
                   const std::map<StageAction, schedule::TimedAction> &times) {
    const llvm::DenseSet<Operation *> needed = findNeeded(step, actions);
    llvm::DenseMap<Operation *, double> ends;
    SmallVector<TimedOp> ops;
    SmallVector<Operation *> users;
    for (Operation &op : step.getOps()) {
      if (auto action = actions.find(&op); action != actions.end()) {
        const schedule::TimedAction &timed = times.at(action->second);
        ops.push_back({&op, timed.begin, ops.size()});
        ends[&op] = timed.end;
        continue;
      }
      std::optional<double> time;
      for (Value operand : op.getOperands()) {
        if (auto made = ends.find(operand.getDefiningOp()); made != ends.end()) {
          time = std::max(time.value_or(made->second), made->second);
        }
      }
      if (!time) {
        continue;
      }
      ends[&op] = *time;
      if (needed.contains(&op)) {
        ops.push_back({&op, *time, ops.size()});
      } else {
        users.push_back(&op);
      }
    }
    if (ops.empty()) {
      return;
    }
    Operation *end = ops.back().op->getNextNode();
    llvm::erase_if(users, [&](Operation *op) { return !op->isBeforeInBlock(end); });
    llvm::sort(ops, [](const TimedOp &a, const TimedOp &b) { return a.key() < b.key(); });
    for (const TimedOp &each : ops) {
      each.op->moveBefore(end);
    }
    for (Operation *op : users) {
      op->moveBefore(end);
    }
  }

  /// Returns the ops whose results calls of micro-batches' functions need.
  static llvm::DenseSet<Operation *>
  findNeeded(func::FuncOp step, const llvm::MapVector<Operation *, StageAction> &actions) {
    llvm::DenseSet<Operation *> needed;
    for (Operation &op : llvm::reverse(step.getBody().front())) {
      if (llvm::any_of(op.getUsers(), [&](Operation *user) {
            return actions.contains(user) || needed.contains(user);
          })) {
        needed.insert(&op);
      }
    }
    return needed;
  }
};

} // namespace
} // namespace weft
