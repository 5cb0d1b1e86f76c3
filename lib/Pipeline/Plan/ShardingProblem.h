//===- ShardingProblem.h - a function as a planning problem ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The problem has a node for the sharding of each op, for the sharding of each variable between
// steps (its home), and for the sharding of each value that several ops use or that crosses the
// border of a layer. An op's node has the options of its factor rule; the time of an option is the
// op's cost, divided by the number of ranks that compute different parts. An edge is the cheapest
// reshard of a value from the layout in which one node leaves it to the layout that the other
// needs. A value with several users has a node of its own, so that reshards which they share count
// once:
//
//      norm ──▶ (value) ──▶ q, k, v        gathered once for all three
//
// A layer that is called many times is decided once, and its costs count for each call. Its
// variables are decided together too: variables that a function uses in the same places of the
// same layers share a node, and so do equal casts of them. So the size of a problem depends on the
// distinct layers only, not on the number of their calls.
//
// Memory is the bytes of variables, and of the values that are live at the function's peak point:
// the end of forward, as a rule. Users before the peak point share no reshards with users after it:
// a value that a layer gathers in forward is not kept for backward. A copy of a weight that all
// micro-batches read (isHeldArgument) is in one layout from its constraint on: a step that gathers
// it holds it whole. If the function calls another
// function for each micro-batch, which calls the layers, the peak point lies in the called
// function.
//
// Arguments and results of functions are not pending, unless they are sums that continue from one
// micro-batch to the next (`weft.may_pend`). Sums of gradients may have pins, as variables do.
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

/// One end of a value's route, its definition or a use: the layout there for each option of a node.
struct ShardingEnd {
  uint32_t node;
  /// The number of this end, by which edges between the same ends are found.
  uint32_t number;
  /// For each option of `node`, the number of the layout in the space of the value's rank.
  std::vector<uint32_t> layouts;
  ReductionKind reduction = ReductionKind::Sum;
};

/// Uses of a value on the same side of the peak point.
struct SharedUses {
  /// The layouts of the node that the uses share; null if there is only one use.
  const ShardingEnd *shared = nullptr;
  llvm::SmallVector<std::pair<mlir::OpOperand *, const ShardingEnd *>, 2> uses;
};

/// An op's node: the seconds of each option, and the ends of operands and results, which are null
/// unless these are tensors.
struct OpNode {
  uint32_t node;
  std::vector<double> seconds;
  llvm::SmallVector<const ShardingEnd *, 4> operands, results;
};

/// The route of a value in a function: from its definition, through a node of its own if it has
/// one, to its uses before the peak point (early) and after it (late).
struct ValueRoute {
  const ShardingEnd *from = nullptr;
  SharedUses early, late;
};

class ShardingProblem {
public:
  /// All arguments must outlive the problem. If `byteSeconds` is null, no matmul is an FP8 matmul.
  ShardingProblem(mlir::ModuleOp module, ReshardTables &reshardTables, ByteSeconds *byteSeconds);

  /// Builds the problem of `function` and all functions that it calls, except those that have
  /// shardings already. Variables may have shardings. Fails, with an error, if an op has no factor
  /// rule, or if a variable cannot be cut by its pins.
  mlir::LogicalResult build(mlir::func::FuncOp function);

  /// Returns the number of calls in a step of the function that `op` is or stands in.
  double timesOf(mlir::Operation *op);

  ShardingAttr shardingOf(mlir::Type type, const ShardingEnd &end,
                          const planner::Choice &choice) const;

  planner::Problem problem;
  /// Seconds below the step of every program that a choice can become, also of one that pads other
  /// dimensions: collectives are free, so each op takes the option that takes least. Matmuls run on
  /// one stream, one after another.
  double leastSeconds = 0;
  llvm::MapVector<mlir::Value, ValueRoute> routes;
  llvm::MapVector<mlir::Operation *, const ShardingEnd *> variables;
  /// The ends of the arguments and results of each private function; null unless they are tensors.
  llvm::MapVector<mlir::Operation *, llvm::SmallVector<const ShardingEnd *>> arguments, results;

private:
  mlir::LogicalResult countCalls(mlir::func::FuncOp function, double times);
  /// In VariableKinds.cpp.
  mlir::LogicalResult declareVariables();
  mlir::FailureOr<const ShardingEnd *> declareKind(VariableOp variable);
  void addPinnedLayouts();
  void declare(mlir::func::FuncOp function);
  const ShardingEnd *declareBorder(mlir::func::FuncOp function, llvm::StringRef what,
                                   unsigned number, mlir::Type type,
                                   mlir::DictionaryAttr attributes, const std::string &kind);
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
  /// `pins` may be null.
  const ShardingEnd *addValue(std::string name, mlir::RankedTensorType type, bool pending,
                              mlir::ArrayAttr pins = {});
  const ShardingEnd *addLayouts(std::string name, mlir::RankedTensorType type,
                                std::vector<uint32_t> layouts);
  void use(mlir::OpOperand &operand, const ShardingEnd *end);
  /// With `areEqual`, the layouts of both ends must be equal.
  void connect(mlir::RankedTensorType type, const ShardingEnd &from, const ShardingEnd &to,
               double times, bool areEqual = false);
  const ReshardTable &reshardTableOf(mlir::RankedTensorType type, ReductionKind reduction);
  uint32_t tableOf(mlir::RankedTensorType type, ReductionKind reduction);
  uint32_t tableOfEqual(mlir::RankedTensorType type);
  double bytesOf(mlir::RankedTensorType type, uint32_t layout);
  bool isLate(mlir::Operation *op) const;
  const std::string &describe(uint32_t layout, mlir::RankedTensorType type);

  mlir::ModuleOp module;
  ReshardTables &reshardTables;
  ByteSeconds *byteSeconds;
  LayoutSpaces &spaces;
  mlir::SymbolTable symbols;
  /// A deque, as others keep pointers to ends.
  std::deque<ShardingEnd> ends;
  llvm::DenseMap<mlir::Operation *, double> calls;
  /// The peak points of the root, and of the functions called there; see findPeakPoints.
  llvm::SmallVector<mlir::Operation *> peakPoints;
  std::map<std::pair<const void *, ReductionKind>, uint32_t> tables;
  /// Tables of values that are not resharded, by rank.
  std::map<int64_t, uint32_t> equalTables;
  /// Descriptions of layouts, by their rank and number.
  std::map<std::pair<int64_t, uint32_t>, std::string> descriptions;
  /// Indices of edges, by the numbers of their ends.
  std::map<std::pair<uint32_t, uint32_t>, size_t> edges;
  /// Nodes of values with several uses, by the ends that they come from and go to.
  std::map<std::vector<uint32_t>, const ShardingEnd *> sharedEnds;
  /// Nodes of observed values, by the number of the end that the value comes from.
  std::map<uint32_t, const ShardingEnd *> observed;
  /// Nodes of variables, by role, type, names of dimensions, pins and uses.
  std::map<std::tuple<VariableRole, const void *, const void *, const void *, std::string>,
           const ShardingEnd *>
      variableKinds;
  /// Nodes of arguments and results of functions that only pass on values of other functions.
  std::map<std::pair<std::string, const void *>, const ShardingEnd *> borderKinds;
  /// The pins of the constraints whose values are held in arguments.
  llvm::DenseMap<mlir::Value, mlir::ArrayAttr> heldPins;
  /// The places of values in the root and in called functions that read variables.
  ValuePlaces places;
  /// Simple ops that share a node: equal ops whose operands come from the same end, null without
  /// operands, and whose results go to the same places.
  std::map<std::tuple<uint32_t, const ShardingEnd *, uint32_t>, OpNode> opKinds;
};

/// Returns the op of `function` after which its values take most memory as whole tensors, without
/// variables. If this op calls a function with calls of its own, the peak point of that function
/// follows, and so on. Empty for a function without ops.
llvm::SmallVector<mlir::Operation *> findPeakPoints(mlir::func::FuncOp function,
                                                    const mlir::SymbolTable &symbols);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SHARDINGPROBLEM_H
