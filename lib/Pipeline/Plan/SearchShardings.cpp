//===- SearchShardings.cpp - the sharding of every value, by cost ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "weft/Description/Machine.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"
#include "weft/Pipeline/ReshardProblem.h"
#include "weft/Planner/ProblemText.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SEARCHSHARDINGSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// Writes a choice into types, and a reshard wherever a value is needed in another sharding.
class Application {
public:
  Application(ShardingProblem &shardings, const planner::Choice &choice, MeshAttr mesh,
              const cost::Predictor *machine)
      : shardings(shardings), choice(choice), prices(mesh.getSizes(), machine) {}

  void run() {
    for (auto &[op, end] : shardings.variables) {
      auto variable = cast<VariableOp>(op);
      variable.setType(cast<RankedTensorType>(sharded(variable.getTensorType(), end)));
    }
    for (auto &[value, route] : shardings.routes) {
      Value(value).setType(sharded(value.getType(), route.from));
    }
    for (auto &[op, ends] : shardings.results) {
      auto function = cast<func::FuncOp>(op);
      SmallVector<Type> results;
      for (auto [type, end] : llvm::zip(function.getResultTypes(), ends)) {
        results.push_back(end ? sharded(type, end) : type);
      }
      function.setFunctionType(
          FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), results));
    }
    for (auto &[value, route] : shardings.routes) {
      move(value, route.early);
      move(value, route.late);
    }
  }

  unsigned reshards = 0;
  /// What the problem counts for reshards that another use of the same value has made already, or
  /// that the value as it was defined spares.
  double spared = 0;

private:
  Type sharded(Type type, const ShardingEnd *end) const {
    return withSharding(cast<RankedTensorType>(type), shardings.shardingOf(type, *end, choice));
  }

  /// Each use gets the value as it was defined if that fits, else from what the uses share.
  void move(Value value, const SharedUses &group) {
    DenseMap<Type, Value> done;
    Value shared = value;
    if (group.shared) {
      shared = reshard(value, sharded(value.getType(), group.shared), group, done);
    }
    for (auto &[operand, end] : group.uses) {
      Type wanted = sharded(value.getType(), end);
      if (value.getType() == wanted || done.contains(wanted)) {
        spare(value, shared.getType(), wanted);
      }
      operand->set(value.getType() == wanted ? value : reshard(shared, wanted, group, done));
    }
  }

  void spare(Value value, Type from, Type to) {
    if (from != to) {
      planner::ReshardProblem problem =
          makeReshardProblem(cast<RankedTensorType>(from), getSharding(from), getSharding(to));
      spared += shardings.timesOf(value.getParentBlock()->getParentOp()) *
                planner::cheapestWay(problem, std::ref(prices)).cost;
    }
  }

  /// Just before the first user, so that what is gathered does not lie about.
  Value reshard(Value value, Type type, const SharedUses &group, DenseMap<Type, Value> &done) {
    if (value.getType() == type) {
      return value;
    }
    Value &known = done[type];
    if (!known) {
      Operation *first = group.uses.front().first->getOwner();
      for (auto &[operand, end] : group.uses) {
        Operation *user = operand->getOwner();
        first = user->isBeforeInBlock(first) ? user : first;
      }
      OpBuilder builder(first);
      known = ReshardOp::create(builder, value.getLoc(), type, value);
      ++reshards;
    }
    return known;
  }

  ShardingProblem &shardings;
  const planner::Choice &choice;
  planner::Prices prices;
};

/// The same problem with one option for every op and variable, those of `choice`: that is what a
/// plan says, and reshards follow.
planner::Problem settled(const ShardingProblem &shardings, const planner::Choice &choice) {
  planner::Problem problem = shardings.problem;
  std::vector<bool> isSettled(problem.nodes.size());
  for (auto &[variable, end] : shardings.variables) {
    isSettled[end->node] = true;
  }
  for (auto &[value, route] : shardings.routes) {
    if (isa_and_nonnull<ShardableOpInterface>(value.getDefiningOp())) {
      isSettled[route.from->node] = true;
    }
  }
  for (size_t node = 0; node < choice.size(); ++node) {
    std::vector<planner::Option> &options = problem.nodes[node].options;
    if (isSettled[node]) {
      options = {options[choice[node]]};
    }
  }
  for (planner::Edge &edge : problem.edges) {
    if (isSettled[edge.a]) {
      edge.rows = {edge.rows[choice[edge.a]]};
    }
    if (isSettled[edge.b]) {
      edge.columns = {edge.columns[choice[edge.b]]};
    }
  }
  return problem;
}

/// As planner::solve, which need not know of nodes with one option: what these take is added to
/// what their neighbors do.
planner::Solution solveOpen(const planner::Problem &problem) {
  planner::Problem open;
  open.tables = problem.tables;
  open.bytesLimit = problem.bytesLimit;
  std::vector<std::optional<uint32_t>> numbers;
  double seconds = 0;
  for (const planner::Node &node : problem.nodes) {
    if (node.options.size() > 1) {
      numbers.push_back(uint32_t(open.nodes.size()));
      open.nodes.push_back(node);
    } else {
      numbers.push_back(std::nullopt);
      seconds += node.options[0].seconds;
      open.bytesLimit -= node.options[0].bytes;
    }
  }
  open.bytesLimit = std::max(open.bytesLimit, 0.0);
  for (const planner::Edge &edge : problem.edges) {
    std::optional<uint32_t> a = numbers[edge.a], b = numbers[edge.b];
    if (a && b) {
      open.edges.push_back(edge);
      open.edges.back().a = *a;
      open.edges.back().b = *b;
      continue;
    }
    for (uint32_t option = 0; a && option < edge.rows.size(); ++option) {
      open.nodes[*a].options[option].seconds += problem.seconds(edge, option, 0);
    }
    for (uint32_t option = 0; b && option < edge.columns.size(); ++option) {
      open.nodes[*b].options[option].seconds += problem.seconds(edge, 0, option);
    }
    seconds += a || b ? 0 : problem.seconds(edge, 0, 0);
  }
  planner::Solution solution;
  if (!open.nodes.empty()) {
    solution = planner::solve(open);
  }
  auto expand = [&](planner::Choice &choice) {
    if (choice.empty() && !open.nodes.empty()) {
      return;
    }
    planner::Choice whole;
    for (std::optional<uint32_t> number : numbers) {
      whole.push_back(number ? choice[*number] : 0);
    }
    choice = std::move(whole);
  };
  expand(solution.choice);
  expand(solution.smallest);
  solution.lowerBound += seconds;
  return solution;
}

/// The choice that was found that fits, or else the smallest.
const planner::Choice &choiceOf(const planner::Solution &solution) {
  return solution.found() ? solution.choice : solution.smallest;
}

struct SearchShardingsPass : impl::SearchShardingsPassBase<SearchShardingsPass> {
  using Base::Base;
  SearchShardingsPass(const SearchShardingsPassOptions &options, SearchReport *report)
      : Base(options), report(report) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshAttr mesh = getMesh(module);
    if (!mesh) {
      module.emitError("search-shardings: expected a module with a mesh, see apply-plan");
      return signalPassFailure();
    }
    auto predictor = makePredictor(module, getArgument(), machine);
    if (failed(predictor)) {
      return signalPassFailure();
    }
    LayoutSpaces spaces(mesh);
    ReshardTables tables(spaces, predictor->get());
    // The step decides over variables, and the other functions follow.
    SmallVector<func::FuncOp> roots;
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.isPrivate()) {
        roots.insert(function.getSymName() == "step" ? roots.begin() : roots.end(), function);
      }
    }
    decider = roots.empty() ? nullptr : roots.front();
    for (func::FuncOp root : roots) {
      if (failed(decide(root, tables))) {
        return signalPassFailure();
      }
    }
    for (auto variable : module.getOps<VariableOp>()) {
      settleUnused(variable, mesh);
    }
    module.walk([](Operation *op) { op->removeAttr(kPinsAttrName); });
    for (auto function : module.getOps<func::FuncOp>()) {
      forgetMayPend(function);
    }
  }

  static void forgetMayPend(func::FuncOp function) {
    auto name = StringAttr::get(function.getContext(), kMayPendAttrName);
    for (unsigned number = 0; number < function.getNumArguments(); ++number) {
      function.removeArgAttr(number, name);
    }
    for (unsigned number = 0; number < function.getNumResults(); ++number) {
      function.removeResultAttr(number, name);
    }
  }

  LogicalResult decide(func::FuncOp root, ReshardTables &tables) {
    ShardingProblem shardings(getOperation(), tables);
    if (failed(shardings.build(root))) {
      return failure();
    }
    if (tables.machine) {
      shardings.problem.bytesLimit = tables.machine->memoryBytes();
    }
    if (shardings.problem.nodes.empty()) {
      return success();
    }
    if (root == decider && !problem.empty() && failed(writeProblem(root, shardings.problem))) {
      return failure();
    }
    planner::Solution solution = solveOpen(shardings.problem);
    // What the program takes is known exactly only when it is scheduled, and is refused there.
    planner::Choice choice = choiceOf(solution);
    if (choice.empty()) {
      return root.emitError("search-shardings: no choice of shardings keeps all rules");
    }
    settle(shardings, choice);
    Application application(shardings, choice, getMesh(root), tables.machine);
    application.run();
    if (report && root == decider) {
      planner::Evaluation evaluation = planner::evaluate(shardings.problem, choice);
      double seconds = evaluation.seconds - application.spared;
      *report = {seconds, evaluation.bytes, std::min(solution.lowerBound, seconds),
                 solution.found(), shardings.problem.nodes.size()};
    }
    numReshards += application.reshards;
    numNodes += shardings.problem.nodes.size();
    numOptionsLeft += solution.optionsLeft;
    width.updateMax(solution.width);
    return success();
  }

  LogicalResult writeProblem(func::FuncOp root, const planner::Problem &found) {
    llvm::Error error = llvm::writeToOutput(problem, [&](llvm::raw_ostream &stream) {
      stream << planner::printProblem(found);
      return llvm::Error::success();
    });
    return error ? root.emitError("search-shardings: cannot write '")
                       << problem << "': " << llvm::toString(std::move(error))
                 : success();
  }

  /// Chooses again all that follows from how ops and variables are sharded, so that it is the same
  /// whether these were found or come from a plan.
  static void settle(const ShardingProblem &shardings, planner::Choice &choice) {
    planner::Problem problem = settled(shardings, choice);
    planner::Solution again = solveOpen(problem);
    for (size_t node = 0; node < choice.size(); ++node) {
      bool wasOpen =
          problem.nodes[node].options.size() == shardings.problem.nodes[node].options.size();
      if (wasOpen) {
        choice[node] = choiceOf(again)[node];
      }
    }
  }

  /// A variable that no function reads or assigns is whole where it is not pinned.
  void settleUnused(VariableOp variable, MeshAttr mesh) {
    RankedTensorType type = variable.getTensorType();
    if (getSharding(type)) {
      return;
    }
    ShardingAttr sharding = ShardingAttr::getReplicated(mesh, type.getRank());
    if (auto pins = variable->getAttrOfType<ArrayAttr>(kPinsAttrName)) {
      for (auto [dim, pin] : llvm::enumerate(pins)) {
        if (auto axes = dyn_cast<ArrayAttr>(pin)) {
          sharding = withDim(sharding, int64_t(dim), axes);
        }
      }
    }
    variable.setType(withSharding(type, sharding));
  }

private:
  SearchReport *report = nullptr;
  /// The function that decides over variables.
  func::FuncOp decider;
};

} // namespace

std::unique_ptr<Pass> createSearchShardingsPass(const SearchShardingsPassOptions &options,
                                                SearchReport *report) {
  return std::make_unique<SearchShardingsPass>(options, report);
}

} // namespace weft
