//===- OrderStages.cpp - the order of work on micro-batches ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/BackwardParts.h"
#include "weft/Dialect/Weft/IR/FunctionCosts.h"
#include "weft/Dialect/Weft/IR/OpCost.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/Schedule/StageCollectives.h"
#include "weft/Pipeline/Schedule/TransferOrder.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

#include <cmath>
#include <map>
#include <set>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ORDERSTAGESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

using desc::SchedulePurpose;
using desc::StageAction;

/// Where each action stands: in the list of its stage, and among all events.
struct Place {
  int64_t stage = 0;
  size_t inList = 0, inOrder = 0;
};
using Places = std::map<StageAction, Place>;

Places placesOf(const desc::StageSchedule &schedule) {
  Places places;
  for (auto [stage, actions] : llvm::enumerate(schedule)) {
    for (auto [number, action] : llvm::enumerate(actions)) {
      places[action] = {static_cast<int64_t>(stage), number};
    }
  }
  return places;
}

/// What an action does, and its op in the root.
using Actions = llvm::MapVector<Operation *, StageAction>;

/// Gives a root the gathers and reductions that its schedule names.
class CollectivesOfSchedule {
public:
  CollectivesOfSchedule(func::FuncOp root, desc::StageSchedule &schedule, Actions &actions)
      : root(root), schedule(schedule), actions(actions) {
    std::vector<int64_t> stages = desc::stagesOfChunks(schedule);
    for (const auto &[call, action] : actions) {
      ChunkCalls &own = chunks[action.chunk];
      own.chunk = action.chunk;
      own.stage = stages[static_cast<size_t>(action.chunk)];
      own.calls.push_back(cast<CallOp>(call));
      calls[action].push_back(cast<CallOp>(call));
    }
  }

  /// Calls what gathers and reduces. Then `schedule` and `actions` have these calls, and only
  /// actions that have one.
  void run() {
    for (std::vector<StageAction> &list : schedule) {
      for (const StageAction &action : list) {
        place(action);
      }
      std::erase_if(list, [&](const StageAction &action) { return !calls.count(action); });
    }
    if (!gathers.empty()) {
      eraseUnusedBefore(root.getBody().front().getTerminator());
    }
    warn(idle[StageAction::Kind::Unshard],
         "UNSHARD has no effect, as their parameters are not gathered once a step");
    warn(idle[StageAction::Kind::ReduceGrad],
         "REDUCE_GRAD has no effect, as no sums of their gradients are reduced once a step");
  }

private:
  void place(const StageAction &action) {
    if (action.isOfMicroBatch()) {
      if (calls.count(action)) {
        use(action);
      }
    } else if (action.kind == StageAction::Kind::Unshard) {
      gather(action);
    } else if (action.kind == StageAction::Kind::ReduceGrad) {
      if (CallOp call = outlineReduction(root, chunks.at(action.chunk))) {
        add(call, action);
      } else {
        idle[action.kind].insert(action.chunk);
      }
    }
  }

  void gather(const StageAction &action) {
    const ChunkCalls &chunk = chunks.at(action.chunk);
    auto [found, isNew] = gathers.try_emplace(action.chunk);
    if (isNew) {
      found->second = outlineGather(root, chunk);
    }
    const std::optional<ChunkGather> &own = found->second;
    if (!own) {
      idle[action.kind].insert(action.chunk);
      return;
    }
    OpBuilder builder(chunk.calls.front());
    func::FuncOp function = own->function;
    auto call =
        CallOp::create(builder, root.getLoc(), function.getResultTypes(), function.getSymName(),
                       ("chunk " + Twine(action.chunk) + " gather").str(), own->inputs);
    markStage(call, chunk.stage);
    add(call, action);
    IRMapping &latest = current[action.chunk];
    latest.map(own->gathered, call->getResults());
  }

  /// Lets the calls of an action use what was gathered last.
  void use(const StageAction &action) {
    auto latest = current.find(action.chunk);
    if (latest != current.end()) {
      for (CallOp call : calls.at(action)) {
        for (OpOperand &operand : call->getOpOperands()) {
          operand.set(latest->second.lookupOrDefault(operand.get()));
        }
      }
    }
  }

  void add(CallOp call, const StageAction &action) {
    calls[action] = {call};
    actions[call] = action;
  }

  void warn(const std::set<int64_t> &numbers, const char *text) {
    if (!numbers.empty() && actions.size() > 0 && root.getSymName() == "step") {
      InFlightDiagnostic warning = root.emitWarning("order-stages: chunks ");
      llvm::interleaveComma(numbers, warning);
      warning << ": " << text;
    }
  }

  func::FuncOp root;
  desc::StageSchedule &schedule;
  Actions &actions;
  std::map<int64_t, ChunkCalls> chunks;
  /// Backward of a chunk that is cut has two.
  std::map<StageAction, SmallVector<CallOp, 2>> calls;
  std::map<int64_t, std::optional<ChunkGather>> gathers;
  /// Of each chunk, what was gathered last in place of each value.
  std::map<int64_t, IRMapping> current;
  /// The chunks that have nothing to do for actions of a kind.
  std::map<StageAction::Kind, std::set<int64_t>> idle;
};

/// Orders the calls of micro-batches' functions, and the ops that bring results of one to another,
/// such as transfers.
class Mover {
public:
  Mover(const Actions &actions, Places places) : actions(actions), places(std::move(places)) {}

  /// Moves these ops to the place of the last of them. What only uses results of calls follows all.
  LogicalResult run(Block &body, const desc::StageSchedule &schedule,
                    const std::function<double(const StageAction &)> &timeOf) {
    findUsers(body);
    for (Operation &op : body) {
      visit(op);
    }
    if (failed(placeTransfers(schedule, timeOf))) {
      return failure();
    }
    Operation *end = steps.back().op->getNextNode();
    llvm::erase_if(users, [&](Operation *op) { return !op->isBeforeInBlock(end); });
    llvm::sort(steps, [&](const Step &a, const Step &b) {
      return std::tuple(eventOf(a), a.part, a.number) < std::tuple(eventOf(b), b.part, b.number);
    });
    for (const Step &step : steps) {
      step.op->moveBefore(end);
    }
    for (Operation *op : users) {
      op->moveBefore(end);
    }
    return success();
  }

private:
  /// An op that stands before an action, is one or a transfer, or stands behind an action.
  struct Step {
    enum Part : uint8_t { Before, Itself, Behind };

    Operation *op = nullptr;
    StageAction action = {};
    Part part = Itself;
    /// The place among the steps before.
    size_t number = 0;
  };

  /// What an op is made of.
  struct Origin {
    StageAction maker;
    /// By a transfer.
    bool isReceived = false;
  };

  /// Returns that of two actions of a stage that comes first in its list.
  const StageAction &earlier(const StageAction &a, const StageAction &b) const {
    return places.at(a).inList <= places.at(b).inList ? a : b;
  }

  /// Finds the first action that needs the result of each op.
  void findUsers(Block &body) {
    for (Operation &op : llvm::reverse(body)) {
      for (Operation *user : op.getUsers()) {
        auto later = neededBy.find(user);
        bool isCall = actions.contains(user);
        if (isCall || later != neededBy.end()) {
          const StageAction action = isCall ? actions.lookup(user) : later->second;
          auto [own, isNew] = neededBy.try_emplace(&op, action);
          own->second = earlier(own->second, action);
        }
      }
    }
  }

  /// Returns the last action that makes an operand of `op`, if one does.
  std::optional<Origin> originOf(Operation &op) const {
    std::optional<Origin> origin;
    for (Value operand : op.getOperands()) {
      auto found = made.find(operand.getDefiningOp());
      if (found == made.end()) {
        continue;
      }
      const Origin &own = found->second;
      bool isLater = origin && !own.isReceived && !origin->isReceived &&
                     earlier(origin->maker, own.maker) == origin->maker;
      origin = !origin || own.isReceived || isLater ? own : *origin;
    }
    return origin;
  }

  void visit(Operation &op) {
    if (actions.contains(&op)) {
      made[&op] = {actions.lookup(&op)};
      add({&op, actions.lookup(&op)});
      return;
    }
    std::optional<Origin> origin = originOf(op);
    if (!origin) {
      return;
    }
    auto transfer = dyn_cast<TransferOp>(op);
    made[&op] = {origin->maker, origin->isReceived || transfer};
    auto user = neededBy.find(&op);
    if (user == neededBy.end()) {
      users.push_back(&op);
    } else if (transfer) {
      numbers[&op] = transfers.size();
      transfers.push_back({origin->maker, user->second, static_cast<int64_t>(transfer.getFrom()),
                           static_cast<int64_t>(transfer.getTo())});
      add({&op});
    } else if (origin->isReceived) {
      // What is received is often a shard of what a call needs.
      add({&op, user->second, Step::Before});
    } else {
      add({&op, origin->maker, Step::Behind});
    }
  }

  void add(Step step) {
    step.number = steps.size();
    steps.push_back(step);
  }

  LogicalResult placeTransfers(const desc::StageSchedule &schedule,
                               const std::function<double(const StageAction &)> &timeOf) {
    auto events = orderTransfers(schedule, transfers, timeOf);
    if (!events) {
      return failure();
    }
    ofTransfers.resize(transfers.size());
    for (auto [number, event] : llvm::enumerate(*events)) {
      (event.transfer ? ofTransfers[*event.transfer] : places.at(event.action).inOrder) = number;
    }
    return success();
  }

  size_t eventOf(const Step &step) const {
    auto number = numbers.find(step.op);
    return number == numbers.end() ? places.at(step.action).inOrder : ofTransfers[number->second];
  }

  const Actions &actions;
  Places places;
  std::vector<ActionTransfer> transfers;
  /// The numbers of transfers, and their places among all events.
  llvm::DenseMap<Operation *, size_t> numbers;
  SmallVector<size_t> ofTransfers;
  llvm::DenseMap<Operation *, StageAction> neededBy;
  llvm::DenseMap<Operation *, Origin> made;
  SmallVector<Step> steps;
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
    if (added.insert({function, unsigned(action.kind)}).second) {
      ofActions[{action.chunk, action.kind}] += own;
    }
    least = own > 0 && (least == 0 || own < least) ? own : least;
  }

  /// Without operations, backward takes twice as long as forward: it has two matmuls for each.
  double of(const StageAction &action) const {
    if (!action.isOfMicroBatch()) {
      return 1; // As a transfer.
    }
    if (least == 0) {
      return action.kind == StageAction::Kind::Backward ? 2 : 1;
    }
    constexpr double kUnits = 64; // Of the shortest action.
    // Backward of a chunk that has the loss alone is in its forward.
    auto own = ofActions.find({action.chunk, action.kind});
    return own == ofActions.end() ? 1 : std::max(1.0, std::round(kUnits * own->second / least));
  }

private:
  FunctionCosts flops;
  llvm::DenseSet<std::pair<Operation *, unsigned>> added;
  std::map<std::pair<int64_t, StageAction::Kind>, double> ofActions;
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
    llvm::MapVector<Operation *, CallOfStage> calls = findCalls(module, root);
    if (calls.empty()) {
      return success();
    }
    int64_t chunks = 0, microBatches = 0;
    for (const auto &[call, own] : calls) {
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
    joinParts(calls, *lists);
    Actions actions;
    ActionTimes lengths(module);
    for (const auto &[call, own] : calls) {
      actions[call] = own.action;
      lengths.add(own.action, own.function);
    }
    auto timeOf = [&](const StageAction &action) { return lengths.of(action); };
    auto result = desc::simulate(*lists, microBatches, timeOf, purpose);
    if (auto *fault = std::get_if<desc::ScheduleFault>(&result)) {
      return module.emitError("order-stages: ") << fault->text;
    }
    Places places = placesOf(*lists);
    for (const auto &[call, own] : calls) {
      auto place = places.find(own.action);
      if (place == places.end() || place->second.stage != own.stage) {
        return call->emitError("order-stages: the schedule does not have ")
               << desc::describe(own.action) << " in stage " << own.stage;
      }
    }
    CollectivesOfSchedule(root, *lists, actions).run();
    Block &body = root.getBody().front();
    if (failed(Mover(actions, placesOf(*lists)).run(body, *lists, timeOf))) {
      return root.emitError("order-stages: stages wait for each other in a circle");
    }
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
      std::optional<desc::GatherPeriod> period = desc::makeGatherPeriod(gather.getValue());
      if (!period) {
        return module.emitError("order-stages: unknown period '")
               << gather.getValue() << "' of gathers, expected step, run or micro-batch";
      }
      return desc::withGathers(*known, *period);
    }
    if (!llvm::StringRef(text).contains(';')) {
      return module.emitError("order-stages: unknown schedule '")
             << text << "', expected gpipe, 1f1b, zbh1, zbv, or the actions of each stage";
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

  /// Returns the action of each call of a function of a micro-batch. Of a chunk's functions the one
  /// that is called first is forward.
  static llvm::MapVector<Operation *, CallOfStage> findCalls(ModuleOp module, func::FuncOp root) {
    llvm::MapVector<Operation *, CallOfStage> calls;
    SymbolTable symbols(module);
    std::map<int64_t, func::FuncOp> forward;
    llvm::DenseMap<Operation *, int64_t> counts;
    for (auto call : root.getOps<CallOp>()) {
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      std::optional<int64_t> stage = markedStageOf(callee);
      if (!stage || !callee->hasAttr(kMicroBatchAttrName)) {
        continue;
      }
      const int64_t chunk = *markedChunkOf(callee);
      bool isForward = forward.try_emplace(chunk, callee).first->second == callee;
      auto kind = isForward                                   ? StageAction::Kind::Forward
                  : callee->hasAttr(kWeightGradientsAttrName) ? StageAction::Kind::WeightGradients
                                                              : StageAction::Kind::InputGradients;
      calls[call] = {{chunk, kind, counts[callee]++}, *stage, callee};
    }
    return calls;
  }

  /// Calls of both parts are one action where the schedule has backward as a whole.
  static void joinParts(llvm::MapVector<Operation *, CallOfStage> &calls,
                        const desc::StageSchedule &lists) {
    std::set<StageAction> wholes;
    for (const std::vector<StageAction> &list : lists) {
      wholes.insert(list.begin(), list.end());
    }
    for (auto &[call, own] : calls) {
      const StageAction whole = {own.action.chunk, StageAction::Kind::Backward,
                                 own.action.microBatch};
      own.action = own.action.isOfBackward() && wholes.contains(whole) ? whole : own.action;
    }
  }
};

} // namespace
} // namespace weft
