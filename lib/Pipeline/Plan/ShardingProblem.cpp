//===- ShardingProblem.cpp - a function as a planning problem -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "HomedValues.h"
#include "OpSeconds.h"
#include "PermutationPrice.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {

/// Returns true if the function has shardings already. It may have no tensor arguments.
static bool isSharded(func::FuncOp function) {
  auto isOneSharded = [](Type type) { return isa<RankedTensorType>(type) && getSharding(type); };
  return llvm::any_of(function.getArgumentTypes(), isOneSharded) ||
         llvm::any_of(function.getOps(), [&](Operation &op) {
           return llvm::any_of(op.getResultTypes(), isOneSharded);
         });
}

static std::string placeOf(Location location) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << location;
  return text;
}

/// Returns the calls that `argument` is passed to, if it has no other users.
static std::string usesOf(BlockArgument argument) {
  std::vector<std::string> places;
  for (OpOperand &use : argument.getUses()) {
    auto call = dyn_cast<CallOp>(use.getOwner());
    if (!call) {
      return "";
    }
    places.push_back(call.getCallee().str() + " #" + std::to_string(use.getOperandNumber()));
  }
  llvm::sort(places);
  return llvm::join(places, "; ");
}

/// Returns the number of the function's result that `value` is.
static std::string sourceOf(Value value) {
  auto call = value.getDefiningOp<CallOp>();
  return call ? call.getCallee().str() + " #" +
                    std::to_string(cast<OpResult>(value).getResultNumber())
              : "";
}

ShardingProblem::ShardingProblem(ModuleOp module, ReshardTables &reshardTables,
                                 ByteSeconds *byteSeconds)
    : module(module), reshardTables(reshardTables), byteSeconds(byteSeconds),
      spaces(reshardTables.spaces), symbols(module), places(symbols) {}

LogicalResult ShardingProblem::build(func::FuncOp root) {
  if (failed(countCalls(root, 1))) {
    return failure();
  }
  peakPoints = findPeakPoints(root, symbols);
  for (auto function : module.getOps<func::FuncOp>()) {
    bool reads = function == root || !function.getOps<ReadOp>().empty();
    if (calls.contains(function) && reads) {
      places.add(function);
    }
  }
  addPinnedLayouts();
  if (failed(declareVariables())) {
    return failure();
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (calls.contains(function)) {
      declare(function);
    }
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    if (calls.contains(function) && failed(visit(function))) {
      return failure();
    }
  }
  addMemory();
  connectRoutes();
  orderNodes(root);
  return success();
}

/// Lets values have the layouts that pins give to ops, also where a search considers few.
void ShardingProblem::addPinnedLayouts() {
  if (spaces.areAllSearched()) {
    return;
  }
  module.walk([&](ShardableOpInterface op) {
    if (!op->hasAttr(kPinsAttrName) || !calls.contains(op->getParentOfType<func::FuncOp>())) {
      return;
    }
    for (const OpOption &option : enumerateOptions(op, spaces)) {
      auto add = [&](TypeRange types, ArrayRef<uint32_t> layouts) {
        for (auto [type, layout] : llvm::zip(types, layouts)) {
          if (auto tensor = dyn_cast<RankedTensorType>(type)) {
            spaces.add(tensor.getRank(), layout);
          }
        }
      };
      add(op->getOperandTypes(), option.operands);
      add(op->getResultTypes(), option.results);
    }
  });
}

/// Returns true if `value` is an argument of a function in which a call of `peakPoints` passes it,
/// and the argument is held.
static bool isHeld(Value value, ArrayRef<Operation *> peakPoints) {
  auto argument = dyn_cast<BlockArgument>(value);
  return argument && llvm::any_of(peakPoints, [&](Operation *op) {
           auto call = dyn_cast<CallOp>(op);
           auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
           return call && call.getCallee() == function.getSymName() &&
                  isHeldArgument(call->getOpOperand(argument.getArgNumber()));
         });
}

/// Counts the calls of each function. Does not enter functions that have shardings already.
LogicalResult ShardingProblem::countCalls(func::FuncOp function, double times) {
  if (function.isExternal()) {
    return function.emitError("search-shardings: expected a function with a body");
  }
  calls[function] += times;
  for (auto call : function.getOps<CallOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (isSharded(callee)) {
      continue;
    }
    if (failed(countCalls(callee, times))) {
      return failure();
    }
    for (OpOperand &operand : call->getOpOperands()) {
      auto pins = isHeldArgument(operand)
                      ? heldBehind(operand.get())->getAttrOfType<ArrayAttr>(kPinsAttrName)
                      : ArrayAttr();
      if (pins) { // Without terms: nothing is pending.
        auto rank = cast<RankedTensorType>(operand.get().getType()).getRank();
        heldPins[callee.getArgument(operand.getOperandNumber())] =
            ArrayAttr::get(pins.getContext(), pins.getValue().take_front(size_t(rank)));
      }
    }
  }
  return success();
}

double ShardingProblem::timesOf(Operation *op) {
  auto function = dyn_cast<func::FuncOp>(op);
  return calls.lookup(function ? function : op->getParentOfType<func::FuncOp>());
}

void ShardingProblem::declare(func::FuncOp function) {
  Operation *done = function.getBody().front().getTerminator();
  for (BlockArgument argument : function.getArguments()) {
    unsigned number = argument.getArgNumber();
    NamedAttrList attributes;
    if (DictionaryAttr given = function.getArgAttrDict(number)) {
      attributes.append(given.getValue());
    }
    if (ArrayAttr pins = heldPins.lookup(argument)) {
      attributes.set(kPinsAttrName, pins);
    }
    arguments[function].push_back(declareBorder(function, "argument", number, argument.getType(),
                                                attributes.getDictionary(function.getContext()),
                                                usesOf(argument)));
  }
  for (auto [number, value] : llvm::enumerate(done->getOperands())) {
    results[function].push_back(declareBorder(function, "result", unsigned(number), value.getType(),
                                              function.getResultAttrDict(unsigned(number)),
                                              sourceOf(value)));
  }
}

/// Values that go to the same places of functions, or come from the same, share one layout, unless
/// their pins differ.
const ShardingEnd *ShardingProblem::declareBorder(func::FuncOp function, StringRef what,
                                                  unsigned number, Type type,
                                                  DictionaryAttr attributes,
                                                  const std::string &kind) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor) {
    return nullptr;
  }
  std::string name = (function.getSymName() + " " + what).str();
  const ShardingEnd *fresh = nullptr;
  bool pending = attributes && attributes.contains(kMayPendAttrName);
  auto pins = attributes ? attributes.getAs<ArrayAttr>(kPinsAttrName) : ArrayAttr();
  const ShardingEnd *&end =
      kind.empty() ? fresh : borderKinds[{name + " " + kind, pins.getAsOpaquePointer()}];
  if (!end) {
    end = addValue(name + " " + std::to_string(number), tensor, pending, pins);
  }
  return end;
}

LogicalResult ShardingProblem::visit(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    if (isa<RankedTensorType>(argument.getType())) {
      routes[argument].from = arguments[function][argument.getArgNumber()];
    }
  }
  for (Operation &op : function.getOps()) {
    if (failed(visit(op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult ShardingProblem::visit(Operation &op) {
  if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
    visitShardable(shardable);
  } else if (auto read = dyn_cast<ReadOp>(op)) {
    routes[read.getOutput()].from = variables[symbols.lookup(read.getVariable())];
  } else if (auto assign = dyn_cast<AssignOp>(op)) {
    use(assign.getValueMutable(), variables[symbols.lookup(assign.getVariable())]);
  } else if (auto observe = dyn_cast<ObserveOp>(op)) {
    // Any layout that is not pending. Observed values from the same end share a node.
    auto type = cast<RankedTensorType>(observe.getValue().getType());
    const ShardingEnd *&end = observed[routes[observe.getValue()].from->number];
    end = end ? end : addValue("observed " + observe.getName().str(), type, /*pending=*/false);
    use(observe.getValueMutable(), end);
  } else if (auto call = dyn_cast<CallOp>(op)) {
    visitCall(call);
  } else if (auto done = dyn_cast<func::ReturnOp>(op)) {
    for (OpOperand &operand : done->getOpOperands()) {
      use(operand, results[done->getParentOfType<func::FuncOp>()][operand.getOperandNumber()]);
    }
  } else if (llvm::any_of(op.getResultTypes(), llvm::IsaPred<RankedTensorType>)) {
    return op.emitOpError("search-shardings: says nothing of how it may be sharded");
  }
  return success();
}

void ShardingProblem::visitCall(CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (!calls.contains(callee)) {
    // The function has shardings already.
    auto given = [&](Type type) -> const ShardingEnd * {
      ShardingAttr sharding = getSharding(type);
      return sharding
                 ? addLayouts("given", cast<RankedTensorType>(type), {spaces.numberOf(sharding)})
                 : nullptr;
    };
    arguments[callee] = llvm::map_to_vector(callee.getArgumentTypes(), given);
    results[callee] = llvm::map_to_vector(callee.getResultTypes(), given);
  }
  for (OpOperand &operand : call->getOpOperands()) {
    use(operand, arguments[callee][operand.getOperandNumber()]);
  }
  for (OpResult result : call->getResults()) {
    if (isa<RankedTensorType>(result.getType())) {
      routes[result].from = results[callee][result.getResultNumber()];
    }
  }
}

void ShardingProblem::visitShardable(ShardableOpInterface op) {
  OpNode *known = nullptr;
  if (places.holds(op) && ValuePlaces::isSimple(op)) {
    auto operand = llvm::find_if(
        op->getOperands(), [](Value value) { return isa<RankedTensorType>(value.getType()); });
    const ShardingEnd *from = operand == op->operand_end() ? nullptr : routes[*operand].from;
    known = &opKinds[{places.kindOf(op), from, places.of(op->getResult(0))}];
  }
  OpNode made;
  bool isKnown = known && !known->results.empty();
  if (isKnown) {
    for (auto [option, seconds] : llvm::zip(problem.nodes[known->node].options, known->seconds)) {
      option.seconds += seconds;
    }
  } else {
    made = addOp(op);
  }
  const OpNode &node = isKnown ? *known : made;
  for (OpOperand &operand : op->getOpOperands()) {
    use(operand, node.operands[operand.getOperandNumber()]);
  }
  for (OpResult result : op->getResults()) {
    routes[result].from = node.results[result.getResultNumber()];
  }
  if (known && !isKnown) {
    *known = std::move(made);
  }
}

OpNode ShardingProblem::addOp(ShardableOpInterface op) {
  std::vector<OpOption> options = enumerateOptions(op, spaces);
  FactorRule rule = op.getFactorRule();
  OpSeconds seconds(op, rule, spaces, reshardTables.machine, byteSeconds);
  double times = timesOf(op);
  OpNode made;
  std::vector<planner::Option> priced;
  ArrayRef<int64_t> mesh = spaces.getMesh().getSizes();
  double cheapest = spaces.areAllSearched() ? seconds.leastPadded(mesh) : seconds.leastShared(mesh);
  for (OpOption &option : options) {
    cheapest = std::min(cheapest, seconds.least(option));
    double round = pricePermutation(op, rule, option, spaces, std::ref(reshardTables.prices));
    made.seconds.push_back(times * (seconds.of(option) + round));
    priced.push_back({std::move(option.name), made.seconds.back(), 0});
  }
  leastSeconds += options.empty() ? 0 : times * cheapest;
  made.node = addNode(op->getName().stripDialect().str() + " of " + placeOf(op->getLoc()),
                      std::move(priced));
  auto endOf = [&](Type type, SmallVector<uint32_t, 8> OpOption::*values, size_t number,
                   ReductionKind reduction) -> const ShardingEnd * {
    if (!isa<RankedTensorType>(type)) {
      return nullptr;
    }
    std::vector<uint32_t> layouts;
    layouts.reserve(options.size());
    for (const OpOption &option : options) {
      layouts.push_back((option.*values)[number]);
    }
    return addEnd(made.node, type, std::move(layouts), reduction);
  };
  for (auto [number, type] : llvm::enumerate(op->getOperandTypes())) {
    made.operands.push_back(endOf(type, &OpOption::operands, number, ReductionKind::Sum));
  }
  for (auto [number, type] : llvm::enumerate(op->getResultTypes())) {
    made.results.push_back(endOf(type, &OpOption::results, number, rule.reductions[number]));
  }
  return made;
}

/// Values that are live at the peak points, of the root and of called functions, take memory in the
/// layout of their definition; variables always take memory. A held argument counts for its caller.
void ShardingProblem::addMemory() {
  for (auto &[value, route] : routes) {
    Operation *definition = value.getDefiningOp();
    bool isOnTheWay = llvm::any_of(peakPoints, [&, block = value.getParentBlock()](Operation *op) {
      return op->getBlock() == block;
    });
    bool isBefore = !definition || !(isa<ReadOp>(definition) || isLate(definition));
    if (!isOnTheWay || !isBefore || route.late.uses.empty() || isHeld(value, peakPoints)) {
      continue;
    }
    std::vector<planner::Option> &options = problem.nodes[route.from->node].options;
    for (size_t option = 0; option < options.size(); ++option) {
      options[option].bytes +=
          bytesOf(cast<RankedTensorType>(value.getType()), route.from->layouts[option]);
    }
  }
}

void ShardingProblem::connectRoutes() {
  for (auto &[value, route] : routes) {
    double times = timesOf(value.getParentBlock()->getParentOp());
    connectUses(value, route, route.early, times);
    connectUses(value, route, route.late, times);
  }
}

void ShardingProblem::connectUses(Value value, const ValueRoute &route, SharedUses &group,
                                  double times) {
  auto type = cast<RankedTensorType>(value.getType());
  const ShardingEnd *from = route.from;
  if (llvm::any_of(group.uses, [](auto &use) { return keepsLayout(*use.first); })) {
    for (auto &[operand, end] : group.uses) {
      connect(type, *from, *end, times, keepsLayout(*operand));
    }
    return;
  }
  if (group.uses.size() > 1) {
    std::vector<uint32_t> key = {from->number};
    for (auto &[operand, end] : group.uses) {
      key.push_back(end->number);
    }
    const ShardingEnd *&known = sharedEnds[key];
    if (!known) {
      known = addValue("value of " + placeOf(value.getLoc()), type, /*pending=*/true);
    }
    group.shared = known;
    connect(type, *from, *known, times);
    from = known;
  }
  for (auto &[operand, end] : group.uses) {
    connect(type, *from, *end, times);
  }
}

uint32_t ShardingProblem::addNode(std::string name, std::vector<planner::Option> options) {
  problem.nodes.push_back({std::move(name), std::move(options)});
  return uint32_t(problem.nodes.size() - 1);
}

const ShardingEnd *ShardingProblem::addEnd(uint32_t node, Type type, std::vector<uint32_t> layouts,
                                           ReductionKind reduction) {
  spaces.add(cast<RankedTensorType>(type).getRank(), layouts);
  ends.push_back({node, uint32_t(ends.size()), std::move(layouts), reduction});
  return &ends.back();
}

const ShardingEnd *ShardingProblem::addValue(std::string name, RankedTensorType type, bool pending,
                                             ArrayAttr pins) {
  if (ShardingAttr given = getSharding(type)) {
    return addLayouts(std::move(name), type, {spaces.numberOf(given)});
  }
  return addLayouts(std::move(name), type, enumerateLayouts(type, spaces, pending, pins));
}

const ShardingEnd *ShardingProblem::addLayouts(std::string name, RankedTensorType type,
                                               std::vector<uint32_t> layouts) {
  std::vector<planner::Option> options;
  options.reserve(layouts.size());
  for (uint32_t layout : layouts) {
    options.push_back({describe(layout, type), 0, 0});
  }
  return addEnd(addNode(std::move(name), std::move(options)), type, std::move(layouts));
}

const std::string &ShardingProblem::describe(uint32_t layout, RankedTensorType type) {
  auto [known, isNew] = descriptions.try_emplace({type.getRank(), layout});
  if (isNew) {
    llvm::raw_string_ostream stream(known->second);
    ShardingAttr sharding = spaces.sharding(type.getRank(), layout, ReductionKind::Sum);
    llvm::interleaveComma(sharding.getDims(), stream);
    if (!sharding.isReduced()) {
      stream << " pending " << sharding.getUnreduced();
    }
  }
  return known->second;
}

void ShardingProblem::use(OpOperand &operand, const ShardingEnd *end) {
  if (end) {
    ValueRoute &route = routes[operand.get()];
    (isLate(operand.getOwner()) ? route.late : route.early).uses.push_back({&operand, end});
  }
}

bool ShardingProblem::isLate(Operation *op) const {
  return llvm::any_of(peakPoints, [&](Operation *turn) {
    return turn->getBlock() == op->getBlock() && turn->isBeforeInBlock(op);
  });
}

/// Returns the place of each layout in an ascending list that has it.
static std::vector<uint32_t> placesAmong(ArrayRef<uint32_t> list, ArrayRef<uint32_t> layouts) {
  std::vector<uint32_t> places;
  for (uint32_t layout : layouts) {
    places.push_back(uint32_t(llvm::lower_bound(list, layout) - list.begin()));
  }
  return places;
}

void ShardingProblem::connect(RankedTensorType type, const ShardingEnd &from, const ShardingEnd &to,
                              double times, bool areEqual) {
  uint32_t table = areEqual ? tableOfEqual(type) : tableOf(type, from.reduction);
  std::vector<uint32_t> rows, columns;
  if (areEqual) {
    rows = placesAmong(spaces.searched(type.getRank()), from.layouts);
    columns = placesAmong(spaces.searched(type.getRank()), to.layouts);
  } else {
    const ReshardTable &reshards = reshardTableOf(type, from.reduction);
    rows = reshards.placesOf(from.layouts);
    columns = reshards.placesOf(to.layouts);
  }
  if (from.node == to.node) {
    // A value that an op uses twice, or that goes from a layer to the next.
    const planner::Table &costs = problem.tables[table];
    for (size_t option = 0; option < from.layouts.size(); ++option) {
      problem.nodes[from.node].options[option].seconds +=
          times * costs.seconds[size_t(rows[option]) * costs.columns + columns[option]];
    }
    return;
  }
  auto [known, isNew] = edges.try_emplace({from.number, to.number}, problem.edges.size());
  if (isNew) {
    problem.edges.push_back(
        {from.node, to.node, table, std::move(rows), std::move(columns), times});
  } else {
    problem.edges[known->second].times += times;
  }
}

const ReshardTable &ShardingProblem::reshardTableOf(RankedTensorType type,
                                                    ReductionKind reduction) {
  return reshardTables.of(withSharding(type, {}), reduction);
}

uint32_t ShardingProblem::tableOf(RankedTensorType type, ReductionKind reduction) {
  RankedTensorType whole = withSharding(type, {});
  auto [known, isNew] =
      tables.try_emplace({whole.getAsOpaquePointer(), reduction}, uint32_t(problem.tables.size()));
  if (isNew) {
    problem.tables.push_back(reshardTableOf(type, reduction).costs);
  }
  return known->second;
}

/// A table that allows no reshard.
uint32_t ShardingProblem::tableOfEqual(RankedTensorType type) {
  auto [known, isNew] = equalTables.try_emplace(type.getRank(), uint32_t(problem.tables.size()));
  if (isNew) {
    auto count = uint32_t(spaces.searched(type.getRank()).size());
    std::vector<double> seconds(size_t(count) * count, planner::kInfinity);
    for (uint32_t layout = 0; layout < count; ++layout) {
      seconds[size_t(layout) * count + layout] = 0;
    }
    problem.tables.push_back({"equal", count, count, std::move(seconds), /*isShortest=*/true});
  }
  return known->second;
}

double ShardingProblem::bytesOf(RankedTensorType type, uint32_t layout) {
  return double(countBytes(type)) / double(spaces.of(type).shards(layout));
}

ShardingAttr ShardingProblem::shardingOf(Type type, const ShardingEnd &end,
                                         const planner::Choice &choice) const {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  return spaces.sharding(rank, end.layouts[choice[end.node]], end.reduction);
}

} // namespace weft
