//===- StepCost.cpp - operations of a training step -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/StepCost.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/BatchSize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace weft;

namespace {

/// Counts the operations of functions; visits each function once.
class FlopCounter {
public:
  explicit FlopCounter(ModuleOp module) : module(module) {}

  double count(func::FuncOp function) {
    auto known = counted.find(function);
    if (known != counted.end()) {
      return known->second;
    }
    double flops = 0;
    for (Operation &op : function.getOps()) {
      flops += count(op);
    }
    counted[function] = flops;
    return flops;
  }

private:
  double count(Operation &op) {
    if (auto call = llvm::dyn_cast<CallOp>(op)) {
      return count(module.lookupSymbol<func::FuncOp>(call.getCallee()));
    }
    bool isAsked = llvm::isa<ShardableOpInterface>(op) && !op.hasAttr(kRecomputedAttrName);
    return isAsked ? costOf(&op).modelFlops.constant : 0;
  }

  ModuleOp module;
  llvm::DenseMap<Operation *, double> counted;
};

} // namespace

double weft::countStepFlops(ModuleOp module, int64_t batch) {
  OwningOpRef<ModuleOp> sized = module.clone();
  substituteBatch(*sized, batch);
  return FlopCounter(*sized).count(sized->lookupSymbol<func::FuncOp>("step"));
}
