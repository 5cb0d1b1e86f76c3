//===- OrderNodes.cpp - nodes in the order in which they run --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If the nodes of a chain ascend, a solver that visits nodes in order carries its messages along
// the whole chain in one pass. So nodes stand in the order in which the program first uses them: a
// variable before its first reader, a shared value before its first user, and a layer at its first
// call.
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include <numeric>

using namespace mlir;

namespace weft {
namespace {

class Walk {
public:
  explicit Walk(const ShardingProblem &shardings, const SymbolTable &symbols)
      : shardings(shardings), symbols(symbols),
        places(shardings.problem.nodes.size(), uint32_t(shardings.problem.nodes.size())) {
    for (const auto &[value, route] : shardings.routes) {
      for (const SharedUses *group : {&route.early, &route.late}) {
        for (const auto &[use, end] : group->uses) {
          uses[use] = {group->shared, end};
        }
      }
    }
  }

  void visit(func::FuncOp function) {
    if (!visited.insert(function).second) {
      return;
    }
    for (Operation &op : function.getOps()) {
      for (OpOperand &operand : op.getOpOperands()) {
        meetUse(operand);
      }
      if (auto call = dyn_cast<CallOp>(op)) {
        visit(symbols.lookup<func::FuncOp>(call.getCallee()));
      }
      for (Value result : op.getResults()) {
        auto route = shardings.routes.find(result);
        meet(route == shardings.routes.end() ? nullptr : route->second.from);
      }
    }
  }

  /// Nodes in the order of their first use, then all unused ones.
  std::vector<uint32_t> order() const {
    std::vector<uint32_t> nodes(places.size());
    std::iota(nodes.begin(), nodes.end(), 0);
    llvm::sort(nodes, [&](uint32_t a, uint32_t b) {
      return std::pair(places[a], a) < std::pair(places[b], b);
    });
    return nodes;
  }

private:
  void meet(const ShardingEnd *end) {
    if (end && places[end->node] == places.size()) {
      places[end->node] = met++;
    }
  }

  void meetUse(OpOperand &operand) {
    auto use = uses.find(&operand);
    if (use != uses.end()) {
      meet(use->second.first);
      meet(use->second.second);
    }
  }

  const ShardingProblem &shardings;
  const SymbolTable &symbols;
  /// Of each use the end that it shares with others, and its own.
  DenseMap<OpOperand *, std::pair<const ShardingEnd *, const ShardingEnd *>> uses;
  /// The place of each node; the number of nodes for an unused one.
  std::vector<uint32_t> places;
  uint32_t met = 0;
  llvm::SmallPtrSet<Operation *, 8> visited;
};

} // namespace

void ShardingProblem::orderNodes(func::FuncOp root) {
  Walk walk(*this, symbols);
  walk.visit(root);
  std::vector<uint32_t> newNumbers(problem.nodes.size());
  std::vector<planner::Node> ordered;
  for (uint32_t node : walk.order()) {
    newNumbers[node] = uint32_t(ordered.size());
    ordered.push_back(std::move(problem.nodes[node]));
  }
  problem.nodes = std::move(ordered);
  for (planner::Edge &edge : problem.edges) {
    edge.a = newNumbers[edge.a];
    edge.b = newNumbers[edge.b];
  }
  for (ShardingEnd &end : ends) {
    end.node = newNumbers[end.node];
  }
}

} // namespace weft
