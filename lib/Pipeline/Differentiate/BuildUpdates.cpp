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
};

/// The parameters that one call of a layer uses, which are updated together. Label "" is for
/// parameters that @step uses itself.
using Groups = llvm::MapVector<StringRef, SmallVector<Trained>>;

class UpdateBuilder {
public:
  UpdateBuilder(ModuleOp module, OptimizerOp optimizer, func::FuncOp step)
      : module(module), optimizer(optimizer), symbols(module),
        builder(step.getBody().front().getTerminator()), loc(optimizer.getLoc()),
        formulas(builder, loc, optimizer), block(step.getBody().front()) {}

  LogicalResult build();

private:
  LogicalResult collect();
  void createStates(Trained &trained);
  Value read(StringRef variable);
  Value squareNorm();
  void assignGroup(StringRef label, MutableArrayRef<Trained> group, ValueRange schedule,
                   Value scale, Value skipNorm);
  func::FuncOp getFunction(StringRef base, TypeRange operands, TypeRange results,
                           ArrayRef<VariableOp> variables,
                           llvm::function_ref<SmallVector<Value>(ValueRange)> body);
  CallOp call(func::FuncOp callee, StringRef label, ValueRange operands);

  ModuleOp module;
  OptimizerOp optimizer;
  SymbolTable symbols;
  OpBuilder builder;
  Location loc;
  OptimizerFormulas formulas;
  Block &block;
  Groups groups;
  llvm::StringMap<Value> reads;
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
    groups[labels.lookup(name)].push_back({variable, observe.getValue(), {}});
  }
  return success();
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
  for (StringRef state : formulas.getStates(trained.variable)) {
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

/// `scale` is that of clipping, `skipNorm` a norm that must be finite; each may be null.
void UpdateBuilder::assignGroup(StringRef label, MutableArrayRef<Trained> group,
                                ValueRange schedule, Value scale, Value skipNorm) {
  SmallVector<Value> operands(schedule);
  for (Value number : {scale, skipNorm}) {
    if (number) {
      operands.push_back(number);
    }
  }
  size_t shared = operands.size();
  SmallVector<VariableOp> variables;
  SmallVector<StringRef> assigned;
  SmallVector<Type> results;
  for (Trained &trained : group) {
    operands.push_back(read(trained.variable.getSymName()));
    operands.push_back(trained.gradient);
    assigned.push_back(trained.variable.getSymName());
    for (VariableOp state : trained.states) {
      operands.push_back(read(state.getSymName()));
      assigned.push_back(state.getSymName());
    }
    results.append(1 + trained.states.size(), trained.variable.getTensorType());
    variables.push_back(trained.variable);
  }
  auto body = [&](ValueRange arguments) {
    SmallVector<Value> updated;
    ValueRange rest = arguments.drop_front(shared);
    for (Trained &trained : group) {
      llvm::append_range(updated,
                         formulas.update(arguments.take_front(schedule.size()),
                                         {scale ? arguments[schedule.size()] : Value(),
                                          skipNorm ? arguments[shared - 1] : Value()},
                                         rest[0], rest[1], rest.slice(2, trained.states.size()),
                                         trained.variable));
      rest = rest.drop_front(2 + trained.states.size());
    }
    return updated;
  };
  func::FuncOp function =
      getFunction("update", TypeRange(ValueRange(operands)), results, variables, body);
  CallOp updated = call(function, label, operands);
  for (auto [name, value] : llvm::zip_equal(assigned, updated.getOutputs())) {
    AssignOp::create(builder, loc, name, value);
  }
}

LogicalResult UpdateBuilder::build() {
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
  SmallVector<Value> schedule = formulas.schedule(read("step_number"));
  Value scale = formulas.clipScale(norm);
  for (auto &[label, group] : groups) {
    assignGroup(label, group, schedule, scale, lossScale ? norm : Value());
  }
  if (lossScale) {
    assignLossScale(builder, loc, optimizer, norm, lossScale);
  }
  optimizer.erase();
  return success();
}

struct BuildUpdatesPass : impl::BuildUpdatesPassBase<BuildUpdatesPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
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
    if (failed(UpdateBuilder(module, optimizers.front(), step).build())) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace weft
