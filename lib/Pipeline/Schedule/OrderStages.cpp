//===- OrderStages.cpp - the order of work on micro-batches ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"
#include "weft/Dialect/Weft/IR/FunctionCosts.h"
#include "weft/Dialect/Weft/IR/OpCost.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ORDERSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

using desc::SchedulePurpose;
using desc::StageAction;

/// When an op takes place. At one time, first what ends the work of a stage on a micro-batch, then
/// what begins it, and calls last.
struct Moment {
  enum class Kind : uint8_t { Ends, Begins, Calls };

  double time = 0;
  Kind kind = Kind::Ends;
  auto operator<=>(const Moment &) const = default;
};

/// When the stages work, in a course of them.
class WorkTimes {
public:
  explicit WorkTimes(const desc::Course &course) {
    for (const desc::TimedAction &each : course.actions) {
      stages[each.stage].push_back(each);
      actions[each.action] = each;
    }
  }

  /// Returns null if the course does not have the action.
  const desc::TimedAction *find(const StageAction &action) const {
    auto found = actions.find(action);
    return found == actions.end() ? nullptr : &found->second;
  }

  /// Returns when a transfer takes place that can do so from `earliest` to `latest`, when its
  /// result is needed: before the work that begins then, and when its stages wait for each other
  /// for the shortest time. Of equal times the last is best: its micro-batch is in flight for a
  /// shorter time.
  double placeOf(TransferOp transfer, double earliest, double latest) const {
    const Work &sender = stages.at(transfer.getFrom()), &receiver = stages.at(transfer.getTo());
    double best = latest, least = waitAt(latest, sender, receiver, earliest);
    for (const Work *work : {&sender, &receiver}) {
      for (auto next = nextAt(*work, earliest); next != work->end() && next->begin < latest;
           ++next) {
        double wait = waitAt(next->begin, sender, receiver, earliest);
        if (wait < least || (wait == least && next->begin > best)) {
          least = wait;
          best = next->begin;
        }
      }
    }
    return best;
  }

private:
  using Work = std::vector<desc::TimedAction>;

  /// Returns the first work that begins at `time` or later.
  static Work::const_iterator nextAt(const Work &work, double time) {
    return std::ranges::lower_bound(work, time, {}, &desc::TimedAction::begin);
  }

  /// Returns for how long the next work of both stages waits, if they exchange before it what is
  /// there at `earliest`.
  static double waitAt(double time, const Work &a, const Work &b, double earliest) {
    double exchanged = earliest;
    for (const Work *work : {&a, &b}) {
      auto next = nextAt(*work, time);
      exchanged = std::max(exchanged, next == work->begin() ? 0 : std::prev(next)->end);
    }
    double wait = 0;
    for (const Work *work : {&a, &b}) {
      auto next = nextAt(*work, time);
      wait += next == work->end() ? 0 : std::max(0.0, exchanged - next->begin);
    }
    return wait;
  }

  /// Of each stage, in order.
  std::map<int64_t, Work> stages;
  std::map<StageAction, desc::TimedAction> actions;
};

/// Orders the calls of micro-batches' functions, and the ops that bring results of one to another,
/// such as transfers.
class Mover {
public:
  using Actions = llvm::MapVector<Operation *, StageAction>;

  Mover(const Actions &actions, const WorkTimes &times) : actions(actions), times(times) {}

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

  double beginOf(Operation *call) const { return times.find(actions.lookup(call))->begin; }

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

  /// An op takes place when the call ends that makes its operands, and a transfer when its stages
  /// wait least.
  void visit(Operation &op) {
    if (actions.contains(&op)) {
      ordered.push_back({{beginOf(&op), Moment::Kind::Calls}, ordered.size(), &op});
      made[&op] = {times.find(actions.lookup(&op))->end, Moment::Kind::Ends};
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
    if (auto transfer = dyn_cast<TransferOp>(op)) {
      double time = times.placeOf(transfer, moment->time, needed->second);
      moment = std::max(*moment, Moment{time, Moment::Kind::Begins});
      received.insert(&op);
    } else if (llvm::any_of(op.getOperands(), [&](Value operand) {
                 return received.contains(operand.getDefiningOp());
               })) {
      // What is received is often a shard of what a call needs.
      moment = std::max(*moment, Moment{needed->second, Moment::Kind::Begins});
      received.insert(&op);
    }
    made[&op] = *moment;
    ordered.push_back({*moment, ordered.size(), &op});
  }

  const Actions &actions;
  const WorkTimes &times;
  llvm::DenseMap<Operation *, double> neededAt;
  /// When the results of ops are there.
  llvm::DenseMap<Operation *, Moment> made;
  /// Transfers, and ops between them and calls.
  llvm::DenseSet<Operation *> received;
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

/// How long actions take, in proportion to the floating-point operations of their functions. Whole
/// numbers, so that what ends at the same time does so exactly.
class ActionTimes {
public:
  explicit ActionTimes(ModuleOp module)
      : flops(module, [](Operation *op) {
          return isa<CostOpInterface>(op) ? costOf(op).flops.constant : 0;
        }) {}

  void add(const StageAction &action, func::FuncOp function) {
    double own = flops.of(function);
    ofActions[{action.chunk, action.direction}] = own;
    least = own > 0 && (least == 0 || own < least) ? own : least;
  }

  /// Without operations, backward takes twice as long as forward: it has two matmuls for each.
  double of(const StageAction &action) const {
    if (least == 0) {
      return action.direction == StageAction::Direction::Forward ? 1 : 2;
    }
    constexpr double kUnits = 64; // Of the shortest action.
    double own = ofActions.at({action.chunk, action.direction});
    return std::max(1.0, std::round(kUnits * own / least));
  }

private:
  FunctionCosts flops;
  std::map<std::pair<int64_t, StageAction::Direction>, double> ofActions;
  double least = 0;
};

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
    ActionTimes lengths(module);
    int64_t chunks = 0, microBatches = 0;
    for (const auto &[call, own] : calls) {
      actions[call] = own.action;
      lengths.add(own.action, own.function);
      chunks = std::max(chunks, own.action.chunk + 1);
      microBatches = std::max(microBatches, own.action.microBatch + 1);
    }
    FailureOr<desc::StageSchedule> lists = makeLists(module, chunks, microBatches);
    if (failed(lists)) {
      return failure();
    }
    if (purpose == SchedulePurpose::Evaluation) {
      lists = desc::forwardOf(*lists, microBatches);
    }
    auto timeOf = [&](const StageAction &action) { return lengths.of(action); };
    auto result = desc::simulate(*lists, microBatches, timeOf, purpose);
    if (auto *fault = std::get_if<desc::ScheduleFault>(&result)) {
      return module.emitError("order-stages: ") << fault->text;
    }
    const WorkTimes times(std::get<desc::Course>(result));
    for (const auto &[call, own] : calls) {
      const desc::TimedAction *time = times.find(own.action);
      if (!time || time->stage != own.stage) {
        return call->emitError("order-stages: the schedule does not have ")
               << desc::describe(own.action) << " in stage " << own.stage;
      }
    }
    Block &body = root.getBody().front();
    Mover(actions, times).run(body);
    auto backwards = llvm::reverse(body);
    auto last = llvm::find_if(backwards, [&](Operation &op) { return actions.contains(&op); });
    if (purpose == SchedulePurpose::Training) {
      beginWithOwnWork(&*last);
    }
    return success();
  }

  /// Returns the actions of each stage by the option.
  FailureOr<desc::StageSchedule> makeLists(ModuleOp module, int64_t chunks,
                                           int64_t microBatches) const {
    const int64_t stages = countStages(module);
    const std::string &text = schedule.getValue();
    if (auto known = desc::makeSchedule(text, stages, chunks / stages, microBatches)) {
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
    auto parsed = desc::parseSchedule(rows);
    if (auto *fault = std::get_if<desc::ScheduleFault>(&parsed)) {
      return module.emitError("order-stages: ") << fault->text;
    }
    return std::get<desc::StageSchedule>(parsed);
  }

  struct CallOfStage {
    StageAction action;
    int64_t stage = 0;
    func::FuncOp function;
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
      calls[call] = {{chunk, direction, counts[{chunk, direction}]++}, *stage, callee};
    }
    return calls;
  }
};

} // namespace
} // namespace weft
