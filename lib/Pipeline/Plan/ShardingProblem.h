//===- ShardingProblem.h - a function as a planning problem ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is decided is how each op is sharded, how variables lie between steps (their home), and how
// values lie that several ops use or that cross the border of a layer. An op's node has the
// options of its factor rule; their time is what the op says it costs, shared by the ranks that
// compute different parts. An edge is a value on its way: the cheapest reshard from how one node
// leaves it to how the other needs it. A value with several users has a node of its own, so that
// what they share is paid once:
//
//      norm ──▶ (value) ──▶ q, k, v        gathered once for all three
//
// A layer that is called many times is decided once, and what it costs counts as often. Its
// variables are decided together too: variables that a function uses in the same places of the
// same layers have one node, and so have equal casts of them. So a problem is as large as the
// distinct layers are, however many there are of each.
//
// Memory is what variables take, and the values of the function that are live at the instant when
// most of them are: the end of forward, as a rule. Users before that instant and after it do not
// share: what a layer gathers in forward is not kept for backward. Where the function calls another
// that calls layers, once for each micro-batch, the instant lies in that.
//
// Values that cross the border of a function are not pending there, unless they are sums that go on
// from one micro-batch to the next (`weft.may_pend`).
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H
#define WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H

#include "ByteSeconds.h"
#include "OpOptions.h"
#include "ReshardTables.h"
#include "ValuePlaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"

#include <deque>
#include <optional>
#include <set>
#include <tuple>

namespace weft {

/// Where a value comes from, or where one goes: how it lies there, for each option of a node.
struct ShardingEnd {
  uint32_t node;
  /// Its own number, by which edges between the same ends are found.
  uint32_t number;
  /// In the space of the value's rank.
  std::vector<uint32_t> layouts;
  ReductionKind reduction = ReductionKind::Sum;
};

/// Uses of a value on the same side of the instant of most memory.
struct SharedUses {
  /// Null where there is one use only.
  const ShardingEnd *shared = nullptr;
  llvm::SmallVector<std::pair<mlir::OpOperand *, const ShardingEnd *>, 2> uses;
};

/// An op's node: what each option takes, and where operands and results lie; null for what is no
/// tensor.
struct OpNode {
  uint32_t node;
  std::vector<double> seconds;
  llvm::SmallVector<const ShardingEnd *, 4> operands, results;
};

/// A value in a function: from its definition, through a node of its own if it has one, to its
/// uses.
struct ValueRoute {
  const ShardingEnd *from = nullptr;
  SharedUses early, late;
};

class ShardingProblem {
public:
  /// All arguments must outlive this; without `byteSeconds` no matmul is one of bytes.
  ShardingProblem(mlir::ModuleOp module, ReshardTables &reshardTables, ByteSeconds *byteSeconds);

  /// Makes the problem of `function` and all that it calls, but for layers that have shardings
  /// already, as variables may have. Fails, with an error, where an op says nothing of how it may
  /// be sharded or a variable cannot lie as it is pinned.
  mlir::LogicalResult build(mlir::func::FuncOp function);

  /// How often the function that `op` is or stands in runs.
  double timesOf(mlir::Operation *op);

  ShardingAttr shardingOf(mlir::Type type, const ShardingEnd &end,
                          const planner::Choice &choice) const;

  planner::Problem problem;
  llvm::MapVector<mlir::Value, ValueRoute> routes;
  llvm::MapVector<mlir::Operation *, const ShardingEnd *> variables;
  /// How each argument and each result of a private function lies; null for what is no tensor.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<const ShardingEnd *>> arguments, results;

private:
  mlir::LogicalResult countCalls(mlir::func::FuncOp function, double times);
  /// In VariableKinds.cpp.
  mlir::LogicalResult declareVariables();
  mlir::FailureOr<const ShardingEnd *> declareKind(VariableOp variable);
  void declare(mlir::func::FuncOp function);
  const ShardingEnd *declareBorder(mlir::func::FuncOp function, llvm::StringRef what,
                                   unsigned number, mlir::Type type, bool pending,
                                   const std::string &kind);
  mlir::LogicalResult visit(mlir::func::FuncOp function);
  mlir::LogicalResult visit(mlir::Operation &op);
  void visitCall(CallOp call);
  void visitShardable(ShardableOpInterface op);
  OpNode addOp(ShardableOpInterface op);
  void addMemory();
  void connectRoutes();
  /// In OrderNodes.cpp.
  void orderNodes(mlir::func::FuncOp root);
  void connectUses(mlir::Value value, const ValueRoute &route, SharedUses &group, double times);
  uint32_t addNode(std::string name, std::vector<planner::Option> options);
  const ShardingEnd *addEnd(uint32_t node, mlir::Type type, std::vector<uint32_t> layouts,
                            ReductionKind reduction = ReductionKind::Sum);
  const ShardingEnd *addValue(std::string name, mlir::RankedTensorType type, bool pending);
  const ShardingEnd *addLayouts(std::string name, mlir::RankedTensorType type,
                                std::vector<uint32_t> layouts);
  void use(mlir::OpOperand &operand, const ShardingEnd *end);
  void connect(mlir::RankedTensorType type, const ShardingEnd &from, const ShardingEnd &to,
               double times);
  uint32_t tableOf(mlir::RankedTensorType type, ReductionKind reduction);
  double bytesOf(mlir::RankedTensorType type, uint32_t layout);
  bool isLate(mlir::Operation *op) const;
  const std::string &describe(uint32_t layout, mlir::RankedTensorType type);

  mlir::ModuleOp module;
  ReshardTables &reshardTables;
  ByteSeconds *byteSeconds;
  LayoutSpaces &spaces;
  mlir::SymbolTable symbols;
  /// Addresses of ends are kept.
  std::deque<ShardingEnd> ends;
  llvm::DenseMap<mlir::Operation *, double> calls;
  /// The last ops before the instant of most memory: of the root, and of what that op calls.
  llvm::SmallVector<mlir::Operation *> peakPoints;
  std::map<std::pair<const void *, ReductionKind>, uint32_t> tables;
  /// Of layouts in words, by their rank and number.
  std::map<std::pair<int64_t, uint32_t>, std::string> descriptions;
  /// By the numbers of their ends.
  std::map<std::pair<uint32_t, uint32_t>, size_t> edges;
  /// Values with several uses that come from the same end and go to the same ones.
  std::map<std::vector<uint32_t>, const ShardingEnd *> sharedEnds;
  /// By the number of the end that the observed value comes from.
  std::map<uint32_t, const ShardingEnd *> observed;
  /// By role, type, names of dimensions, pins and uses.
  std::map<std::tuple<VariableRole, const void *, const void *, const void *, std::string>,
           const ShardingEnd *>
      variableKinds;
  /// Arguments and results of functions that only pass on what other functions take and give.
  std::map<std::string, const ShardingEnd *> borderKinds;
  /// Of the root and of what it calls that reads variables.
  ValuePlaces places;
  /// Simple ops that are decided together: equal ones whose operands come from the same end, null
  /// without operands, and whose results go to the same places.
  std::map<std::tuple<uint32_t, const ShardingEnd *, std::string>, OpNode> opKinds;
  /// Ranks of values that are pinned to axes in another order than the mesh's.
  std::set<int64_t> otherOrders;
};

/// The last op of `function` before the instant when its values take most memory, whole; if that
/// calls a function which makes calls itself, then also the op of that, and so on. Empty for a
/// function without ops. Variables do not count.
llvm::SmallVector<mlir::Operation *> findPeakPoints(mlir::func::FuncOp function,
                                                    const mlir::SymbolTable &symbols);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H
