//===- ObserveValues.cpp - makes every value of a step observable ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/ObserveValues.h"

#include "Counterparts.h"

#include "weft/Dialect/Weft/IR/InlineCall.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/PaddingMask.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Verify/CollectiveKinds.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/xxhash.h"

#include <map>

using namespace mlir;

namespace weft::verify {
namespace {

/// Replaces a call by the body of its layer. Names of the ops and labels of the calls in the body
/// get the call's label as a prefix; they belong to the call's pipeline stage.
void inlineLayer(CallOp call, func::FuncOp callee) {
  const std::string label = call.getLabel().str();
  const std::optional<int64_t> stage = markedStageOf(call);
  for (Operation *copy : inlineCall(call, callee)) {
    if (stage) {
      markStage(copy, *stage);
    }
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

/// Returns true if `op` changes only the sharding, the padding or the stage of its operand.
bool keepsValue(Operation *op) {
  return isMovement(op) || isPaddingMask(op) || isResize(op) || isa<TransferOp>(op);
}

/// Returns what `op`, which keeps its operand's value, does with it: "all-reduce sum over tp".
std::string movementOf(Operation *op) {
  if (auto transfer = dyn_cast<TransferOp>(op)) {
    return transferKind(transfer);
  }
  if (isPaddingMask(op)) {
    return "mask";
  }
  return isa<ReshardOp>(op) || isResize(op)
             ? op->getName().stripDialect().str()
             : collectiveKind(op, op->getAttrOfType<MeshAttr>("mesh").getParts());
}

/// Names values by what they are computed from, whatever the order, the shardings and the stages,
/// and sums by their terms. Padded tensors have their names, so names do not tell sizes.
class ValueNames {
public:
  /// Returns the name of a value whose op was given to `add`.
  std::string of(Value value) const { return names.lookup(value); }

  /// Returns true if such an op is computed from nothing but constants. Its name is that of others
  /// of another size.
  bool isConstant(Operation *op) const { return constants.contains(op); }

  /// Returns true if a value is a sum, which has its name from its terms alone.
  bool isOfTerms(Value value) const { return termsOf.count(of(value)) > 0; }

  /// Names the results of `op`, whose operands have names, and returns the name of what it
  /// computes.
  std::string add(Operation *op) {
    bool mayBeConstant = op->getNumOperands() > 0 || isa<FillOp, MapOp, arith::ConstantOp>(op);
    if (mayBeConstant && llvm::all_of(op->getOperands(), [&](Value operand) {
          return constants.contains(operand.getDefiningOp());
        })) {
      constants.insert(op);
    }
    if (keepsValue(op)) {
      return names[op->getResult(0)] = of(op->getOperand(0));
    }
    if (auto map = dyn_cast<MapOp>(op); map && isSum(map)) {
      return names[op->getResult(0)] = nameOfSum(map);
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    os << op->getName() << ' ' << op->getPropertiesAsAttribute();
    for (Value operand : op->getOperands()) {
      os << ' ' << of(operand);
    }
    for (Block &block : llvm::make_pointee_range(blocksOf(op))) {
      for (BlockArgument argument : block.getArguments()) {
        names[argument] = "argument " + std::to_string(argument.getArgNumber());
      }
      for (Operation &inner : block) {
        os << ' ' << add(&inner);
      }
    }
    std::string name = llvm::utohexstr(llvm::xxh3_64bits(text));
    for (OpResult result : op->getResults()) {
      names[result] = name + "." + std::to_string(result.getResultNumber());
    }
    auto fill = dyn_cast<FillOp>(op);
    if (fill && fill.getDistribution() == Distribution::Constant && fill.getValue().isZero()) {
      zeros.insert(of(fill.getOutput()));
    }
    return name;
  }

private:
  /// Names a sum by its terms but zeros, whatever their order: stages add up their own first.
  std::string nameOfSum(MapOp sum) {
    std::vector<std::string> terms;
    for (Value input : sum.getInputs()) {
      std::string name = of(input);
      auto inner = termsOf.find(name);
      if (inner != termsOf.end()) {
        llvm::append_range(terms, inner->second);
      } else if (!zeros.contains(name)) {
        terms.push_back(name);
      }
    }
    llvm::sort(terms);
    std::string name = "sum-" + llvm::utohexstr(llvm::xxh3_64bits(llvm::join(terms, " ")));
    termsOf[name] = std::move(terms);
    return name;
  }

  static SmallVector<Block *> blocksOf(Operation *op) {
    SmallVector<Block *> blocks;
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        blocks.push_back(&block);
      }
    }
    return blocks;
  }

  DenseMap<Value, std::string> names;
  DenseSet<Operation *> constants;
  /// The names of zeros.
  llvm::StringSet<> zeros;
  /// The names of the terms of sums, by the names of these.
  std::map<std::string, std::vector<std::string>> termsOf;
};

class Observer {
public:
  Observer(func::FuncOp step, bool hasStages) : step(step), hasStages(hasStages) {}

  std::vector<ObservedValue> run() {
    goOnWhereNotFinite();
    for (Operation &op : llvm::make_early_inc_range(step.getBody().front())) {
      names.add(&op);
      stage = stageOf(&op);
      for (Value result : op.getResults()) {
        stages[result] = stage;
      }
      if (names.isConstant(&op)) {
        continue;
      }
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

  /// Returns the stage that has the results of `op`. An op without a mark, as movements are, is of
  /// the stage of its operands, or of all stages.
  std::optional<int64_t> stageOf(Operation *op) const {
    if (auto transfer = dyn_cast<TransferOp>(op)) {
      return int64_t(transfer.getTo());
    }
    std::optional<int64_t> found = markedStageOf(op);
    for (Value operand : op->getOperands()) {
      found = found ? found : stages.lookup(operand);
    }
    return found;
  }

  static bool isShown(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && isa<FloatType>(type.getElementType());
  }

  void show(Operation *op) {
    for (Value result : op->getResults()) {
      if (isShown(result)) {
        std::string name = "gradient/" + names.of(result);
        int64_t copies = counts[name]++;
        std::string own = copies > 0 ? name + ".copy" + std::to_string(copies) : name;
        observe(result,
                {own, name, describe(op) + stageText(), isa<QuantizeOp>(op), mayBeOfStage(result)});
      }
    }
  }

  void showMoved(Operation *op) {
    Value result = op->getResult(0), root = op->getOperand(0);
    if (!isShown(result) || isa<PartialOp>(op) ||
        !getSharding(result.getType()).getUnreduced().empty()) {
      return;
    }
    Operation *maker = root.getDefiningOp();
    while (keepsValue(maker)) {
      maker = maker->getOperand(0).getDefiningOp();
    }
    std::string original = "gradient/" + names.of(result);
    observe(result,
            {original + ".moved" + std::to_string(moved++), original,
             movementOf(op) + " of " + describe(maker) + (isa<TransferOp>(op) ? "" : stageText()),
             /*isCoarse=*/false, mayBeOfStage(result)});
  }

  /// Returns true if `value` may be the sum of a stage's own terms.
  bool mayBeOfStage(Value value) const { return hasStages && names.isOfTerms(value); }

  /// Returns " in stage 1" for an op of that stage.
  std::string stageText() const { return stage ? " in stage " + std::to_string(*stage) : ""; }

  void observe(Value value, ObservedValue shown) {
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto type = cast<RankedTensorType>(value.getType());
    ShardingAttr sharding = getSharding(type);
    if (!sharding.getUnreduced().empty()) {
      auto whole = withSharding(type, withUnreduced(sharding, {}, ReductionKind::Sum));
      value = ReshardOp::create(builder, value.getLoc(), whole, value);
    }
    auto op = ObserveOp::create(builder, value.getLoc(), shown.name, value);
    if (hasStages) { // The first stage shows what all have.
      markStage(op, stage.value_or(0));
    }
    values.push_back(std::move(shown));
  }

  func::FuncOp step;
  const bool hasStages;
  ValueNames names;
  /// Of the op that is looked at, and of the values before it.
  std::optional<int64_t> stage;
  DenseMap<Value, std::optional<int64_t>> stages;
  /// The number of values of each name.
  std::map<std::string, int64_t> counts;
  int64_t moved = 0;
  std::vector<ObservedValue> values;
};

} // namespace

std::vector<ObservedValue> observeValues(ModuleOp module) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  const bool hasStages = countStages(module) > 1;
  inlineCalls(module, step);
  return Observer(step, hasStages).run();
}

} // namespace weft::verify
