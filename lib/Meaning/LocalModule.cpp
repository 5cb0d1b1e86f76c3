//===- LocalModule.cpp - the functions of a module, for one rank ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalProgram.h"

using namespace mlir;

namespace weft::meaning {

static LocalValues operandsOf(Operation &op, const llvm::DenseMap<Value, LocalValue> &values) {
  return llvm::map_to_vector<4>(op.getOperands(),
                                [&](Value operand) { return values.lookup(operand); });
}

void LocalModule::evaluate(Operation &op, Values &values) {
  if (isa<AgreeOp>(op)) {
    return; // Gives no value.
  }
  LocalValues operands = operandsOf(op, values), results;
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

LocalValues LocalModule::call(func::FuncOp function, ArrayRef<LocalValue> arguments) {
  Values own;
  for (auto [argument, value] : llvm::zip_equal(function.getArguments(), arguments)) {
    own[argument] = value;
  }
  Block &body = function.getBody().front();
  for (Operation &op : body.without_terminator()) {
    evaluate(op, own);
  }
  return operandsOf(*body.getTerminator(), own);
}

/// Returns false if the value was not yet sent. Ops that transfer stand in sections, not in the
/// functions that these call.
bool LocalModule::transfer(Operation &op, Transfers &transfers) {
  if (auto send = dyn_cast<SendOp>(op)) {
    Route route{rankClass, uint32_t(send.getTo()), uint32_t(send.getNumber())};
    transfers.send(route, values.lookup(send.getInput()).array);
    return true;
  }
  auto receive = cast<ReceiveOp>(op);
  std::optional<ArrayId> array =
      transfers.receive({uint32_t(receive.getFrom()), rankClass, uint32_t(receive.getNumber())});
  if (array) {
    values[receive.getOutput()] = {*array, {}, {}};
  }
  return array.has_value();
}

void LocalModule::begin(func::FuncOp own) {
  section = own;
  values.clear();
  result = {};
  next = own.getBody().front().begin();
}

bool LocalModule::advance(Transfers &transfers) {
  Block::iterator before = next;
  for (; !isAtEnd(); ++next) {
    if (!isa<SendOp, ReceiveOp>(*next)) {
      evaluate(*next, values);
    } else if (!transfer(*next, transfers)) {
      break;
    }
  }
  return next != before;
}

SectionResult LocalModule::run(func::FuncOp own) {
  Transfers none;
  begin(own);
  advance(none);
  return std::move(result);
}

} // namespace weft::meaning
