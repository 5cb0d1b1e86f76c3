//===- BuildGradients.cpp - forward and backward from the loss ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LossScale.h"
#include "RecomputeCheapValues.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Differentiate/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_BUILDGRADIENTSPASS
#include "weft/Pipeline/Differentiate/Passes.h.inc"

namespace {

/// The functions that replace a layer.
struct LayerGradient {
  func::FuncOp forward, backward;
  /// Arguments of the layer that are backward's first arguments. The values that forward saved
  /// follow, then the gradients of the layer's results.
  SmallVector<unsigned> arguments;
  /// Number of the layer's results; further results of forward are saved values.
  unsigned results = 0;
  /// Arguments whose gradients backward returns.
  SmallVector<unsigned> gradients;
};

/// Gradients of values. The sum of a value's contributions is built at its first use.
class Gradients {
public:
  /// Adds up contributions of `call`, which stands before others that were built earlier, where
  /// they are known, so that they are not all held until the end.
  void addEarly(CallOp call) { early.insert(call); }

  void add(Value value, Value gradient) {
    if (gradient) {
      contributions[value].push_back(gradient);
    }
  }

  /// Returns null if the loss does not depend on `value`.
  Value get(OpBuilder &builder, Value value) {
    auto it = contributions.find(value);
    if (it == contributions.end()) {
      return {};
    }
    joinEarly(it->second);
    Value sum = createSum(builder, value.getLoc(), it->second);
    it->second.assign(1, sum);
    return sum;
  }

private:
  void joinEarly(SmallVector<Value> &parts) {
    SmallVector<Value> inTime, others;
    for (Value part : parts) {
      (early.contains(part.getDefiningOp()) ? inTime : others).push_back(part);
    }
    llvm::sort(inTime, [](Value a, Value b) {
      return a.getDefiningOp()->isBeforeInBlock(b.getDefiningOp());
    });
    Value sum;
    for (Value part : inTime) {
      OpBuilder behind(part.getContext());
      behind.setInsertionPointAfterValue(part);
      sum = sum ? createSum(behind, part.getLoc(), {sum, part}) : part;
    }
    if (sum) {
      others.push_back(sum);
    }
    parts = std::move(others);
  }

  DenseMap<Value, SmallVector<Value>> contributions;
  llvm::SmallDenseSet<Operation *> early;
};

/// Moves `backward` behind `forward`, the call of the layer that it differentiates, if it needs
/// only values that are known there and single numbers, whose ops are moved too. Then the values
/// that forward saves live no longer than the two calls.
bool moveBehind(CallOp forward, CallOp backward) {
  if (forward->getBlock() != backward->getBlock()) {
    return false;
  }
  SmallVector<Operation *> open = {backward};
  llvm::SetVector<Operation *> between;
  while (!open.empty()) {
    for (Value operand : open.pop_back_val()->getOperands()) {
      Operation *op = operand.getDefiningOp();
      if (!op || op == forward || op->isBeforeInBlock(forward) || between.contains(op)) {
        continue;
      }
      bool areNumbers = llvm::all_of(op->getResultTypes(), [](Type type) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return !tensor || tensor.getRank() == 0;
      });
      if (!areNumbers || !isPure(op)) {
        return false;
      }
      between.insert(op);
      open.push_back(op);
    }
  }
  SmallVector<Operation *> moved = between.takeVector();
  llvm::sort(moved, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  moved.push_back(backward);
  Operation *last = forward;
  for (Operation *op : moved) {
    op->moveAfter(last);
    last = op;
  }
  return true;
}

class GradientBuilder {
public:
  explicit GradientBuilder(ModuleOp module) : module(module), symbols(module) {}

  LogicalResult differentiateLoss();

private:
  FailureOr<LayerGradient *> differentiateLayer(CallOp call);
  void passForwardValues(LayerGradient &layer);
  LogicalResult callForward(Block &block);
  LogicalResult buildBackward(Block &block, OpBuilder &builder, Gradients &gradients);
  void buildBackwardOf(CallOp call, OpBuilder &builder, Gradients &gradients);

  ModuleOp module;
  SymbolTable symbols;
  /// By the name of the layer and, once it is done, by the name of its forward function.
  llvm::StringMap<std::unique_ptr<LayerGradient>> layers;
  llvm::StringMap<LayerGradient *> byForward;
};

/// Returns true if values of this type have gradients.
bool isDifferentiable(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

/// Erases unused gradients, such as those of inputs, and ops that only they used.
void eraseDeadOps(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isOpTriviallyDead(&op)) {
      op.erase();
    }
  }
}

LogicalResult GradientBuilder::differentiateLoss() {
  auto loss = module.lookupSymbol<func::FuncOp>("loss");
  if (!loss || loss.isExternal()) {
    return module.emitError("build-gradients: expected a function @loss");
  }
  auto isNumber = [](Type type) {
    return isDifferentiable(type) && cast<RankedTensorType>(type).getRank() == 0;
  };
  if (loss.getNumArguments() != 0 || loss.getNumResults() != 1 ||
      !isNumber(loss.getResultTypes().front())) {
    return loss.emitError("build-gradients: expected @loss to have no arguments and one "
                          "floating-point number as result, got ")
           << loss.getFunctionType();
  }
  Block &block = loss.getBody().front();
  if (failed(callForward(block))) {
    return failure();
  }
  Operation *end = block.getTerminator();
  Value value = end->getOperand(0);
  OpBuilder builder(end);
  auto observed = ObserveOp::create(builder, loss.getLoc(), "loss", value);
  Gradients gradients;
  Type element = cast<RankedTensorType>(value.getType()).getElementType();
  Value scale = readLossScale(module, builder, loss.getLoc());
  gradients.add(value, scale ? createCast(builder, loss.getLoc(), scale, element)
                             : createScalar(builder, loss.getLoc(), element, 1.0));
  if (failed(buildBackward(block, builder, gradients))) {
    return failure();
  }
  // A parameter has one gradient, even if it is read several times.
  llvm::MapVector<StringRef, SmallVector<Value>> ofParameter;
  // Their sum is where the first op that reads it is, as is the sum for a copy of several uses.
  llvm::StringMap<Location> firstUses;
  for (ReadOp read : block.getOps<ReadOp>()) {
    auto variable = symbols.lookup<VariableOp>(read.getVariable());
    Value gradient = gradients.get(builder, read.getOutput());
    if (variable.getRole() == VariableRole::Parameter && gradient) {
      ofParameter[read.getVariable()].push_back(gradient);
      Operation *first = *llvm::min_element(
          read->getUsers(), [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
      firstUses.try_emplace(read.getVariable(), first->getLoc());
    }
  }
  for (auto &[name, parts] : ofParameter) {
    Value sum = createSum(builder, firstUses.find(name)->second, parts);
    ObserveOp::create(builder, loss.getLoc(), ("gradient/" + name).str(),
                      scale ? unscale(builder, loss.getLoc(), sum, scale) : sum);
  }
  func::ReturnOp::create(builder, end->getLoc());
  end->erase();
  eraseDeadOps(block); // Unused ops must not be recomputed.
  if (block.getOps<CallOp>().empty()) {
    recomputeCheapValues(observed); // With layers, only they keep values.
  }
  loss.setName("step");
  loss.setFunctionType(builder.getFunctionType({}, {}));
  return success();
}

/// Replaces every call of a layer in `block` by a call of its forward function.
LogicalResult GradientBuilder::callForward(Block &block) {
  for (CallOp call : llvm::make_early_inc_range(block.getOps<CallOp>())) {
    FailureOr<LayerGradient *> layer = differentiateLayer(call);
    if (failed(layer)) {
      return failure();
    }
    OpBuilder builder(call);
    auto forward = CallOp::create(builder, call.getLoc(), (*layer)->forward.getResultTypes(),
                                  FlatSymbolRefAttr::get((*layer)->forward.getSymNameAttr()),
                                  call.getLabelAttr(), call.getOperands());
    call->replaceAllUsesWith(forward->getResults().take_front(call->getNumResults()));
    call.erase();
  }
  return success();
}

FailureOr<LayerGradient *> GradientBuilder::differentiateLayer(CallOp call) {
  StringRef name = call.getCallee();
  std::unique_ptr<LayerGradient> &layer = layers[name];
  if (layer) {
    if (!layer->backward) {
      return call.emitError("build-gradients: layer '") << name << "' calls itself";
    }
    return layer.get();
  }
  layer = std::make_unique<LayerGradient>();
  layer->forward = symbols.lookup<func::FuncOp>(name);
  if (!layer->forward || layer->forward.isExternal()) {
    return call.emitError("build-gradients: layer '") << name << "' has no body";
  }
  for (ReadOp read : layer->forward.getOps<ReadOp>()) {
    return read.emitError("build-gradients: a layer takes variables as arguments, expected no read "
                          "in '")
           << name << "'";
  }
  layer->results = layer->forward.getNumResults();
  Block &block = layer->forward.getBody().front();
  if (failed(callForward(block))) {
    return failure();
  }
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(layer->forward);
  layer->backward =
      func::FuncOp::create(builder, layer->forward.getLoc(), (name + "_backward").str(),
                           builder.getFunctionType({}, {}));
  layer->backward.setPrivate();
  Block *body = layer->backward.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  Gradients gradients;
  for (Value result : block.getTerminator()->getOperands()) {
    if (isDifferentiable(result.getType())) {
      gradients.add(result, body->addArgument(result.getType(), result.getLoc()));
    }
  }
  if (failed(buildBackward(block, builder, gradients))) {
    return failure();
  }
  SmallVector<Value> returned;
  for (BlockArgument argument : block.getArguments()) {
    if (Value gradient = gradients.get(builder, argument)) {
      layer->gradients.push_back(argument.getArgNumber());
      returned.push_back(gradient);
    }
  }
  func::ReturnOp::create(builder, layer->backward.getLoc(), returned);
  passForwardValues(*layer);
  symbols.insert(layer->backward);
  // Calls that are not visited yet still have the layer's name, a key of `layers`.
  symbols.remove(layer->forward);
  layer->forward.setName((name + "_forward").str());
  symbols.insert(layer->forward);
  byForward[layer->forward.getSymName()] = layer.get();
  return layer.get();
}

/// Backward uses values of forward so far. Turns those into arguments: forward's own arguments as
/// they are, and other values as further results of forward, unless recomputing them is cheaper.
void GradientBuilder::passForwardValues(LayerGradient &layer) {
  Block &forward = layer.forward.getBody().front(), &backward = layer.backward.getBody().front();
  eraseDeadOps(backward); // Unused ops must not save values.
  recomputeCheapValues(forward, backward);
  llvm::SetVector<Value> arguments, saved;
  for (Operation &op : backward) {
    for (Value operand : op.getOperands()) {
      if (operand.getParentBlock() == &forward) {
        (isa<BlockArgument>(operand) ? arguments : saved).insert(operand);
      }
    }
  }
  // In the order of the layer's ops, not of their uses.
  auto number = [](Value value) { return cast<BlockArgument>(value).getArgNumber(); };
  SmallVector<Value> ordered = arguments.takeVector();
  llvm::sort(ordered, [&](Value a, Value b) { return number(a) < number(b); });
  for (Value argument : ordered) {
    layer.arguments.push_back(number(argument));
  }
  Operation *end = forward.getTerminator();
  for (Value value : saved) {
    end->insertOperands(end->getNumOperands(), value);
  }
  llvm::append_range(ordered, saved);
  for (auto [position, value] : llvm::enumerate(ordered)) {
    BlockArgument argument = backward.insertArgument(position, value.getType(), value.getLoc());
    value.replaceUsesWithIf(
        argument, [&](OpOperand &use) { return use.getOwner()->getBlock() == &backward; });
  }
  OpBuilder builder(layer.forward);
  layer.forward.setFunctionType(
      builder.getFunctionType(forward.getArgumentTypes(), end->getOperandTypes()));
  layer.backward.setFunctionType(builder.getFunctionType(
      backward.getArgumentTypes(), backward.getTerminator()->getOperandTypes()));
}

/// Builds the gradients of all values of `block`, from the last op to the first.
LogicalResult GradientBuilder::buildBackward(Block &block, OpBuilder &builder,
                                             Gradients &gradients) {
  SmallVector<Operation *> ops = llvm::to_vector(
      llvm::map_range(block.without_terminator(), [](Operation &op) { return &op; }));
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> resultGradients;
    for (Value result : op->getResults()) {
      resultGradients.push_back(gradients.get(builder, result));
    }
    if (llvm::none_of(resultGradients, [](Value gradient) { return bool(gradient); })) {
      continue;
    }
    if (auto call = dyn_cast<CallOp>(op)) {
      buildBackwardOf(call, builder, gradients);
      continue;
    }
    if (isa<ReadOp>(op)) {
      continue; // A leaf: the result is its gradient.
    }
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable) {
      if (llvm::none_of(op->getOperandTypes(), isDifferentiable)) {
        continue; // No operand has a gradient.
      }
      return op->emitOpError("build-gradients: has no derivative, but the loss depends on it");
    }
    SmallVector<Value> operandGradients(op->getNumOperands());
    if (failed(differentiable.buildGradient(builder, resultGradients, operandGradients))) {
      return failure();
    }
    for (auto [operand, gradient] : llvm::zip(op->getOperands(), operandGradients)) {
      gradients.add(operand, gradient);
    }
  }
  return success();
}

void GradientBuilder::buildBackwardOf(CallOp call, OpBuilder &builder, Gradients &gradients) {
  LayerGradient &layer = *byForward[call.getCallee()];
  SmallVector<Value> operands;
  for (unsigned argument : layer.arguments) {
    operands.push_back(call.getOperand(argument));
  }
  llvm::append_range(operands, call->getResults().drop_front(layer.results));
  for (Value result : call->getResults().take_front(layer.results)) {
    if (isDifferentiable(result.getType())) {
      Value gradient = gradients.get(builder, result);
      operands.push_back(
          gradient ? createCast(builder, call.getLoc(), gradient, getElementTypeOrSelf(result))
                   : createZeroLike(builder, call.getLoc(), result));
    }
  }
  auto backward = CallOp::create(builder, call.getLoc(), layer.backward.getResultTypes(),
                                 FlatSymbolRefAttr::get(layer.backward.getSymNameAttr()),
                                 builder.getStringAttr(call.getLabel() + " backward"), operands);
  if (moveBehind(call, backward)) {
    gradients.addEarly(backward);
  }
  for (auto [argument, gradient] : llvm::zip(layer.gradients, backward->getResults())) {
    gradients.add(call.getOperand(argument), gradient);
  }
}

struct BuildGradientsPass : impl::BuildGradientsPassBase<BuildGradientsPass> {
  void runOnOperation() override {
    declareLossScale(getOperation());
    if (failed(GradientBuilder(getOperation()).differentiateLoss())) {
      return signalPassFailure();
    }
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      eraseDeadOps(function.getBody().front());
    }
  }
};

} // namespace
} // namespace weft
