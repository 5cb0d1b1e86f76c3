//===- DelayScaling.cpp - scales that follow the steps before ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Differentiate/Passes.h"
#include "weft/Pipeline/LayerLabels.h"

#include <map>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_DELAYSCALINGPASS
#include "weft/Pipeline/Differentiate/Passes.h.inc"

namespace {

/// A tensor of a function whose scale is delayed.
struct Scaled {
  std::string name;
  int64_t steps = 0;
  /// The type of its greatest absolute value.
  RankedTensorType type;
  /// The greatest number of its format.
  double limit = 0;
};

/// The tensors of a called function. Its last arguments are their scales, and if @step calls it,
/// its last results are their new greatest values.
using Tensors = SmallVector<Scaled>;

SmallVector<AmaxOp> delayedOf(func::FuncOp function) {
  return llvm::to_vector(llvm::make_filter_range(
      function.getOps<AmaxOp>(), [](AmaxOp amax) { return amax.getHistory().has_value(); }));
}

FailureOr<Scaled> describe(AmaxOp amax) {
  for (Operation *user : amax->getUsers()) {
    if (auto quantize = dyn_cast<QuantizeOp>(user)) {
      HistoryAttr history = *amax.getHistory();
      return Scaled{history.getName().str(), history.getSteps(),
                    cast<RankedTensorType>(amax.getOutput().getType()),
                    llvm::APFloat::getLargest(semanticsOf(quantize.getFormat())).convertToDouble()};
    }
  }
  return amax.emitOpError("delay-scaling: keeps a history of what is not quantized");
}

FailureOr<Tensors> takeScales(func::FuncOp function, bool isOfStep) {
  Block &block = function.getBody().front();
  Operation *end = block.getTerminator();
  Tensors tensors;
  for (AmaxOp amax : delayedOf(function)) {
    FailureOr<Scaled> tensor = describe(amax);
    if (failed(tensor)) {
      return failure();
    }
    amax.getOutput().replaceAllUsesWith(block.addArgument(tensor->type, amax.getLoc()));
    amax.removeHistoryAttr();
    if (isOfStep) {
      end->insertOperands(end->getNumOperands(), amax.getOutput());
    } else {
      amax.erase();
    }
    tensors.push_back(*tensor);
  }
  function.setFunctionType(
      FunctionType::get(function.getContext(), block.getArgumentTypes(), end->getOperandTypes()));
  return tensors;
}

/// Computes the scales in @step or @evaluate.
class RootScaling {
public:
  RootScaling(ModuleOp module, SymbolTable &symbols, func::FuncOp root)
      : module(module), symbols(symbols), isStep(root.getSymName() == "step"),
        builder(OpBuilder::atBlockBegin(&root.getBody().front())) {
    if (isStep) {
      auto number = symbols.lookup<VariableOp>("step_number");
      step = ReadOp::create(builder, root.getLoc(), number.getTensorType(), number.getSymName());
    }
  }

  LogicalResult delay(AmaxOp amax);
  LogicalResult delay(CallOp call, const Tensors &tensors);

private:
  /// The variable of a history, and its value before the step.
  struct History {
    VariableOp variable;
    Value before;
  };
  FailureOr<History> readHistory(const Scaled &tensor, Location loc);
  Value greatestOf(const Scaled &tensor, Value history, Location loc);
  /// The indices of a history, one value for all histories of the same length.
  Value placesOf(RankedTensorType history, Location loc);
  /// Writes `amax` to the index of this step.
  void keep(History history, Value amax, Location loc);

  ModuleOp module;
  SymbolTable &symbols;
  bool isStep;
  OpBuilder builder;
  /// The number of the step; null in @evaluate.
  Value step;
  /// The indices of histories, by their length.
  std::map<int64_t, Value> places;
};

FailureOr<RootScaling::History> RootScaling::readHistory(const Scaled &tensor, Location loc) {
  std::string name = "amax/" + tensor.name;
  auto variable = symbols.lookup<VariableOp>(name);
  if (isStep && variable) {
    return emitError(loc) << "delay-scaling: expected one tensor '" << tensor.name
                          << "' in @step, got two";
  }
  if (!variable) {
    OpBuilder::InsertionGuard guard(builder);
    auto init = module.lookupSymbol<func::FuncOp>("init");
    builder.setInsertionPoint(init);
    auto type = RankedTensorType::get({tensor.steps}, tensor.type.getElementType());
    variable = VariableOp::create(builder, loc, VariableRole::Optimizer, name,
                                  builder.getStrArrayAttr({"history"}), /*decay=*/false,
                                  /*matrix=*/DenseI64ArrayAttr(), type);
    symbols.insert(variable, Block::iterator(init));
    builder.setInsertionPoint(init.getBody().front().getTerminator());
    Value zero = FillOp::create(builder, loc, type, 0.0);
    AssignOp::create(builder, loc, name, zero);
  }
  return History{variable, ReadOp::create(builder, loc, variable.getTensorType(), name)};
}

Value RootScaling::greatestOf(const Scaled &tensor, Value history, Location loc) {
  Value greatest = AmaxOp::create(builder, loc, tensor.type, history, HistoryAttr());
  auto body = [&](OpBuilder &inner, Location at, ValueRange in) {
    auto number = [&](double value) -> Value {
      return arith::ConstantOp::create(inner, at, inner.getFloatAttr(in[0].getType(), value));
    };
    Value isNone = arith::CmpFOp::create(inner, at, arith::CmpFPredicate::OEQ, in[0], number(0));
    return SmallVector<Value>{
        arith::SelectOp::create(inner, at, isNone, number(tensor.limit), in[0])};
  };
  return createMap(builder, loc, tensor.type, greatest, body).getResult(0);
}

Value RootScaling::placesOf(RankedTensorType history, Location loc) {
  Value &known = places[history.getDimSize(0)];
  if (!known) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointAfterValue(step);
    known = IotaOp::create(builder, loc, history.clone(builder.getI32Type()), /*offset=*/Value());
  }
  return known;
}

void RootScaling::keep(History history, Value amax, Location loc) {
  auto type = cast<RankedTensorType>(history.before.getType());
  auto body = [&](OpBuilder &inner, Location at, ValueRange in) {
    Value steps = arith::ConstantOp::create(
        inner, at, inner.getIntegerAttr(in[2].getType(), type.getDimSize(0)));
    Value rest = arith::RemSIOp::create(inner, at, in[2], steps);
    Value place = arith::TruncIOp::create(inner, at, in[3].getType(), rest);
    Value isPlace = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::eq, in[3], place);
    return SmallVector<Value>{arith::SelectOp::create(inner, at, isPlace, in[1], in[0])};
  };
  MapOp after =
      createMap(builder, loc, type, {history.before, amax, step, placesOf(type, loc)}, body);
  AssignOp::create(builder, loc, history.variable.getSymName(), after.getResult(0));
}

LogicalResult RootScaling::delay(AmaxOp amax) {
  Location loc = amax.getLoc();
  FailureOr<Scaled> tensor = describe(amax);
  if (failed(tensor)) {
    return failure();
  }
  builder.setInsertionPointAfter(amax);
  FailureOr<History> history = readHistory(*tensor, loc);
  if (failed(history)) {
    return failure();
  }
  amax.getOutput().replaceAllUsesWith(greatestOf(*tensor, history->before, loc));
  amax.removeHistoryAttr();
  if (isStep) {
    keep(*history, amax.getOutput(), loc);
  } else {
    amax.erase();
  }
  return success();
}

LogicalResult RootScaling::delay(CallOp call, const Tensors &tensors) {
  Location loc = call.getLoc();
  StringRef label = call.getLabel();
  label.consume_back(kBackwardSuffix);
  builder.setInsertionPoint(call);
  SmallVector<Value> operands(call.getOperands());
  SmallVector<Type> results(call.getResultTypes());
  SmallVector<History> histories;
  for (Scaled tensor : tensors) {
    tensor.name = (label + "." + tensor.name).str();
    FailureOr<History> history = readHistory(tensor, loc);
    if (failed(history)) {
      return failure();
    }
    operands.push_back(greatestOf(tensor, history->before, loc));
    if (isStep) {
      results.push_back(tensor.type);
    }
    histories.push_back(*history);
  }
  size_t before = call.getNumResults();
  auto scaled =
      CallOp::create(builder, loc, results, call.getCalleeAttr(), call.getLabelAttr(), operands);
  call->replaceAllUsesWith(scaled->getResults().take_front(before));
  call.erase();
  builder.setInsertionPointAfter(scaled);
  for (auto [history, amax] : llvm::zip(histories, scaled->getResults().drop_front(before))) {
    keep(history, amax, loc);
  }
  return success();
}

struct DelayScalingPass : impl::DelayScalingPassBase<DelayScalingPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> delayed = llvm::to_vector(llvm::make_filter_range(
        module.getOps<func::FuncOp>(), [](auto function) { return !delayedOf(function).empty(); }));
    if (delayed.empty()) {
      return markAllAnalysesPreserved();
    }
    SymbolTable symbols(module);
    if (!symbols.lookup<func::FuncOp>("init") || !symbols.lookup<VariableOp>("step_number")) {
      module.emitError("delay-scaling: expected @init and a variable @step_number");
      return signalPassFailure();
    }
    llvm::StringMap<Tensors> called;
    // First @step, as @evaluate reads its histories.
    for (StringRef name : {"step", "evaluate"}) {
      auto root = symbols.lookup<func::FuncOp>(name);
      if (root && failed(delay(root, symbols, called))) {
        return signalPassFailure();
      }
    }
    for (func::FuncOp function : delayed) {
      for (AmaxOp amax : delayedOf(function)) {
        amax.emitOpError("delay-scaling: expected a history in what @step or @evaluate calls");
        return signalPassFailure();
      }
    }
  }

  LogicalResult delay(func::FuncOp root, SymbolTable &symbols, llvm::StringMap<Tensors> &called) {
    RootScaling scaling(getOperation(), symbols, root);
    for (AmaxOp amax : delayedOf(root)) {
      if (failed(scaling.delay(amax))) {
        return failure();
      }
    }
    for (CallOp call : llvm::make_early_inc_range(root.getOps<CallOp>())) {
      auto [known, isNew] = called.try_emplace(call.getCallee());
      if (isNew) {
        FailureOr<Tensors> tensors =
            takeScales(symbols.lookup<func::FuncOp>(call.getCallee()), root.getName() == "step");
        if (failed(tensors)) {
          return failure();
        }
        known->second = *tensors;
      }
      if (!known->second.empty() && failed(scaling.delay(call, known->second))) {
        return failure();
      }
    }
    return success();
  }
};

} // namespace
} // namespace weft
