//===- LiveBytes.cpp - memory in use while an op runs ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LiveBytes.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

static double bytesOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() ? double(countBytes(tensor)) : 0;
}

/// Returns the value that holds the memory of `value`: the source of a reshape; null for a
/// variable's value, and for an argument, which the caller holds.
static Value storageOf(Value value) {
  while (auto reshape = value.getDefiningOp<ReshapeOp>()) {
    value = reshape.getInput();
  }
  return isa_and_nonnull<ReadOp>(value.getDefiningOp()) || isa<BlockArgument>(value) ? Value()
                                                                                     : value;
}

LiveBytes::LiveBytes(ModuleOp module) {
  SymbolTable symbols(module);
  for (auto variable : module.getOps<VariableOp>()) {
    variables += bytesOf(getLocalType(variable.getTensorType()));
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    for (auto call : function.getOps<CallOp>()) {
      callsOf[symbols.lookup(call.getCallee())].push_back(call);
    }
    for (Block &block : function.getBody()) {
      measure(block);
    }
  }
  for (auto function : module.getOps<func::FuncOp>()) {
    around(function);
  }
}

void LiveBytes::measure(Block &block) {
  DenseMap<Operation *, double> dying;
  DenseSet<Value> seen;
  for (Operation &op : llvm::reverse(block)) {
    for (Value operand : op.getOperands()) {
      Value storage = storageOf(operand);
      if (storage && seen.insert(storage).second) {
        dying[&op] += bytesOf(storage.getType());
      }
    }
  }
  double live = 0;
  for (Operation &op : block) {
    before[&op] = live;
    double made = 0, kept = 0;
    for (Value result : op.getResults()) {
      double bytes = storageOf(result) == result ? bytesOf(result.getType()) : 0;
      made += bytes;
      kept += seen.contains(result) ? bytes : 0;
    }
    during[&op] = live + made;
    live += kept - dying.lookup(&op);
  }
}

double LiveBytes::around(func::FuncOp function) {
  auto [known, isNew] = outside.try_emplace(function, 0); // Ends where one calls itself.
  if (!isNew) {
    return known->second;
  }
  double most = 0;
  for (Operation *call : callsOf.lookup(function)) {
    most = std::max(most, before.lookup(call) + around(call->getParentOfType<func::FuncOp>()));
  }
  return outside[function] = most;
}

double LiveBytes::at(Operation *op) const {
  auto known = during.find(op);
  return known == during.end()
             ? 0
             : variables + known->second + outside.lookup(op->getParentOfType<func::FuncOp>());
}
