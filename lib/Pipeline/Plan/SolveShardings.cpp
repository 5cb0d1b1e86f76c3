//===- SolveShardings.cpp - the choice of a sharding problem --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveShardings.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {

/// Returns the same problem with only the option of `choice` for every op and variable, as a plan
/// pins them. Only reshards are left to choose.
static planner::Problem settled(const ShardingProblem &shardings, const planner::Choice &choice) {
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

/// Like planner::solve, but without nodes of one option: adds their costs to those of their
/// neighbours.
static planner::Solution solveOpen(const planner::Problem &problem) {
  planner::Solution solution;
  if (llvm::any_of(problem.nodes, [](const planner::Node &node) { return node.options.empty(); })) {
    solution.lowerBound = planner::kInfinity;
    return solution; // Pins leave a value no sharding.
  }
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
  if (seconds == planner::kInfinity) {
    solution.lowerBound = seconds;
    return solution; // Nodes of one option conflict.
  }
  bool isOpen = !open.nodes.empty();
  if (isOpen) {
    solution = planner::solve(open);
  }
  auto expand = [&](planner::Choice &choice) {
    planner::Choice whole;
    for (std::optional<uint32_t> number : numbers) {
      whole.push_back(number ? choice[*number] : 0);
    }
    choice = std::move(whole);
  };
  if (isOpen ? solution.found() : open.bytesLimit >= 0) {
    expand(solution.choice);
  }
  if (!isOpen || !solution.smallest.empty()) {
    expand(solution.smallest);
  }
  solution.lowerBound += seconds;
  return solution;
}

/// Returns the choice that fits or, if none was found, the smallest.
static const planner::Choice &choiceOf(const planner::Solution &solution) {
  return solution.found() ? solution.choice : solution.smallest;
}

/// Chooses all other nodes again from the options of ops and variables, so that the result is the
/// same whether a search or a plan chose these.
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

ShardingChoice chooseShardings(const ShardingProblem &shardings) {
  ShardingChoice found;
  found.solution = solveOpen(shardings.problem);
  found.choice = choiceOf(found.solution);
  if (!found.choice.empty()) {
    settle(shardings, found.choice);
  }
  return found;
}

/// Returns the same problem with only these options of `node`.
static planner::Problem restricted(planner::Problem problem, uint32_t node,
                                   ArrayRef<uint32_t> options) {
  auto keep = [&](auto &list) {
    std::remove_reference_t<decltype(list)> kept;
    for (uint32_t option : options) {
      kept.push_back(list[option]);
    }
    list = std::move(kept);
  };
  keep(problem.nodes[node].options);
  for (planner::Edge &edge : problem.edges) {
    if (edge.a == node) {
      keep(edge.rows);
    }
    if (edge.b == node) {
      keep(edge.columns);
    }
  }
  return problem;
}

ShardingChoice chooseShardingsWith(const ShardingProblem &shardings, uint32_t node,
                                   ArrayRef<uint32_t> options) {
  ShardingChoice found;
  found.solution = solveOpen(restricted(shardings.problem, node, options));
  found.choice = choiceOf(found.solution);
  if (!found.choice.empty()) {
    found.choice[node] = options[found.choice[node]];
    settle(shardings, found.choice);
  }
  return found;
}

namespace {

/// Computes the spared seconds of one value.
class Sparing {
public:
  Sparing(ShardingProblem &shardings, const planner::Choice &choice, planner::Prices &prices)
      : shardings(shardings), choice(choice), prices(prices) {}

  double of(Value value, const ShardingEnd &from, const SharedUses &group) {
    Type own = sharded(value, from), shared = group.shared ? sharded(value, *group.shared) : own;
    llvm::SmallDenseSet<Type> done = {shared};
    double spared = 0;
    for (auto &[operand, end] : group.uses) {
      Type wanted = sharded(value, *end);
      bool isThere = !done.insert(wanted).second;
      if (wanted != shared && (wanted == own || isThere)) {
        spared += price(value, shared, wanted);
      }
    }
    return spared;
  }

private:
  Type sharded(Value value, const ShardingEnd &end) const {
    return withSharding(cast<RankedTensorType>(value.getType()),
                        shardings.shardingOf(value.getType(), end, choice));
  }

  double price(Value value, Type from, Type to) {
    planner::ReshardProblem problem =
        makeReshardProblem(cast<RankedTensorType>(from), getSharding(from), getSharding(to));
    return shardings.timesOf(value.getParentBlock()->getParentOp()) *
           planner::cheapestPath(problem, std::ref(prices)).cost;
  }

  ShardingProblem &shardings;
  const planner::Choice &choice;
  planner::Prices &prices;
};

} // namespace

double sparedSeconds(ShardingProblem &shardings, const planner::Choice &choice,
                     planner::Prices &prices) {
  Sparing sparing(shardings, choice, prices);
  double spared = 0;
  for (auto &[value, route] : shardings.routes) {
    spared += sparing.of(value, *route.from, route.early);
    spared += sparing.of(value, *route.from, route.late);
  }
  return spared;
}

} // namespace weft
