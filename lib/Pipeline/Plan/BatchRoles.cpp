//===- BatchRoles.cpp - how values depend on samples ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchRoles.h"

#include "weft/Dialect/Weft/IR/RuleMutation.h"

using namespace mlir;

namespace weft {

bool isPerSample(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && !tensor.hasStaticShape();
}

bool isPerSample(Operation *op) {
  auto has = [](TypeRange types) {
    return llvm::any_of(types, [](Type type) { return isPerSample(type); });
  };
  return has(op->getOperandTypes()) || has(op->getResultTypes());
}

static LogicalResult refuse(Operation *op) {
  auto location = op->getLoc()->findInstanceOf<NameLoc>();
  std::string name = location ? location.getName().str() : op->getName().getStringRef().str();
  return op->emitError("accumulate-micro-batches: '")
         << name << "' needs all samples of a step at once, expected an accumulation of 1";
}

/// Returns the role of a value that may have either role.
static BatchRole join(BatchRole one, BatchRole other) {
  auto [less, more] = std::minmax(one, other);
  bool areTwo = less == BatchRole::Sum && more == BatchRole::Greatest;
  return areTwo ? BatchRole::Mixed : more;
}

LogicalResult BatchRoles::compute(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    if (isPerSample(argument.getType())) {
      roles[argument] = BatchRole::PerSample;
    }
  }
  for (Operation &op : function.getOps()) {
    if (failed(visit(op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult BatchRoles::visit(Operation &op) {
  if (auto call = dyn_cast<CallOp>(op)) {
    return visitCall(call);
  }
  if (auto done = dyn_cast<func::ReturnOp>(op)) {
    SmallVector<BatchRole> &results = resultsOf[op.getParentOp()];
    results.assign(op.getNumOperands(), BatchRole::Free);
    llvm::transform(op.getOperands(), results.begin(), [&](Value value) { return of(value); });
    return success();
  }
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  if (shardable && isPerSample(&op)) {
    return visitPerSample(shardable);
  }
  visitOther(op);
  return success();
}

/// Visits a function once for all its calls, with the joined roles of their operands.
LogicalResult BatchRoles::visitCall(CallOp call) {
  auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
  bool isNew = !resultsOf.contains(callee);
  for (auto [argument, operand] : llvm::zip(callee.getArguments(), call->getOperands())) {
    BatchRole role = join(of(argument), of(operand));
    isNew |= role != of(argument);
    roles[argument] = role;
  }
  if (isNew && failed(compute(callee))) {
    return failure();
  }
  for (auto [result, role] : llvm::zip(call->getResults(), resultsOf[callee])) {
    roles[result] = role;
  }
  return success();
}

/// Checks that such an op can be cut by samples, and has no operand that was summed over other
/// samples.
LogicalResult BatchRoles::visitPerSample(ShardableOpInterface op) {
  FactorRule rule = op.getFactorRule();
  std::optional<unsigned> batch;
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    if (ShapedType::isDynamic(factor.size)) {
      if (batch ||
          (factor.kind != FactorKind::PassThrough && factor.kind != FactorKind::Reduction)) {
        return refuse(op);
      }
      batch = unsigned(number);
    }
  }
  for (Value operand : op->getOperands()) {
    if (of(operand) != BatchRole::Free && of(operand) != BatchRole::PerSample) {
      return refuse(op);
    }
  }
  for (auto [result, dims, reduction] :
       llvm::zip(op->getResults(), rule.results, rule.reductions)) {
    roles[result] = batch && llvm::is_contained(dims, *batch) ? BatchRole::PerSample
                    : reduction == ReductionKind::Sum         ? BatchRole::Sum
                    : reduction == ReductionKind::Max         ? BatchRole::Greatest
                                                              : BatchRole::Mixed;
  }
  return success();
}

void BatchRoles::visitOther(Operation &op) {
  BatchRole role = BatchRole::Free;
  SmallVector<unsigned> sums;
  for (auto [number, operand] : llvm::enumerate(op.getOperands())) {
    role = std::max(role, of(operand));
    if (of(operand) == BatchRole::Sum) {
      sums.push_back(unsigned(number));
    }
  }
  auto shardable = dyn_cast<ShardableOpInterface>(op);
  bool isSum = role == BatchRole::Sum && shardable && isAdditive(shardable, sums);
  if (role != BatchRole::Free && !isSum) {
    role = BatchRole::Mixed;
  }
  for (Value result : op.getResults()) {
    roles[result] = isPerSample(result.getType()) ? BatchRole::PerSample : role;
  }
}

} // namespace weft
