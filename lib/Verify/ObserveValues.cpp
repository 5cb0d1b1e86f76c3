//===- ObserveValues.cpp - makes every value of a step observable ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/ObserveValues.h"

#include "Counterparts.h"

#include "weft/Dialect/Weft/IR/InlineCall.h"
#include "weft/Dialect/Weft/IR/PaddingMask.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Verify/CollectiveKinds.h"

using namespace mlir;

namespace weft::verify {
namespace {

/// Replaces a call by the body of its layer. Names of the ops and labels of the calls in the body
/// get the call's label as a prefix.
void inlineLayer(CallOp call, func::FuncOp callee) {
  const std::string label = call.getLabel().str();
  for (Operation *copy : inlineCall(call, callee)) {
    StringRef place = placeOf(copy->getLoc());
    std::string name = (label + (place.empty() ? "" : "/") + place).str();
    copy->setLoc(NameLoc::get(StringAttr::get(copy->getContext(), name)));
    if (auto inner = dyn_cast<CallOp>(copy)) {
      inner.setLabel((label + "/" + inner.getLabel()).str());
    }
  }
}

/// Inlines calls until there are none: layers may call layers.
void inlineCalls(ModuleOp module, func::FuncOp function) {
  while (true) {
    SmallVector<CallOp> calls(function.getBody().getOps<CallOp>());
    if (calls.empty()) {
      return;
    }
    for (CallOp call : calls) {
      inlineLayer(call, module.lookupSymbol<func::FuncOp>(call.getCallee()));
    }
  }
}

class Observer {
public:
  explicit Observer(func::FuncOp step) : step(step) {}

  std::vector<ObservedValue> run() {
    goOnWhereNotFinite();
    for (Operation &op : llvm::make_early_inc_range(step.getBody().front())) {
      if (keepsValue(&op)) {
        showMoved(&op);
      } else {
        show(&op);
      }
    }
    return std::move(values);
  }

private:
  /// Removes the checks that end a run, such as that the loss is finite, so that the values after
  /// them are observed as well.
  void goOnWhereNotFinite() {
    for (auto observe : llvm::make_early_inc_range(step.getBody().getOps<ObserveOp>())) {
      if (observe.getName() == "loss" || observe.getName() == "gradient_norm") {
        observe.erase();
      } else {
        observe.removeLimitAttr();
        observe.removeMeanAttr();
      }
    }
  }

  /// Returns true if `op` changes only the sharding or the padding of its operand.
  static bool keepsValue(Operation *op) { return isMovement(op) || isPaddingMask(op); }

  static bool isShown(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && isa<FloatType>(type.getElementType());
  }

  /// Observes the results of `op`. Only observed values are numbered, because sharded programs have
  /// more masks.
  void show(Operation *op) {
    if (llvm::none_of(op->getResults(), isShown)) {
      return;
    }
    for (Value result : op->getResults()) {
      if (isShown(result)) {
        std::string name = "gradient/v" + std::to_string(count) + "." +
                           std::to_string(cast<OpResult>(result).getResultNumber());
        names[result] = name;
        observe(result, {name, name, describe(op), isa<QuantizeOp>(op)});
      }
    }
    ++count;
  }

  void showMoved(Operation *op) {
    Value result = op->getResult(0), root = op->getOperand(0);
    names[result] = names.lookup(root);
    const std::string &original = names[result];
    if (original.empty() || !isShown(result) || isa<PartialOp>(op) ||
        !getSharding(result.getType()).getUnreduced().empty()) {
      return;
    }
    Operation *maker = root.getDefiningOp();
    while (keepsValue(maker)) {
      maker = maker->getOperand(0).getDefiningOp();
    }
    std::string what = isa<ReshardOp>(op) ? "reshard"
                       : isPaddingMask(op)
                           ? "mask"
                           : collectiveKind(op, op->getAttrOfType<MeshAttr>("mesh").getParts());
    observe(result, {original + ".moved" + std::to_string(moved++), original,
                     what + " of " + describe(maker)});
  }

  void observe(Value value, ObservedValue shown) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto type = cast<RankedTensorType>(value.getType());
    ShardingAttr sharding = getSharding(type);
    if (!sharding.getUnreduced().empty()) {
      auto whole = withSharding(type, withUnreduced(sharding, {}, ReductionKind::Sum));
      value = ReshardOp::create(builder, value.getLoc(), whole, value);
    }
    ObserveOp::create(builder, value.getLoc(), shown.name, value);
    values.push_back(std::move(shown));
  }

  func::FuncOp step;
  int64_t count = 0, moved = 0;
  DenseMap<Value, std::string> names;
  std::vector<ObservedValue> values;
};

} // namespace

std::vector<ObservedValue> observeValues(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  inlineCalls(module, step);
  return Observer(step).run();
}

} // namespace weft::verify
