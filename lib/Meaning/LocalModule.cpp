//===- LocalModule.cpp - the functions of a module, for one rank ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalProgram.h"

using namespace mlir;

namespace weft::meaning {

LocalValues LocalModule::call(func::FuncOp function, ArrayRef<LocalValue> arguments) {
  llvm::DenseMap<Value, LocalValue> values;
  for (auto [argument, value] : llvm::zip_equal(function.getArguments(), arguments)) {
    values[argument] = value;
  }
  LocalValues operands;
  for (Operation &op : function.getBody().front()) {
    operands.clear();
    for (Value operand : op.getOperands()) {
      operands.push_back(values.lookup(operand));
    }
    if (isa<func::ReturnOp>(op)) {
      break;
    }
    LocalValues results;
    if (auto read = dyn_cast<ReadOp>(op)) {
      results = {ops.variable(read.getVariable(), countOf(read.getType()))};
    } else if (auto assign = dyn_cast<AssignOp>(op)) {
      result.variables[assign.getVariable().str()] = operands[0].array;
    } else if (auto observe = dyn_cast<ObserveOp>(op)) {
      result.observed[observe.getName().str()].push_back(operands[0].array);
    } else if (auto inner = dyn_cast<CallOp>(op)) {
      results = closed.contains(inner.getCallee()) ? ops.application(inner, operands)
                                                   : call(lookup(inner.getCallee()), operands);
    } else if (auto launch = dyn_cast<LaunchOp>(op)) {
      results = call(lookup(launch.getKernel()), operands);
    } else {
      results = ops.evaluate(&op, operands);
    }
    for (auto [value, own] : llvm::zip_equal(op.getResults(), results)) {
      values[value] = own;
    }
  }
  return operands;
}

SectionResult LocalModule::run(func::FuncOp section) {
  result = {};
  call(section, {});
  return std::move(result);
}

} // namespace weft::meaning
