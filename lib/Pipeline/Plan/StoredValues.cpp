//===- StoredValues.cpp - values that have the padding of variables -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StoredValues.h"

#include "LayoutSpaces.h"

using namespace mlir;

namespace weft {

SampleClasses::SampleClasses(ModuleOp module, Dimensions &dimensions) : dimensions(dimensions) {
  for (auto variable : module.getOps<VariableOp>()) {
    for (int64_t dim = 0; dim < variable.getTensorType().getRank(); ++dim) {
      if (variable.getRole() == VariableRole::Input && mayBeCut(variable, dim)) {
        classes.insert(dimensions.classOf(variable, dim));
      }
    }
  }
}

bool SampleClasses::dependsOnSamples(Value value) const {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && llvm::any_of(llvm::seq(tensor.getRank()), [&](int64_t dim) {
           return classes.contains(dimensions.classOf(value, dim));
         });
}

bool SampleClasses::dependsOnSamples(Operation *op) const {
  auto depends = [&](Value value) { return dependsOnSamples(value); };
  return llvm::any_of(op->getOperands(), depends) || llvm::any_of(op->getResults(), depends);
}

StoredValues::StoredValues(ModuleOp module, Dimensions &dimensions, const StoredClass &stored)
    : module(module), dimensions(dimensions), stored(stored), symbols(module),
      samples(module, dimensions) {
  module.walk([&](CallOp call) { callers[symbols.lookup(call.getCallee())].push_back(call); });
  while (spread()) {
  }
  assumeWanted();
  while (refuteWanted()) {
  }
  storedValues.insert(wanted.begin(), wanted.end());
}

/// Returns the dimensions of `owner`, a value or a variable of this type, that are of a class.
template <typename Owner>
static SmallVector<int64_t> dimsOfClass(Type type, Owner owner, Dimensions &dimensions,
                                        uint32_t dimension) {
  SmallVector<int64_t> dims;
  auto tensor = dyn_cast<RankedTensorType>(type);
  for (int64_t dim = 0; tensor && dim < tensor.getRank(); ++dim) {
    if (dimensions.classOf(owner, dim) == dimension) {
      dims.push_back(dim);
    }
  }
  return dims;
}

SmallVector<int64_t> StoredValues::dimsOf(Value value) {
  return dimsOfClass(value.getType(), value, dimensions, stored.dimension);
}

SmallVector<int64_t> StoredValues::dimsOf(VariableOp variable) {
  return dimsOfClass(variable.getTensorType(), variable, dimensions, stored.dimension);
}

/// Returns true if an op may compute with the padding: none of its values depends on samples, and
/// padding along the dimension changes no other element.
bool StoredValues::mayMakeStored(Operation *op) {
  auto [known, isNew] = mayMake.try_emplace(op, false);
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  if (!isNew || !shardable || samples.dependsOnSamples(op)) {
    return known->second;
  }
  FactorRule rule = shardable.getFactorRule();
  auto mayPad = [&](ValueRange values, ArrayRef<SmallVector<unsigned>> factors) {
    return llvm::all_of(llvm::zip(values, factors), [&](auto pair) {
      auto [value, ofValue] = pair;
      return llvm::all_of(dimsOf(value), [&, &list = ofValue](int64_t dim) {
        return mayBePadded(op, list[dim]) && rule.factors[list[dim]].size == stored.size;
      });
    });
  };
  return known->second =
             mayPad(op->getOperands(), rule.operands) && mayPad(op->getResults(), rule.results);
}

bool StoredValues::makesStored(Operation *op) {
  auto isStoredOne = [&](Value value) { return isStored(value); };
  if (isa<ReadOp, CallOp>(op)) {
    return llvm::any_of(op->getResults(), isStoredOne);
  }
  if (!mayMakeStored(op)) {
    return false;
  }
  if (llvm::any_of(op->getOperands(), isStoredOne)) {
    return true;
  }
  auto results =
      llvm::make_filter_range(op->getResults(), [&](Value result) { return hasClass(result); });
  return !results.empty() && llvm::all_of(results, isStoredOne);
}

bool StoredValues::needsStored(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto assign = dyn_cast<AssignOp>(op)) {
    return stored.variables.contains(symbols.lookup(assign.getVariable()));
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    return isStored(callee.getArgument(operand.getOperandNumber()));
  }
  if (isa<func::ReturnOp>(op)) {
    auto found = callers.find(op->getParentOp());
    return found != callers.end() &&
           isStored(found->second.front()->getResult(operand.getOperandNumber()));
  }
  return makesStored(op);
}

//===----------------------------------------------------------------------===//
// From variables
//===----------------------------------------------------------------------===//

bool StoredValues::add(Value value) { return hasClass(value) && storedValues.insert(value).second; }

/// Adds the values that are computed from stored values. Returns true if there were any.
bool StoredValues::spread() {
  bool isChanged = false;
  module.walk([&](Operation *op) {
    if (auto read = dyn_cast<ReadOp>(op)) {
      isChanged |=
          stored.variables.contains(symbols.lookup(read.getVariable())) && add(read.getOutput());
    } else if (auto call = dyn_cast<CallOp>(op)) {
      isChanged |= spread(call);
    } else if (mayMakeStored(op) &&
               llvm::any_of(op->getOperands(), [&](Value value) { return isStored(value); })) {
      for (Value result : op->getResults()) {
        isChanged |= add(result);
      }
    }
  });
  return isChanged;
}

bool StoredValues::spread(CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  if (callee.isExternal()) {
    return false;
  }
  bool isChanged = false;
  for (auto [operand, argument] : llvm::zip(call->getOperands(), callee.getArguments())) {
    isChanged |= isStored(operand) && add(argument);
  }
  Operation *done = callee.getBody().front().getTerminator();
  for (auto [result, returned] : llvm::zip(call->getResults(), done->getOperands())) {
    isChanged |= isStored(returned) && add(result);
  }
  return isChanged;
}

//===----------------------------------------------------------------------===//
// To variables
//===----------------------------------------------------------------------===//

/// Assumes that all uses of other values want them stored; refuteWanted removes those of which one
/// does not.
void StoredValues::assumeWanted() {
  auto assume = [&](Value value) {
    if (hasClass(value) && !isStored(value) && !samples.dependsOnSamples(value)) {
      wanted.insert(value);
    }
  };
  module.walk([&](Operation *op) {
    if (isa<ReadOp>(op)) {
      return; // Padded only for the ops that need it.
    }
    llvm::for_each(op->getResults(), assume);
    if (auto function = dyn_cast<func::FuncOp>(op); function && !function.isExternal()) {
      llvm::for_each(function.getArguments(), assume);
    }
  });
}

bool StoredValues::refuteWanted() {
  size_t before = wanted.size();
  wanted.remove_if([&](Value value) { return !isWanted(value); });
  return wanted.size() < before;
}

bool StoredValues::isWanted(Value value) {
  if (value.use_empty() ||
      !llvm::all_of(value.getUses(), [&](OpOperand &use) { return wants(use); })) {
    return false;
  }
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto found = callers.find(argument.getOwner()->getParentOp());
    return found != callers.end() && llvm::all_of(found->second, [&](CallOp call) {
             return isStoredOrWanted(call->getOperand(argument.getArgNumber()));
           });
  }
  if (auto call = value.getDefiningOp<CallOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    Operation *done = callee.getBody().front().getTerminator();
    return isStoredOrWanted(done->getOperand(cast<OpResult>(value).getResultNumber()));
  }
  return true;
}

bool StoredValues::wants(OpOperand &use) {
  Operation *op = use.getOwner();
  auto isOne = [&](Value value) { return isStoredOrWanted(value); };
  if (auto assign = dyn_cast<AssignOp>(op)) {
    return stored.variables.contains(symbols.lookup(assign.getVariable()));
  }
  if (auto call = dyn_cast<CallOp>(op)) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    return isOne(callee.getArgument(use.getOperandNumber()));
  }
  if (isa<func::ReturnOp>(op)) {
    auto found = callers.find(op->getParentOp());
    return found != callers.end() && llvm::all_of(found->second, [&](CallOp call) {
             return isOne(call->getResult(use.getOperandNumber()));
           });
  }
  if (isa<ObserveOp>(op)) {
    return true;
  }
  auto results =
      llvm::make_filter_range(op->getResults(), [&](Value result) { return hasClass(result); });
  return mayMakeStored(op) &&
         (llvm::any_of(op->getOperands(), [&](Value value) { return isStored(value); }) ||
          llvm::all_of(results, isOne));
}

} // namespace weft
