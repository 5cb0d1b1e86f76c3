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

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ORDERSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

using schedule::SchedulePurpose;
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

  /// The first call that needs an op.
  struct Need {
    double time = 0;
    bool isForward = false;
  };

  /// Finds the ops whose results calls need, and the first of these.
  void findNeeded(Block &body) {
    for (Operation &op : llvm::reverse(body)) {
      for (Operation *user : op.getUsers()) {
        if (std::optional<Need> need = needOf(user)) {
          auto [own, isNew] = neededBy.try_emplace(&op, *need);
          own->second = need->time < own->second.time ? *need : own->second;
        }
      }
    }
  }

  /// Returns the first call that is `user`, or needs it.
  std::optional<Need> needOf(Operation *user) const {
    if (actions.contains(user)) {
      bool isForward = actions.lookup(user).direction == StageAction::Direction::Forward;
      return Need{beginOf(user), isForward};
    }
    auto later = neededBy.find(user);
    return later == neededBy.end() ? std::nullopt : std::optional(later->second);
  }

  /// An op takes place when the call ends that makes its operands. A transfer that forward needs
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
    auto need = neededBy.find(&op);
    if (need == neededBy.end()) {
      made[&op] = *moment;
      users.push_back(&op);
      return;
    }
    if (isa<TransferOp>(op) && need->second.isForward) {
      moment = {need->second.time, Moment::Kind::Begins};
    }
    made[&op] = *moment;
    ordered.push_back({*moment, ordered.size(), &op});
  }

  const Actions &actions;
  const Times &times;
  llvm::DenseMap<Operation *, Need> neededBy;
  /// When the results of ops are there.
  llvm::DenseMap<Operation *, Moment> made;
  SmallVector<OrderedOp> ordered;
  SmallVector<Operation *> users;
};

/// Backward takes about twice as long as forward: it has two matmuls for each.
double usualTime(const StageAction &action) {
  return action.direction == StageAction::Direction::Forward ? 1 : 2;
}

struct OrderStagesPass : impl::OrderStagesPassBase<OrderStagesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (countStages(module) == 1) {
      return;
    }
    for (auto [name, purpose] : {std::pair("step", SchedulePurpose::Training),
                                 std::pair("evaluate", SchedulePurpose::Evaluation)}) {
      auto root = module.lookupSymbol<func::FuncOp>(name);
      if (root && failed(order(module, root, purpose))) {
        return signalPassFailure();
      }
    }
  }

  LogicalResult order(ModuleOp module, func::FuncOp root, SchedulePurpose purpose) {
    const llvm::MapVector<Operation *, CallOfStage> calls = findCalls(module, root);
    if (calls.empty()) {
      return success();
    }
    Mover::Actions actions;
    int64_t chunks = 0, microBatches = 0;
    for (const auto &[call, own] : calls) {
      actions[call] = own.action;
      chunks = std::max(chunks, own.action.chunk + 1);
      microBatches = std::max(microBatches, own.action.microBatch + 1);
    }
    FailureOr<schedule::StageSchedule> lists = makeLists(module, chunks, microBatches);
    if (failed(lists)) {
      return failure();
    }
    if (purpose == SchedulePurpose::Evaluation) {
      lists = schedule::forwardOf(*lists, microBatches);
    }
    auto result = schedule::simulate(*lists, microBatches, usualTime, purpose);
    if (auto *fault = std::get_if<schedule::ScheduleFault>(&result)) {
      return module.emitError("order-stages: ") << fault->text;
    }
    Mover::Times times;
    for (const schedule::TimedAction &each : std::get<schedule::Course>(result).actions) {
      times[each.action] = each;
    }
    for (const auto &[call, own] : calls) {
      auto time = times.find(own.action);
      if (time == times.end() || time->second.stage != own.stage) {
        return call->emitError("order-stages: the schedule does not have ")
               << schedule::describe(own.action) << " in stage " << own.stage;
      }
    }
    Mover(actions, times).run(root.getBody().front());
    return success();
  }

  /// Returns the actions of each stage by the option.
  FailureOr<schedule::StageSchedule> makeLists(ModuleOp module, int64_t chunks,
                                               int64_t microBatches) const {
    const int64_t stages = countStages(module);
    const std::string &text = schedule.getValue();
    if (auto known = schedule::makeSchedule(text, stages, chunks / stages, microBatches)) {
      return *known;
    }
    if (!llvm::StringRef(text).contains(';')) {
      return module.emitError("order-stages: unknown schedule '")
             << text << "', expected gpipe, 1f1b, or the actions of each stage";
    }
    std::vector<std::string> rows;
    for (llvm::StringRef row : llvm::split(text, ';')) {
      rows.push_back(row.str());
    }
    auto parsed = schedule::parseSchedule(rows);
    if (auto *fault = std::get_if<schedule::ScheduleFault>(&parsed)) {
      return module.emitError("order-stages: ") << fault->text;
    }
    return std::get<schedule::StageSchedule>(parsed);
  }

  struct CallOfStage {
    StageAction action;
    int64_t stage = 0;
  };

  /// Returns the action of each call of a function of a micro-batch. Of a chunk's two functions the
  /// one that is called first is forward.
  static llvm::MapVector<Operation *, CallOfStage> findCalls(ModuleOp module, func::FuncOp root) {
    llvm::MapVector<Operation *, CallOfStage> calls;
    SymbolTable symbols(module);
    std::map<int64_t, func::FuncOp> forward;
    std::map<std::pair<int64_t, StageAction::Direction>, int64_t> counts;
    for (auto call : root.getOps<CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      std::optional<int64_t> stage = markedStageOf(callee);
      if (!stage || !callee->hasAttr(kMicroBatchAttrName)) {
        continue;
      }
      const int64_t chunk = *markedChunkOf(callee);
      bool isForward = forward.try_emplace(chunk, callee).first->second == callee;
      auto direction =
          isForward ? StageAction::Direction::Forward : StageAction::Direction::Backward;
      calls[call] = {{chunk, direction, counts[{chunk, direction}]++}, *stage};
    }
    return calls;
  }
};

} // namespace
} // namespace weft
