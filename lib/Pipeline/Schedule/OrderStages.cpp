//===- OrderStages.cpp - the order of work on micro-batches ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Schedule/StageOrder.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ORDERSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

using schedule::StageAction;

/// When an op takes place. At one time, first what ends the work of a stage on a micro-batch, then
/// what begins it, and calls last.
struct Moment {
  enum class Kind : uint8_t { Ends, Begins, Calls };

  double time = 0;
  Kind kind = Kind::Ends;
  auto operator<=>(const Moment &) const = default;
};

/// Orders the calls of micro-batches' functions, and the ops that bring results of one to another,
/// such as transfers.
class Mover {
public:
  using Actions = llvm::MapVector<Operation *, StageAction>;
  using Times = std::map<StageAction, schedule::TimedAction>;

  Mover(const Actions &actions, const Times &times) : actions(actions), times(times) {}

  /// Moves these ops to the place of the last of them. What only uses results of calls follows all.
  void run(Block &body) {
    findNeeded(body);
    for (Operation &op : body) {
      visit(op);
    }
    if (ordered.empty()) {
      return;
    }
    Operation *end = ordered.back().op->getNextNode();
    llvm::erase_if(users, [&](Operation *op) { return !op->isBeforeInBlock(end); });
    llvm::sort(ordered, [](const OrderedOp &a, const OrderedOp &b) {
      return std::tie(a.moment, a.number) < std::tie(b.moment, b.number);
    });
    for (const OrderedOp &each : ordered) {
      each.op->moveBefore(end);
    }
    for (Operation *op : users) {
      op->moveBefore(end);
    }
  }

private:
  struct OrderedOp {
    Moment moment;
    /// The place among the ordered ops before.
    size_t number = 0;
    Operation *op = nullptr;
  };

  double beginOf(Operation *call) const { return times.at(actions.lookup(call)).begin; }

  /// Finds the ops whose results calls need, and when the first of these begins.
  void findNeeded(Block &body) {
    for (Operation &op : llvm::reverse(body)) {
      for (Operation *user : op.getUsers()) {
        auto later = neededAt.find(user);
        bool isCall = actions.contains(user);
        if (isCall || later != neededAt.end()) {
          double time = isCall ? beginOf(user) : later->second;
          auto [own, isNew] = neededAt.try_emplace(&op, time);
          own->second = std::min(own->second, time);
        }
      }
    }
  }

  /// An op takes place when the call ends that makes its operands. A transfer to a later stage
  /// waits until that begins: so its micro-batch is in flight there for the shortest time.
  void visit(Operation &op) {
    if (actions.contains(&op)) {
      ordered.push_back({{beginOf(&op), Moment::Kind::Calls}, ordered.size(), &op});
      made[&op] = {times.at(actions.lookup(&op)).end, Moment::Kind::Ends};
      return;
    }
    std::optional<Moment> moment;
    for (Value operand : op.getOperands()) {
      auto maker = made.find(operand.getDefiningOp());
      if (maker != made.end()) {
        moment = std::max(moment.value_or(maker->second), maker->second);
      }
    }
    if (!moment) {
      return;
    }
    auto needed = neededAt.find(&op);
    if (needed == neededAt.end()) {
      made[&op] = *moment;
      users.push_back(&op);
      return;
    }
    auto transfer = dyn_cast<TransferOp>(op);
    if (transfer && transfer.getTo() > transfer.getFrom()) {
      moment = {needed->second, Moment::Kind::Begins};
    }
    made[&op] = *moment;
    ordered.push_back({*moment, ordered.size(), &op});
  }

  const Actions &actions;
  const Times &times;
  llvm::DenseMap<Operation *, double> neededAt;
  /// When the results of ops are there.
  llvm::DenseMap<Operation *, Moment> made;
  SmallVector<OrderedOp> ordered;
  SmallVector<Operation *> users;
};

/// Behind `last`, the last call of all, and before anything changes: first what waits for no other
/// stage, such as reductions of gradients, then the rest in its order. So a stage that is done
/// early does not wait with its reductions until another, which still computes, receives its loss.
void beginWithOwnWork(Operation *last) {
  llvm::SetVector<Operation *> waiting;
  Operation *end = last->getNextNode();
  while (!isa<AgreeOp, AssignOp>(end) && !end->hasTrait<OpTrait::IsTerminator>()) {
    bool waits = llvm::any_of(end->getOperands(), [&](Value operand) {
      return waiting.contains(operand.getDefiningOp());
    });
    if (waits || isa<TransferOp, ObserveOp>(end)) {
      waiting.insert(end);
    }
    end = end->getNextNode();
  }
  for (Operation *op : waiting) {
    op->moveBefore(end);
  }
}

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
      return signalPassFailure();
    }
    auto evaluate = module.lookupSymbol<func::FuncOp>("evaluate");
    if (countStages(module) > 1 && evaluate) {
      orderForward(module, evaluate);
    }
  }

  /// Each stage takes one micro-batch after the other.
  static void orderForward(ModuleOp module, func::FuncOp evaluate) {
    auto actions = findActions(module, evaluate, countStages(module));
    std::map<StageAction, schedule::TimedAction> times;
    for (const auto &[call, action] : actions) {
      auto begin = static_cast<double>(action.stage + action.microBatch);
      times[action] = {action, begin, begin + 1};
    }
    Mover(actions, times).run(evaluate.getBody().front());
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
    Block &body = step.getBody().front();
    Mover(actions, times).run(body);
    auto backwards = llvm::reverse(body);
    auto last = llvm::find_if(backwards, [&](Operation &op) { return actions.contains(&op); });
    if (last != backwards.end()) {
      beginWithOwnWork(&*last);
    }
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
};

} // namespace
} // namespace weft
