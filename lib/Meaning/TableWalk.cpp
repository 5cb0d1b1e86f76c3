//===- TableWalk.cpp - a table, instruction by instruction ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TableWalk.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

using namespace mlir;

namespace weft::meaning {

std::string Origin::describe() const {
  std::string text = rt::labelOf(*program, *instruction, *action);
  return program->rankClasses > 1 ? text + " of rank class " + std::to_string(program->rankClass)
                                  : text;
}

LogicalResult TableWalk::reportAt(const rt::Instruction &instruction, const Twine &reason) {
  return emitError(location, "prove-meaning: ")
         << Origin{&program, &instruction, action, {}}.describe() << " " << reason;
}

void TableWalk::write(const rt::Instruction &instruction, uint32_t buffer, ArrayId array) {
  heldIn(buffer) = array;
  shared.origins.try_emplace(array, Origin{&program, &instruction, action, reading});
}

/// Numbers come first, then tensors; results that are tied lie where their operand lay.
LogicalResult TableWalk::executeKernel(const rt::Instruction &instruction) {
  const std::string &name = program.kernels[instruction.target].name;
  func::FuncOp kernel = kernels.lookup(name);
  if (!kernel) {
    return reportAt(instruction, "runs a kernel that the module does not have: " + name);
  }
  auto tied = kernel->getAttrOfType<DenseI64ArrayAttr>(kTiedAttrName).asArrayRef();
  std::vector<int64_t> numbers = rt::immediatesOf(instruction, *action);
  LocalValues arguments;
  SmallVector<uint32_t> buffers;
  size_t nextNumber = 0, nextOperand = 0;
  for (Type type : kernel.getArgumentTypes()) {
    if (type.isIndex()) {
      arguments.push_back(LocalValue::of(numbers[nextNumber++]));
      buffers.push_back(0);
    } else {
      buffers.push_back(instruction.operands[nextOperand++].buffer);
      arguments.push_back({heldIn(buffers.back()), {}, {}});
      reading.push_back(heldIn(buffers.back()));
    }
  }
  LocalValues results = kernels.call(kernel, arguments);
  for (auto [result, tie] : llvm::zip_equal(results, tied)) {
    uint32_t buffer = tie < 0 ? instruction.operands[nextOperand++].buffer : buffers[tie];
    write(instruction, buffer, result.array);
  }
  return success();
}

LogicalResult TableWalk::executeMatmul(const rt::Instruction &instruction) {
  const rt::Matmul &matmul = program.matmuls[instruction.target];
  LocalValues operands;
  MatmulBuffers buffers(matmul, instruction);
  for (uint32_t buffer : buffers.read) {
    operands.push_back({heldIn(buffer), {}, {}});
    reading.push_back(heldIn(buffer));
  }
  std::optional<LocalValues> results = ops.matmul(matmul, operands);
  if (!results || results->size() != buffers.written.size()) {
    return reportAt(instruction, "is no matmul of what its operands hold");
  }
  for (auto [buffer, result] : llvm::zip_equal(buffers.written, *results)) {
    write(instruction, buffer, result.array);
  }
  return success();
}

/// What is received was made by the class that sends it, so it has its origin.
FailureOr<bool> TableWalk::executeCollective(const rt::Instruction &instruction) {
  const rt::Collective &collective = program.collectives[instruction.target];
  uint32_t first = instruction.operands.front().buffer;
  if (!collective.isAcrossClasses()) {
    reading.push_back(heldIn(first));
    LocalValue result = ops.collective(collective, {heldIn(first), {}, {}});
    write(instruction, instruction.operands.back().buffer, result.array);
    return true;
  }
  std::optional<Route> route = routeOf(collective, program);
  if (!route) {
    return reportAt(instruction, "is across rank classes, expected a transfer from or to its own");
  }
  if (route->from == program.rankClass) {
    shared.transfers.send(*route, heldIn(first));
    return true;
  }
  std::optional<ArrayId> received = shared.transfers.receive(*route);
  if (received) {
    heldIn(first) = *received;
  }
  return received.has_value();
}

static FailureOr<bool> isDone(LogicalResult result) {
  if (failed(result)) {
    return failure();
  }
  return true;
}

FailureOr<bool> TableWalk::execute(const rt::Instruction &instruction) {
  reading.clear();
  switch (instruction.opcode) {
  case rt::Opcode::Kernel:
    return isDone(executeKernel(instruction));
  case rt::Opcode::Matmul:
    return isDone(executeMatmul(instruction));
  case rt::Opcode::Collective:
    return executeCollective(instruction);
  case rt::Opcode::Observe: {
    const rt::Observation &observation = program.observations[instruction.target];
    own[observation.name].push_back(heldIn(instruction.operands[0].buffer));
    return true;
  }
  case rt::Opcode::Agree:
    return true; // Gives no value.
  }
  llvm_unreachable("unknown opcode");
}

void TableWalk::begin(const std::vector<rt::Action> &actions,
                      llvm::function_ref<int64_t(StringRef)> countOf) {
  own.clear();
  held.assign(places.size(), ops.variable("nothing yet", 0).array);
  for (const auto *list : {&program.parameters, &program.optimizerState, &program.inputs}) {
    for (const rt::NamedTensor &tensor : *list) {
      held[places.find(tensor.buffer)] = ops.variable(tensor.name, countOf(tensor.name)).array;
    }
  }
  instructions = rt::Expansion(program, actions);
  next = instructions.begin();
}

LogicalResult TableWalk::advance(bool &moves) {
  for (; !isAtEnd(); ++next) {
    action = &next.by();
    FailureOr<bool> isDone = execute(*next);
    if (failed(isDone)) {
      return failure();
    }
    if (!*isDone) {
      break;
    }
    moves = true;
  }
  return success();
}

LogicalResult TableWalk::reportWaiting() {
  const rt::Collective &collective = program.collectives[next->target];
  return reportAt(*next, "waits for transfer number " + Twine(collective.number) +
                             " of rank class " + Twine(collective.classes.front()) +
                             ", which is not sent");
}

} // namespace weft::meaning
