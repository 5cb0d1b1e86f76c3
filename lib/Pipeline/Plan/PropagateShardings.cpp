//===- PropagateShardings.cpp - carries shardings through the program ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InferShardings.h"

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PROPAGATESHARDINGSPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// A layer as it was before any sharding, and what was made of it so far.
struct Layer {
  OwningOpRef<func::FuncOp> pristine;
  SmallVector<std::pair<SmallVector<Type>, func::FuncOp>> versions;
};

class Propagation {
public:
  Propagation(ModuleOp module, MeshAttr mesh) : module(module), mesh(mesh), symbols(module) {}

  LogicalResult runOn(func::FuncOp function);

  unsigned reshards = 0, specialized = 0;

private:
  LogicalResult visit(Operation &op);
  LogicalResult visitShardable(ShardableOpInterface op);
  LogicalResult visitCall(CallOp call);
  LogicalResult setResult(Operation *op, unsigned number, ShardingAttr sharding);
  FailureOr<func::FuncOp> specialize(StringRef name, TypeRange arguments);
  Value reshard(Operation *user, Value value, ShardingAttr sharding);
  void reshardOperand(OpOperand &operand, ShardingAttr sharding);
  ShardingAttr wantedSharding(Value value);

  ModuleOp module;
  MeshAttr mesh;
  SymbolTable symbols;
  llvm::StringMap<Layer> layers;
  /// Reshards that exist already, so that a value is moved once for all its uses.
  DenseMap<std::pair<Value, Attribute>, Value> done;
};

/// `value` under `sharding`, at `user`.
Value Propagation::reshard(Operation *user, Value value, ShardingAttr sharding) {
  if (getSharding(value.getType()) == sharding) {
    return value;
  }
  Value &moved = done[{value, sharding}];
  if (!moved) {
    OpBuilder builder(user);
    auto type = withSharding(cast<RankedTensorType>(value.getType()), sharding);
    moved = ReshardOp::create(builder, value.getLoc(), type, value);
    ++reshards;
  }
  return moved;
}

void Propagation::reshardOperand(OpOperand &operand, ShardingAttr sharding) {
  operand.set(reshard(operand.getOwner(), operand.get(), sharding));
}

LogicalResult Propagation::setResult(Operation *op, unsigned number, ShardingAttr sharding) {
  Value result = op->getResult(number);
  auto type = cast<RankedTensorType>(result.getType());
  auto emitError = [&] { return op->emitError("propagate-shardings: "); };
  if (failed(sharding.verifyEncoding(type.getShape(), type.getElementType(), emitError))) {
    return failure();
  }
  result.setType(withSharding(type, sharding));
  return success();
}

/// How `value` is going to lie where that is fixed: as the variable that it is assigned to, or as
/// the parameter whose gradient it is, at once or after it was added to others. Else null.
ShardingAttr Propagation::wantedSharding(Value value) {
  for (Operation *user : value.getUsers()) {
    VariableOp variable;
    if (auto assign = dyn_cast<AssignOp>(user)) {
      variable = symbols.lookup<VariableOp>(assign.getVariable());
    } else if (auto observe = dyn_cast<ObserveOp>(user)) {
      StringRef name = observe.getName();
      variable = name.consume_front("gradient/") ? symbols.lookup<VariableOp>(name) : VariableOp();
    } else if (auto map = dyn_cast<MapOp>(user)) {
      bool sameShape =
          map.getOutputType().getShape() == cast<RankedTensorType>(value.getType()).getShape();
      ShardingAttr sharding = sameShape ? wantedSharding(map.getResult(0)) : ShardingAttr();
      if (sharding) {
        return sharding;
      }
    }
    if (variable) {
      return getSharding(variable.getTensorType());
    }
  }
  return {};
}

LogicalResult Propagation::visitShardable(ShardableOpInterface op) {
  SmallVector<ShardingAttr> wanted;
  for (Value result : op->getResults()) {
    wanted.push_back(wantedSharding(result));
  }
  OpShardings shardings = inferShardings(op, mesh, wanted);
  for (auto [operand, sharding] : llvm::zip(op->getOpOperands(), shardings.operands)) {
    if (sharding) {
      reshardOperand(operand, sharding);
    }
  }
  for (auto [number, sharding] : llvm::enumerate(shardings.results)) {
    if (failed(setResult(op, number, sharding))) {
      return failure();
    }
  }
  return success();
}

/// Arguments of layers are never pending; they are otherwise as they come.
LogicalResult Propagation::visitCall(CallOp call) {
  for (OpOperand &operand : call->getOpOperands()) {
    if (ShardingAttr sharding = getSharding(operand.get().getType())) {
      reshardOperand(operand, sharding.getReduced());
    }
  }
  FailureOr<func::FuncOp> callee = specialize(call.getCallee(), call.getOperandTypes());
  if (failed(callee)) {
    return failure();
  }
  call.setCallee(callee->getSymName());
  for (auto [result, type] : llvm::zip(call.getResults(), callee->getResultTypes())) {
    result.setType(type);
  }
  return success();
}

/// The version of a layer for these argument types.
FailureOr<func::FuncOp> Propagation::specialize(StringRef name, TypeRange arguments) {
  Layer &layer = layers[name];
  if (!layer.pristine) {
    layer.pristine = symbols.lookup<func::FuncOp>(name).clone();
  }
  for (auto &[types, version] : layer.versions) {
    if (TypeRange(types) == arguments) {
      return version;
    }
  }
  func::FuncOp function = symbols.lookup<func::FuncOp>(name);
  if (!layer.versions.empty()) {
    function = layer.pristine->clone();
    symbols.insert(function, std::next(Block::iterator(layer.versions.back().second)));
    ++specialized;
  }
  layer.versions.push_back({SmallVector<Type>(arguments), function});
  for (auto [argument, type] : llvm::zip(function.getArguments(), arguments)) {
    argument.setType(type);
  }
  if (failed(runOn(function))) {
    return failure();
  }
  return function;
}

LogicalResult Propagation::visit(Operation &op) {
  if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
    return visitShardable(shardable);
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    return visitCall(call);
  }
  if (auto read = dyn_cast<ReadOp>(op)) {
    read.getOutput().setType(symbols.lookup<VariableOp>(read.getVariable()).getTensorType());
    return success();
  }
  if (auto assign = dyn_cast<AssignOp>(op)) {
    auto variable = symbols.lookup<VariableOp>(assign.getVariable());
    reshardOperand(assign.getValueMutable(), getSharding(variable.getTensorType()));
    return success();
  }
  if (auto observe = dyn_cast<ObserveOp>(op)) {
    reshardOperand(observe.getValueMutable(),
                   getSharding(observe.getValue().getType()).getReduced());
    return success();
  }
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  if (isa<func::ReturnOp>(op) || llvm::none_of(op.getResultTypes(), isTensor)) {
    return success();
  }
  return op.emitOpError("propagate-shardings: says nothing of how it may be sharded");
}

LogicalResult Propagation::runOn(func::FuncOp function) {
  if (function.isExternal()) {
    return function.emitError("propagate-shardings: expected a function with a body");
  }
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments()) {
    if (isa<RankedTensorType>(argument.getType()) && !getSharding(argument.getType())) {
      return function.emitError("propagate-shardings: argument #")
             << argument.getArgNumber() << " has no sharding";
    }
  }
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (failed(visit(op))) {
      return failure();
    }
  }
  function.setFunctionType(FunctionType::get(module.getContext(), block.getArgumentTypes(),
                                             block.getTerminator()->getOperandTypes()));
  return success();
}

struct PropagateShardingsPass : impl::PropagateShardingsPassBase<PropagateShardingsPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    MeshAttr mesh = getMesh(module);
    if (!mesh) {
      module.emitError("propagate-shardings: expected a module with a mesh, see apply-plan");
      return signalPassFailure();
    }
    for (VariableOp variable : module.getOps<VariableOp>()) {
      if (!getSharding(variable.getTensorType())) {
        variable.emitError("propagate-shardings: expected a sharding, see apply-plan");
        return signalPassFailure();
      }
    }
    Propagation propagation(module, mesh);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (!function.isPrivate() && failed(propagation.runOn(function))) {
        return signalPassFailure();
      }
    }
    numReshards += propagation.reshards;
    numSpecialized += propagation.specialized;
  }
};

} // namespace
} // namespace weft
