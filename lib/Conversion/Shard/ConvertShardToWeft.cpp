//===- ConvertShardToWeft.cpp - shard.shard ops to shardings in types ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Conversion/Shard/Passes.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_CONVERTSHARDTOWEFTPASS
#include "weft/Conversion/Shard/Passes.h.inc"

namespace {

constexpr StringLiteral kPass = "convert-shard-to-weft: ";
/// The most ranks of a plan.
constexpr int64_t mostRanks = 1 << 20;
using ErrorEmitter = llvm::function_ref<InFlightDiagnostic()>;

class Conversion {
public:
  explicit Conversion(ModuleOp module)
      : module(module), symbols(module), builder(module.getContext()) {}

  LogicalResult run() {
    if (failed(readGrid()) || failed(readVariables())) {
      return failure();
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      if (failed(convert(function))) {
        return failure();
      }
    }
    for (VariableOp variable : module.getOps<VariableOp>()) {
      if (!getSharding(variable.getTensorType())) { // Neither read nor assigned.
        setSharding(variable,
                    ShardingAttr::getReplicated(mesh, variable.getTensorType().getRank()));
      }
    }
    module.walk([](shard::ShardingOp sharding) { sharding.erase(); });
    grid.erase();
    module->setAttr(kMeshAttrName, mesh);
    return success();
  }

private:
  LogicalResult readGrid();
  LogicalResult readVariables();
  FailureOr<ShardingAttr> readSharding(shard::ShardOp op);
  FailureOr<ShardingAttr> said(Value value);
  LogicalResult convert(func::FuncOp function);
  LogicalResult visit(Operation &op);
  LogicalResult visitShard(shard::ShardOp op);
  LogicalResult visitShardable(ShardableOpInterface op);
  LogicalResult visitCall(CallOp call);

  /// Returns `value` in the given sharding, by a reshard if it has another.
  Value bring(Value value, ShardingAttr sharding) {
    auto type = cast<RankedTensorType>(value.getType());
    return getSharding(type) == sharding
               ? value
               : ReshardOp::create(builder, value.getLoc(), withSharding(type, sharding), value);
  }
  void setSharding(VariableOp variable, ShardingAttr sharding) {
    variable.setType(withSharding(variable.getTensorType(), sharding));
  }

  ModuleOp module;
  SymbolTable symbols;
  OpBuilder builder;
  shard::GridOp grid;
  MeshAttr mesh;
  /// The mesh's name of each axis of the grid; null for an axis of one rank.
  SmallVector<StringAttr> axes;
  DenseSet<Operation *> begun, done;
};

LogicalResult Conversion::readGrid() {
  auto grids = llvm::to_vector(module.getOps<shard::GridOp>());
  if (grids.size() != 1) {
    return module.emitError(kPass) << "expected one shard.grid, got " << grids.size();
  }
  grid = grids.front();
  auto given = grid->getAttrOfType<ArrayAttr>(kAxesAttrName);
  if (given && (given.size() != grid.getShape().size() ||
                !llvm::all_of(given, [](Attribute name) { return isa<StringAttr>(name); }))) {
    return grid.emitError(kPass) << "expected in " << kAxesAttrName << " a name for each of "
                                 << grid.getShape().size() << " axes, got " << given;
  }
  SmallVector<StringAttr> names;
  SmallVector<int64_t> sizes;
  int64_t ranks = 1;
  for (auto [number, size] : llvm::enumerate(grid.getShape())) {
    if (ShapedType::isDynamic(size)) {
      return grid.emitError(kPass) << "expected sizes that are known, got ? for axis " << number;
    }
    if (size < 1 || size > mostRanks / ranks) {
      return grid.emitError(kPass) << "expected 1 to " << mostRanks << " ranks in all, got "
                                   << (size < 1 ? "none" : "more");
    }
    ranks *= size;
    axes.push_back(size == 1 ? StringAttr()
                   : given   ? cast<StringAttr>(given[number])
                             : StringAttr::get(module.getContext(), "axis" + Twine(number)));
    if (size > 1) {
      names.push_back(axes.back());
      sizes.push_back(size);
    }
  }
  auto emitError = [&] { return grid.emitError(kPass); };
  mesh = MeshAttr::getChecked(ErrorEmitter(emitError), module.getContext(), ArrayRef(names),
                              ArrayRef(sizes));
  return success(mesh != nullptr);
}

/// Gives a variable the sharding of its reads.
LogicalResult Conversion::readVariables() {
  WalkResult walk = module.walk([&](ReadOp read) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    FailureOr<ShardingAttr> sharding = said(read.getOutput());
    if (!variable || failed(sharding)) {
      return WalkResult::interrupt();
    }
    ShardingAttr known = getSharding(variable.getTensorType());
    if (*sharding && known && known != *sharding) {
      read.emitError(kPass) << "variable " << read.getVariableAttr() << " has the shardings "
                            << known << " and " << *sharding;
      return WalkResult::interrupt();
    }
    if (*sharding) {
      setSharding(variable, *sharding);
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

FailureOr<ShardingAttr> Conversion::readSharding(shard::ShardOp op) {
  auto sharding = op.getSharding().getDefiningOp<shard::ShardingOp>();
  if (!sharding) {
    return op.emitError(kPass) << "expected the sharding by a shard.sharding";
  }
  if (!sharding.getStaticHaloSizes().empty() || !sharding.getStaticShardedDimsOffsets().empty()) {
    return sharding.emitError(kPass) << "halos and shards of different sizes have no form in the "
                                        "weft dialect";
  }
  auto type = cast<RankedTensorType>(op.getSrc().getType());
  SmallVector<ArrayAttr> dims;
  for (shard::GridAxesAttr numbers : sharding.getSplitAxes()) {
    SmallVector<Attribute> names;
    for (int16_t number : numbers.asArrayRef()) {
      if (number < 0 || number >= static_cast<int64_t>(axes.size())) {
        return sharding.emitError(kPass)
               << "axis " << number << " does not exist, the grid has " << axes.size();
      }
      if (StringAttr name = axes[number]) {
        names.push_back(name);
      }
    }
    dims.push_back(ArrayAttr::get(module.getContext(), names));
  }
  // A scalar has one list, which is empty, because every sharding has at least one.
  while (static_cast<int64_t>(dims.size()) > type.getRank() && dims.back().empty()) {
    dims.pop_back();
  }
  if (static_cast<int64_t>(dims.size()) > type.getRank()) {
    return op.emitError(kPass) << "expected at most " << type.getRank()
                               << " dimensions to be split, got " << dims.size();
  }
  dims.resize(type.getRank(), ArrayAttr::get(module.getContext(), {}));
  auto emitError = [&] { return op.emitError(kPass); };
  auto attr =
      ShardingAttr::getChecked(ErrorEmitter(emitError), module.getContext(), mesh, ArrayRef(dims),
                               ArrayAttr::get(module.getContext(), {}), ReductionKind::Sum);
  if (!attr || failed(attr.verifyEncoding(type.getShape(), type.getElementType(), emitError))) {
    return failure();
  }
  return attr;
}

/// Returns the sharding that a shard.shard states for `value` at its definition, or null.
FailureOr<ShardingAttr> Conversion::said(Value value) {
  for (Operation *user : value.getUsers()) {
    auto op = dyn_cast<shard::ShardOp>(user);
    if (op && !op.getAnnotateForUsers()) {
      return readSharding(op);
    }
  }
  return ShardingAttr();
}

LogicalResult Conversion::convert(func::FuncOp function) {
  if (done.contains(function)) {
    return success();
  }
  if (!function.getBody().hasOneBlock() || !begun.insert(function).second) {
    return function.emitError(kPass)
           << "expected a function with a body of one block that does not call itself";
  }
  OpBuilder::InsertionGuard guard(builder);
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type) {
      continue;
    }
    FailureOr<ShardingAttr> sharding = said(argument);
    if (failed(sharding)) {
      return failure();
    }
    if (!*sharding) {
      return function.emitError(kPass)
             << "argument #" << argument.getArgNumber() << " has no shard.shard";
    }
    argument.setType(withSharding(type, *sharding));
  }
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (failed(visit(op))) {
      return failure();
    }
  }
  function.setFunctionType(FunctionType::get(module.getContext(), block.getArgumentTypes(),
                                             block.getTerminator()->getOperandTypes()));
  done.insert(function);
  return success();
}

LogicalResult Conversion::visit(Operation &op) {
  builder.setInsertionPointAfter(&op);
  if (auto shardOp = dyn_cast<shard::ShardOp>(op)) {
    return visitShard(shardOp);
  }
  if (isa<shard::ShardingOp>(op)) {
    return success();
  }
  if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
    return visitShardable(shardable);
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    return visitCall(call);
  }
  if (auto read = dyn_cast<ReadOp>(op)) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    if (!getSharding(variable.getTensorType())) { // Nothing is said of it.
      setSharding(variable, ShardingAttr::getReplicated(mesh, variable.getTensorType().getRank()));
    }
    read.getOutput().setType(variable.getTensorType());
    return success();
  }
  if (auto assign = dyn_cast<AssignOp>(op)) {
    auto variable = symbols.lookup<VariableOp>(assign.getVariable());
    ShardingAttr sharding = getSharding(variable.getTensorType());
    if (!sharding) {
      sharding = getSharding(assign.getValue().getType());
      setSharding(variable, sharding);
    }
    builder.setInsertionPoint(&op);
    assign.getValueMutable().assign(bring(assign.getValue(), sharding));
    return success();
  }
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (llvm::any_of(op.getResultTypes(), isTensor) || op.getDialect() == grid->getDialect()) {
    return op.emitError(kPass) << "'" << op.getName() << "' does not say how it may be sharded";
  }
  return success();
}

/// From here on the value has the stated sharding.
LogicalResult Conversion::visitShard(shard::ShardOp op) {
  FailureOr<ShardingAttr> sharding = readSharding(op);
  if (failed(sharding)) {
    return failure();
  }
  op.getResult().replaceAllUsesWith(bring(op.getSrc(), *sharding));
  op.erase();
  return success();
}

LogicalResult Conversion::visitShardable(ShardableOpInterface op) {
  FactorRule rule = op.getFactorRule();
  SmallVector<ArrayAttr> axesOf(rule.factors.size());
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    for (auto [dim, factor] : llvm::enumerate(rule.operands[number])) {
      ArrayAttr cut = getSharding(operand.getType()).getDims()[dim];
      if (axesOf[factor] && axesOf[factor] != cut) {
        return op.emitError(kPass)
               << "operand #" << number << " is cut by " << cut << " in dimension " << dim
               << ", another operand by " << axesOf[factor];
      }
      axesOf[factor] = cut;
    }
  }
  auto none = ArrayAttr::get(op.getContext(), {});
  for (auto [result, dims] : llvm::zip(op->getResults(), rule.results)) {
    FailureOr<ShardingAttr> sharding = said(result);
    if (failed(sharding)) {
      return failure();
    }
    for (auto [dim, factor] : llvm::enumerate(dims)) {
      if (!axesOf[factor]) {
        // Axes that cut another factor can cut this one only after the op.
        ArrayAttr cut = *sharding ? sharding->getDims()[dim] : none;
        bool isTaken = llvm::any_of(axesOf, [&](ArrayAttr other) {
          return other &&
                 llvm::any_of(cut, [&](Attribute axis) { return llvm::is_contained(other, axis); });
        });
        axesOf[factor] = isTaken ? none : cut;
      }
    }
  }
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    ArrayRef<unsigned> carried = rule.results[number];
    auto dims = llvm::map_to_vector(carried, [&](unsigned factor) { return axesOf[factor]; });
    SmallVector<Attribute> unreduced;
    for (auto [factor, cut] : llvm::enumerate(axesOf)) {
      if (cut && !llvm::is_contained(carried, factor)) {
        llvm::append_range(unreduced, cut);
      }
    }
    auto emitError = [&] { return op.emitError(kPass); };
    auto sharding = ShardingAttr::getChecked(
        ErrorEmitter(emitError), op.getContext(), mesh, ArrayRef(dims), sortByMesh(mesh, unreduced),
        unreduced.empty() ? ReductionKind::Sum : rule.reductions[number]);
    if (!sharding) {
      return failure();
    }
    result.setType(withSharding(cast<RankedTensorType>(result.getType()), sharding));
    if (!sharding.isReduced() && succeeded(said(result)) && !*said(result)) {
      Value reduced = bring(result, sharding.getReduced());
      result.replaceAllUsesExcept(reduced, reduced.getDefiningOp());
    }
  }
  return success();
}

LogicalResult Conversion::visitCall(CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (failed(convert(callee))) {
    return failure();
  }
  builder.setInsertionPoint(call);
  for (auto [operand, type] :
       llvm::zip(call->getOpOperands(), callee.getFunctionType().getInputs())) {
    if (ShardingAttr sharding = getSharding(type)) {
      operand.set(bring(operand.get(), sharding));
    }
  }
  for (auto [result, type] : llvm::zip(call.getResults(), callee.getResultTypes())) {
    result.setType(type);
  }
  return success();
}

struct ConvertShardToWeftPass : impl::ConvertShardToWeftPassBase<ConvertShardToWeftPass> {
  void runOnOperation() override {
    if (failed(Conversion(getOperation()).run())) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace weft
