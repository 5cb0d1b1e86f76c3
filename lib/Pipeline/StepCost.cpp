//===- StepCost.cpp - operations of a training step -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/StepCost.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/FunctionCosts.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/BatchSize.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace weft;

double weft::countStepFlops(ModuleOp module, int64_t batch) {
  OwningOpRef<ModuleOp> sized = module.clone();
  substituteBatch(*sized, batch);
  FunctionCosts flops(*sized, [](Operation *op) {
    bool isAsked = llvm::isa<ShardableOpInterface>(op) && !op->hasAttr(kRecomputedAttrName);
    return isAsked ? costOf(op).modelFlops.constant : 0;
  });
  return flops.of(sized->lookupSymbol<func::FuncOp>("step"));
}
