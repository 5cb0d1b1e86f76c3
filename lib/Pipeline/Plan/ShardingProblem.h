//===- ShardingProblem.h - a module as a planning problem -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is decided is how each op is sharded, and how values lie that several ops use or
// that cross the border of a layer. An op's node has the options of its factor rule; their
// time is what the op says it costs, shared by the ranks that compute different parts. An
// edge is a value on its way: the cheapest reshard from how one node leaves it to how the
// other needs it. A value with several users has a node of its own, so that what they share
// is paid once:
//
//      norm ──▶ (value) ──▶ q, k, v        gathered once for all three
//
// A layer that is called many times is decided once, and what it costs counts as often.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H
#define WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H

#include "OpOptions.h"

#include "weft/Planner/Prices.h"
#include "weft/Planner/Problem.h"
#include "weft/Planner/ReshardCosts.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

namespace weft {

/// Where a value comes from, or where one goes: how it lies there, for each option of a node, or in
/// one way that is given.
struct ShardingEnd {
  /// -1: given.
  int64_t node = -1;
  llvm::SmallVector<ShardingAttr> shardings;

  ShardingAttr of(const planner::Choice &choice) const {
    return shardings[node < 0 ? 0 : choice[node]];
  }
};

/// A value in a function: from its definition, through a node of its own if it has one, to its
/// uses.
struct ValueRoute {
  ShardingEnd from;
  std::optional<ShardingEnd> shared;
  llvm::SmallVector<std::pair<mlir::OpOperand *, ShardingEnd>> uses;
};

class ShardingProblem {
public:
  /// Reads `module`, whose variables have shardings on `mesh`. Prices are seconds on `machine`, or
  /// bytes without one.
  ShardingProblem(mlir::ModuleOp module, MeshAttr mesh, const cost::Predictor *machine);

  /// Fails, with an error, where an op says nothing of how it may be sharded.
  mlir::LogicalResult build();

  planner::Problem problem;
  /// The options of each op that has some, and its node.
  llvm::MapVector<mlir::Operation *, std::pair<uint32_t, llvm::SmallVector<OpOption>>> ops;
  llvm::MapVector<mlir::Value, ValueRoute> routes;
  /// How each argument and each result of a private function lies.
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<ShardingEnd>> arguments, results;

private:
  void countCalls();
  void declare(mlir::func::FuncOp function);
  mlir::LogicalResult visit(mlir::func::FuncOp function);
  mlir::LogicalResult visit(mlir::Operation &op);
  void addOp(ShardableOpInterface op);
  uint32_t addNode(std::string name, llvm::ArrayRef<std::string> options);
  ShardingEnd addValue(std::string name, mlir::RankedTensorType type, bool pending);
  void use(mlir::OpOperand &operand, ShardingEnd end);
  void connect(mlir::RankedTensorType type, const ShardingEnd &from, const ShardingEnd &to,
               double times);
  double reshardCost(mlir::RankedTensorType type, ShardingAttr from, ShardingAttr to);
  double timesOf(mlir::Operation *op);

  mlir::ModuleOp module;
  MeshAttr mesh;
  mlir::SymbolTable symbols;
  const cost::Predictor *machine;
  planner::Prices prices;
  llvm::DenseMap<mlir::Operation *, double> calls;
  /// By type without sharding, and whether what is pending can be scattered.
  std::map<std::pair<const void *, bool>, planner::ReshardCosts> costs;
};

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H
