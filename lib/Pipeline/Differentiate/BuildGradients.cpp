//===- BuildGradients.cpp - forward and backward from the loss ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LossScale.h"
#include "RecomputeValues.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Differentiate/Passes.h"
#include "weft/Pipeline/LayerLabels.h"
#include "weft/Pipeline/ReadPlan.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

#include <map>

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

/// Returns N for a call with the label "layers.N", else `outer`, the layer that the call is in.
std::optional<int64_t> layerOf(CallOp call, std::optional<int64_t> outer) {
  std::optional<int64_t> number = layerOfLabel(call.getLabel());
  return number ? number : outer;
}

class GradientBuilder {
public:
  GradientBuilder(ModuleOp module, std::vector<desc::ActivationSpec> activations)
      : module(module), symbols(module), activations(std::move(activations)) {}

  LogicalResult differentiateLoss();

private:
  FailureOr<LayerGradient *> differentiateLayer(CallOp call, std::optional<int64_t> layer);
  func::FuncOp takeLayer(CallOp call);
  LogicalResult buildFunctions(LayerGradient &layer, std::optional<int64_t> number);
  void passForwardValues(LayerGradient &layer, const ActivationEntries::OfLayer &entries);
  LogicalResult callForward(Block &block, std::optional<int64_t> layer);
  LogicalResult buildBackward(Block &block, OpBuilder &builder, Gradients &gradients);
  void buildBackwardOf(CallOp call, OpBuilder &builder, Gradients &gradients);

  ModuleOp module;
  SymbolTable symbols;
  ActivationEntries activations;
  /// By the name of the layer and the entries that hold in it and, once it is done, by the name of
  /// its forward function.
  std::map<std::pair<std::string, ActivationEntries::OfLayer>, std::unique_ptr<LayerGradient>>
      layers;
  llvm::StringMap<LayerGradient *> byForward;
  /// Copies of layers as they were, for further pairs of functions of the same layer, and how many
  /// pairs each has.
  llvm::StringMap<std::pair<OwningOpRef<func::FuncOp>, unsigned>> originals;
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
  if (failed(callForward(block, std::nullopt))) {
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
  // With layers, these keep most values, and the step's other ops are recomputed on request alone.
  recomputeValues(observed, activations, /*cheap=*/block.getOps<CallOp>().empty());
  loss.setName("step");
  loss.setFunctionType(builder.getFunctionType({}, {}));
  return activations.check(module.getContext());
}

/// Replaces every call of a layer in `block`, which is in the layer `outer` if that is not null, by
/// a call of its forward function.
LogicalResult GradientBuilder::callForward(Block &block, std::optional<int64_t> outer) {
  for (CallOp call : llvm::make_early_inc_range(block.getOps<CallOp>())) {
    FailureOr<LayerGradient *> layer = differentiateLayer(call, layerOf(call, outer));
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

FailureOr<LayerGradient *> GradientBuilder::differentiateLayer(CallOp call,
                                                               std::optional<int64_t> number) {
  std::unique_ptr<LayerGradient> &layer = layers[{call.getCallee().str(), activations.of(number)}];
  if (layer) {
    if (!layer->backward) {
      return call.emitError("build-gradients: layer '") << call.getCallee() << "' calls itself";
    }
    return layer.get();
  }
  layer = std::make_unique<LayerGradient>();
  layer->forward = takeLayer(call);
  if (!layer->forward || failed(buildFunctions(*layer, number))) {
    return failure();
  }
  return layer.get();
}

/// Returns the function that `call` calls, or a copy of what it was before it became forward: with
/// other entries for its ops a layer has other functions. Returns null, after an error, if it
/// cannot be differentiated.
func::FuncOp GradientBuilder::takeLayer(CallOp call) {
  StringRef name = call.getCallee();
  auto &[original, count] = originals[name];
  if (original) {
    func::FuncOp copy = original->clone();
    copy.setName((name + "." + Twine(++count)).str());
    symbols.insert(copy);
    return copy;
  }
  auto function = symbols.lookup<func::FuncOp>(name);
  if (!function || function.isExternal()) {
    call.emitError("build-gradients: layer '") << name << "' has no body";
    return {};
  }
  for (ReadOp read : function.getOps<ReadOp>()) {
    read.emitError("build-gradients: a layer takes variables as arguments, expected no read in '")
        << name << "'";
    return {};
  }
  original = function.clone();
  count = 1;
  return function;
}

/// Turns a layer's function into forward, and builds backward.
LogicalResult GradientBuilder::buildFunctions(LayerGradient &layer, std::optional<int64_t> number) {
  std::string name = layer.forward.getSymName().str();
  layer.results = layer.forward.getNumResults();
  Block &block = layer.forward.getBody().front();
  if (failed(callForward(block, number))) {
    return failure();
  }
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfter(layer.forward);
  layer.backward = func::FuncOp::create(builder, layer.forward.getLoc(), name + "_backward",
                                        builder.getFunctionType({}, {}));
  layer.backward.setPrivate();
  Block *body = layer.backward.addEntryBlock();
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
      layer.gradients.push_back(argument.getArgNumber());
      returned.push_back(gradient);
    }
  }
  func::ReturnOp::create(builder, layer.backward.getLoc(), returned);
  passForwardValues(layer, activations.of(number));
  symbols.insert(layer.backward);
  // Calls that are not visited yet still have the layer's name, a key of `layers`.
  symbols.remove(layer.forward);
  layer.forward.setName(name + "_forward");
  symbols.insert(layer.forward);
  byForward[layer.forward.getSymName()] = &layer;
  return success();
}

/// Backward uses values of forward so far. Turns those into arguments: forward's own arguments as
/// they are, and other values as further results of forward, unless recomputing them is cheaper.
void GradientBuilder::passForwardValues(LayerGradient &layer,
                                        const ActivationEntries::OfLayer &entries) {
  Block &forward = layer.forward.getBody().front(), &backward = layer.backward.getBody().front();
  eraseDeadOps(backward); // Unused ops must not save values.
  recomputeValues(forward, backward, activations, entries);
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
  auto backward =
      CallOp::create(builder, call.getLoc(), layer.backward.getResultTypes(),
                     FlatSymbolRefAttr::get(layer.backward.getSymNameAttr()),
                     builder.getStringAttr(call.getLabel() + kBackwardSuffix), operands);
  if (moveBehind(call, backward)) {
    gradients.addEarly(backward);
  }
  for (auto [argument, gradient] : llvm::zip(layer.gradients, backward->getResults())) {
    gradients.add(call.getOperand(argument), gradient);
  }
}

struct BuildGradientsPass : impl::BuildGradientsPassBase<BuildGradientsPass> {
  using Base::Base;
  BuildGradientsPass(const BuildGradientsPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec =
        readPlan(module, "build-gradients", plan, {pins.begin(), pins.end()}, written);
    if (failed(spec)) {
      return signalPassFailure();
    }
    declareLossScale(module);
    if (failed(GradientBuilder(module, spec->activations).differentiateLoss())) {
      return signalPassFailure();
    }
    noteActivations(*spec);
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      eraseDeadOps(function.getBody().front());
    }
  }

private:
  /// Whoever reads the module compares it with its plan.
  void noteActivations(const desc::PlanSpec &spec) {
    SmallVector<Attribute> texts;
    for (const desc::ActivationSpec &entry : spec.activations) {
      texts.push_back(StringAttr::get(&getContext(), entry.text()));
    }
    if (!texts.empty()) {
      getOperation()->setAttr(kActivationsAttrName, ArrayAttr::get(&getContext(), texts));
    }
  }

  const desc::PlanSpec *written = nullptr;
};

} // namespace

std::unique_ptr<Pass> createBuildGradientsPass(const BuildGradientsPassOptions &options,
                                               const desc::PlanSpec *plan) {
  return std::make_unique<BuildGradientsPass>(options, plan);
}

} // namespace weft
