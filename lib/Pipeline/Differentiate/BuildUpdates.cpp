//===- BuildUpdates.cpp - parameters follow their gradients -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LossScale.h"
#include "OptimizerFormulas.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Differentiate/Passes.h"
#include "weft/Pipeline/LayerLabels.h"
#include "weft/Pipeline/ReadPlan.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_BUILDUPDATESPASS
#include "weft/Pipeline/Differentiate/Passes.h.inc"

namespace {

/// A parameter, its value and gradient in @step, and its optimizer states.
struct Trained {
  VariableOp variable;
  Value gradient;
  SmallVector<VariableOp> states;
  /// Of a joint update, see UpdateRule.
  Value direction;
};

/// The parameters that one call of a layer uses, which are updated together. Label "" is for
/// parameters that @step uses itself.
using Groups = llvm::MapVector<StringRef, SmallVector<Trained>>;

class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, OptimizerOp optimizer, func::FuncOp step,
                const desc::PipelineSpec &pipeline)
      : module(module), optimizer(optimizer), pipeline(pipeline), symbols(module),
        builder(step.getBody().front().getTerminator()), loc(optimizer.getLoc()),
        formulas(builder, loc, optimizer), block(step.getBody().front()) {}

  LogicalResult build();

private:
  LogicalResult collect();
  void roundGradients();
  void createStates(Trained &trained);
  Value read(StringRef variable);
  Value squareNorm();
  void assignGroup(StringRef label, ArrayRef<Trained *> group);
  void beginJoint(StringRef label, ArrayRef<Trained *> group);
  void joinDirections();
  std::vector<int64_t> stagesOfLayers() const;
  void endJoint(StringRef label, ArrayRef<Trained *> group);
  SmallVector<Trained *> select(MutableArrayRef<Trained> group, bool joint);
  CallOp callFor(StringRef base, StringRef label, ArrayRef<Trained *> group, ValueRange operands,
                 TypeRange results, llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  func::FuncOp getFunction(StringRef base, TypeRange operands, TypeRange results,
                           ArrayRef<VariableOp> variables,
                           llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  CallOp call(func::FuncOp callee, StringRef label, ValueRange operands);

  ModuleOp module;
  OptimizerOp optimizer;
  const desc::PipelineSpec &pipeline;
  SymbolTable symbols;
  OpBuilder builder;
  Location loc;
  OptimizerFormulas formulas;
  Block &block;
  Groups groups;
  llvm::StringMap<Value> reads;
  /// The scalars that all updates share, and those that depend on the norm of all gradients.
  SmallVector<Value> schedule;
  ByNorm byNorm;
  /// Functions already built, by the properties that distinguish them.
  struct Key {
    FunctionType type;
    /// Properties of variables that the update depends on.
    SmallVector<std::pair<bool, Attribute>> variables;
    func::FuncOp function;
  };
  llvm::StringMap<SmallVector<Key>> functions;
};

/// Returns the op that reads the variable which `value` is, or is rounded from in any format; or
/// null.
ReadOp readOf(Value value) {
  value = lookThroughCast(value);
  if (auto quantize = value.getDefiningOp<QuantizeOp>()) {
    value = lookThroughCast(quantize.getInput());
  }
  return value.getDefiningOp<ReadOp>();
}

LogicalResult UpdateBuilder::collect() {
  for (ReadOp read : block.getOps<ReadOp>()) {
    reads.try_emplace(read.getVariable(), read.getOutput());
  }
  llvm::StringMap<StringRef> labels;
  for (CallOp call : block.getOps<CallOp>()) {
    for (Value operand : call.getOperands()) {
      if (ReadOp read = readOf(operand)) {
        labels.try_emplace(read.getVariable(), call.getLabel());
      }
    }
  }
  for (ObserveOp observe : block.getOps<ObserveOp>()) {
    StringRef name = observe.getName();
    if (!name.consume_front("gradient/")) {
      continue;
    }
    auto variable = symbols.lookup<VariableOp>(name);
    if (!variable || variable.getRole() != VariableRole::Parameter) {
      return observe.emitError("build-updates: expected the name of a parameter, got '")
             << name << "'";
    }
    groups[labels.lookup(name)].push_back({variable, observe.getValue(), {}, Value()});
  }
  return success();
}

/// Rounds what @step observes as gradients; updates then read the rounded ones.
void UpdateBuilder::roundGradients() {
  for (ObserveOp observe : block.getOps<ObserveOp>()) {
    if (observe.getName().starts_with("gradient/")) {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPoint(observe);
      Value gradient = observe.getValue();
      observe.getValueMutable().set(
          createCast(builder, gradient.getLoc(), gradient, builder.getBF16Type()));
    }
  }
}

Value UpdateBuilder::read(StringRef variable) {
  Value &value = reads[variable];
  if (!value) {
    auto op = symbols.lookup<VariableOp>(variable);
    value = ReadOp::create(builder, loc, op.getTensorType(), variable);
  }
  return value;
}

/// Declares the optimizer states of a parameter, zero at first.
void UpdateBuilder::createStates(Trained &trained) {
  OpBuilder::InsertionGuard guard(builder);
  auto init = symbols.lookup<func::FuncOp>("init");
  for (StringRef state : formulas.getRule().getStates(trained.variable)) {
    builder.setInsertionPoint(optimizer);
    auto variable = VariableOp::create(
        builder, loc, VariableRole::Optimizer, (state + "/" + trained.variable.getSymName()).str(),
        trained.variable.getDimensions(),
        /*decay=*/false, /*matrix=*/DenseI64ArrayAttr(), trained.variable.getTensorType());
    symbols.insert(variable, Block::iterator(optimizer));
    trained.states.push_back(variable);
    builder.setInsertionPoint(init.getBody().front().getTerminator());
    Value zero = FillOp::create(builder, loc, variable.getTensorType(), 0.0);
    AssignOp::create(builder, loc, variable.getSymName(), zero);
  }
}

/// Returns a private function with this body: if possible one that was built before for the same
/// operands, results and kinds of variables.
func::FuncOp UpdateBuilder::getFunction(StringRef base, TypeRange operands, TypeRange results,
                                        ArrayRef<VariableOp> variables,
                                        llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  FunctionType type = builder.getFunctionType(operands, results);
  SmallVector<std::pair<bool, Attribute>> kinds;
  for (VariableOp variable : variables) {
    kinds.emplace_back(variable.getDecay(), variable.getMatrixAttr());
  }
  for (Key &key : functions[base]) {
    if (key.type == type && key.variables == kinds) {
      return key.function;
    }
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, loc, base, type);
  function.setPrivate();
  symbols.insert(function); // Makes the name unique.
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToEnd(entry);
  SmallVector<Value> returned = body(entry->getArguments());
  func::ReturnOp::create(builder, loc, returned);
  functions[base].push_back({type, std::move(kinds), function});
  return function;
}

CallOp UpdateBuilder::call(func::FuncOp callee, StringRef label, ValueRange operands) {
  std::string text = label.empty() ? "update" : (label + " update").str();
  return CallOp::create(builder, loc, callee.getResultTypes(),
                        FlatSymbolRefAttr::get(callee.getSymNameAttr()),
                        builder.getStringAttr(text), operands);
}

/// Returns the sum of squares of all gradients. A function sums each group.
Value UpdateBuilder::squareNorm() {
  Value total;
  for (auto &[label, group] : groups) {
    SmallVector<Value> gradients;
    for (Trained &trained : group) {
      gradients.push_back(trained.gradient);
    }
    Type scalar = RankedTensorType::get({}, wideTypeOf(getElementTypeOrSelf(gradients[0])));
    func::FuncOp function = getFunction(
        "square_norm", TypeRange(ValueRange(gradients)), scalar, {}, [&](ValueRange arguments) {
          SmallVector<Value> squares;
          for (Value argument : arguments) {
            std::string all = letters(cast<RankedTensorType>(argument.getType()).getRank());
            squares.push_back(ContractOp::create(builder, loc, scalar, all + "," + all + "->",
                                                 ValueRange{argument, argument}));
          }
          return SmallVector<Value>{createSum(builder, loc, squares)};
        });
    Value square = call(function, label, gradients).getResult(0);
    total = total ? createSum(builder, loc, {total, square}) : square;
  }
  return total;
}

/// Returns the parameters of a group whose update is joint, or the others.
SmallVector<Trained *> UpdateBuilder::select(MutableArrayRef<Trained> group, bool joint) {
  SmallVector<Trained *> found;
  for (Trained &trained : group) {
    if (bool(formulas.getRule().getDirectionType(trained.variable)) == joint) {
      found.push_back(&trained);
    }
  }
  return found;
}

/// Calls the function of a group, which is built from `body` unless an equal one exists.
CallOp UpdateBuilder::callFor(StringRef base, StringRef label, ArrayRef<Trained *> group,
                              ValueRange operands, TypeRange results,
                              llvm::function_ref<SmallVector<Value>(ValueRange)> body) {
  auto variables = llvm::map_to_vector(group, [](Trained *one) { return one->variable; });
  return call(getFunction(base, TypeRange(operands), results, variables, body), label, operands);
}

namespace {

/// The operands of an update function that concern all its parameters.
class SharedOperands {
public:
  SharedOperands(ValueRange schedule, const ByNorm &byNorm)
      : values(schedule), scheduled(schedule.size()), byNorm(byNorm) {
    addPresent(values, byNorm);
  }

  const SmallVector<Value> &get() const { return values; }

  // Their meaning among the arguments of the function, and the other arguments.
  ValueRange scheduleIn(ValueRange arguments) const { return arguments.take_front(scheduled); }
  ByNorm byNormIn(ValueRange arguments) const {
    return {byNorm.scale ? arguments[scheduled] : Value(),
            byNorm.finite ? arguments[values.size() - 1] : Value()};
  }
  ValueRange othersIn(ValueRange arguments) const { return arguments.drop_front(values.size()); }

private:
  SmallVector<Value> values;
  size_t scheduled;
  ByNorm byNorm;
};

} // namespace

void UpdateBuilder::assignGroup(StringRef label, ArrayRef<Trained *> group) {
  SharedOperands shared(schedule, byNorm);
  SmallVector<Value> operands = shared.get();
  SmallVector<StringRef> assigned;
  SmallVector<Type> results;
  for (Trained *trained : group) {
    operands.push_back(read(trained->variable.getSymName()));
    operands.push_back(trained->gradient);
    assigned.push_back(trained->variable.getSymName());
    for (VariableOp state : trained->states) {
      operands.push_back(read(state.getSymName()));
      assigned.push_back(state.getSymName());
    }
    results.append(1 + trained->states.size(), trained->variable.getTensorType());
  }
  auto body = [&](ValueRange arguments) {
    SmallVector<Value> updated;
    ValueRange rest = shared.othersIn(arguments);
    for (Trained *trained : group) {
      llvm::append_range(updated,
                         formulas.getRule().update(
                             shared.scheduleIn(arguments), shared.byNormIn(arguments), rest[0],
                             rest[1], rest.slice(2, trained->states.size()), trained->variable));
      rest = rest.drop_front(2 + trained->states.size());
    }
    return updated;
  };
  CallOp updated = callFor("update", label, group, operands, results, body);
  for (auto [name, value] : llvm::zip_equal(assigned, updated.getOutputs())) {
    AssignOp::create(builder, loc, name, value);
  }
}

void UpdateBuilder::beginJoint(StringRef label, ArrayRef<Trained *> group) {
  SharedOperands shared({}, byNorm);
  SmallVector<Value> operands = shared.get();
  SmallVector<Type> results;
  for (Trained *trained : group) {
    operands.push_back(trained->gradient);
    results.push_back(formulas.getRule().getDirectionType(trained->variable));
    for (VariableOp state : trained->states) {
      operands.push_back(read(state.getSymName()));
      results.push_back(state.getTensorType());
    }
  }
  auto body = [&](ValueRange arguments) {
    SmallVector<Value> begun;
    ValueRange rest = shared.othersIn(arguments);
    for (Trained *trained : group) {
      llvm::append_range(begun, formulas.getRule().begin(shared.byNormIn(arguments), rest[0],
                                                         rest.slice(1, trained->states.size()),
                                                         trained->variable));
      rest = rest.drop_front(1 + trained->states.size());
    }
    return begun;
  };
  ValueRange begun = callFor("direction", label, group, operands, results, body).getOutputs();
  for (Trained *trained : group) {
    trained->direction = begun.front();
    for (auto [state, value] : llvm::zip(trained->states, begun.drop_front())) {
      AssignOp::create(builder, loc, state.getSymName(), value);
    }
    begun = begun.drop_front(1 + trained->states.size());
  }
}

/// Returns the pipeline stage of each layer.
std::vector<int64_t> UpdateBuilder::stagesOfLayers() const {
  int64_t count = 0;
  for (StringRef label : llvm::make_first_range(groups)) {
    count = std::max(count, layerOfLabel(label).value_or(-1) + 1);
  }
  std::vector<int64_t> stages;
  for (auto [layers, stage] :
       llvm::zip_equal(pipeline.layersOfChunks(count), pipeline.stagesOfChunks())) {
    stages.insert(stages.end(), size_t(layers), stage);
  }
  stages.resize(size_t(count)); // A plan with other layers is refused later.
  return stages;
}

/// Joins the directions of all layers of a pipeline stage, those of one type with the same
/// dimensions together: what is joined is cut and padded alike.
void UpdateBuilder::joinDirections() {
  llvm::MapVector<std::pair<Type, Attribute>, SmallVector<Trained *>> alike;
  const std::vector<int64_t> stages = stagesOfLayers();
  for (auto &[label, group] : groups) {
    std::optional<int64_t> layer = layerOfLabel(label);
    int64_t stage = layer ? stages[size_t(*layer)] : 0;
    for (Trained *trained : select(group, /*joint=*/true)) {
      VariableOp variable = trained->variable;
      Attribute kind = builder.getArrayAttr({variable.getMatrixAttr(), variable.getDimensionsAttr(),
                                             builder.getI64IntegerAttr(stage)});
      alike[{variable.getTensorType(), kind}].push_back(trained);
    }
  }
  for (auto &[kind, together] : alike) {
    auto directions = llvm::map_to_vector(together, [](Trained *one) { return one->direction; });
    SmallVector<Value> joined = formulas.getRule().join(directions, together.front()->variable);
    for (auto [trained, direction] : llvm::zip_equal(together, joined)) {
      trained->direction = direction;
    }
  }
}

void UpdateBuilder::endJoint(StringRef label, ArrayRef<Trained *> group) {
  SharedOperands shared(schedule, byNorm);
  SmallVector<Value> operands = shared.get();
  SmallVector<Type> results;
  for (Trained *trained : group) {
    operands.push_back(read(trained->variable.getSymName()));
    operands.push_back(trained->direction);
    results.push_back(trained->variable.getTensorType());
  }
  auto body = [&](ValueRange arguments) {
    SmallVector<Value> ended;
    ValueRange rest = shared.othersIn(arguments);
    for (Trained *trained : group) {
      ended.push_back(formulas.getRule().end(shared.scheduleIn(arguments),
                                             shared.byNormIn(arguments), rest[0], rest[1],
                                             trained->variable));
      rest = rest.drop_front(2);
    }
    return ended;
  };
  CallOp ended = callFor("update_matrices", label, group, operands, results, body);
  for (auto [trained, value] : llvm::zip_equal(group, ended.getOutputs())) {
    AssignOp::create(builder, loc, trained->variable.getSymName(), value);
  }
}

LogicalResult UpdateBuilder::build() {
  if (optimizer.getGradientsInBf16()) {
    roundGradients();
  }
  if (failed(collect())) {
    return failure();
  }
  if (groups.empty()) {
    return module.emitError("build-updates: no parameter has a gradient");
  }
  for (auto &[label, group] : groups) {
    for (Trained &trained : group) {
      createStates(trained);
    }
  }
  Value norm = formulas.norm(squareNorm());
  Value lossScale = readLossScale(module, builder, loc);
  ObserveOp::create(builder, loc, "gradient_norm",
                    lossScale ? observedNorm(builder, loc, norm, lossScale) : norm);
  if (lossScale) {
    ObserveOp::create(builder, loc, "loss_scale", lossScale);
  }
  schedule = formulas.schedule(read("step_number"));
  byNorm = {formulas.clipScale(norm), lossScale ? norm : Value()};
  for (auto [part, joint] : {std::pair(&UpdateBuilder::assignGroup, false),
                             {&UpdateBuilder::beginJoint, true},
                             {&UpdateBuilder::endJoint, true}}) {
    if (part == &UpdateBuilder::endJoint) {
      joinDirections();
    }
    for (auto &[label, group] : groups) {
      if (SmallVector<Trained *> chosen = select(group, joint); !chosen.empty()) {
        (this->*part)(label, chosen);
      }
    }
  }
  if (lossScale) {
    assignLossScale(builder, loc, optimizer, norm, lossScale);
  }
  optimizer.erase();
  return success();
}

struct BuildUpdatesPass : impl::BuildUpdatesPassBase<BuildUpdatesPass> {
  using Base::Base;
  BuildUpdatesPass(const BuildUpdatesPassOptions &options, const desc::PlanSpec *written)
      : Base(options), written(written) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<desc::PlanSpec> spec = readPlan(module, "build-updates", plan, {}, written);
    if (failed(spec)) {
      return signalPassFailure();
    }
    auto optimizers = llvm::to_vector(module.getOps<OptimizerOp>());
    auto init = module.lookupSymbol<func::FuncOp>("init");
    auto step = module.lookupSymbol<func::FuncOp>("step");
    if (optimizers.size() != 1 || !init || init.isExternal() || !step || step.isExternal()) {
      module.emitError("build-updates: expected @init, @step and one weft.optimizer");
      return signalPassFailure();
    }
    if (!module.lookupSymbol<VariableOp>("step_number")) {
      module.emitError("build-updates: expected a variable @step_number");
      return signalPassFailure();
    }
    if (failed(UpdateBuilder(module, optimizers.front(), step, spec->pipeline).build())) {
      signalPassFailure();
    }
  }

private:
  const desc::PlanSpec *written = nullptr;
};

} // namespace

std::unique_ptr<Pass> createBuildUpdatesPass(const BuildUpdatesPassOptions &options,
                                             const desc::PlanSpec *plan) {
  return std::make_unique<BuildUpdatesPass>(options, plan);
}

} // namespace weft
