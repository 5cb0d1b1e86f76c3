//===- Executor.cpp - runs one rank's program -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Executor.h"

#include "core/Products.h"
#include "core/Text.h"

#include <cmath>
#include <cstring>
#include <numeric>

using namespace weft::rt;

Executor::Executor(const Program &program, const KernelFunction *kernels, int64_t rank)
    : program(program), kernels(kernels), self(rank), place(program.coordinatesOf(rank)) {}

bool Executor::prepare(Communicator &communicator, Observer &observer) {
  link = &communicator;
  this->observer = &observer;
  if (!allocateArena()) {
    return communicator.fail(
        concat("rank ", self, " cannot allocate its arena of ", bytesText(program.arenaBytes)));
  }
  if (!prepareProducts()) {
    return false;
  }
  size_t operands = 0;
  for (const auto *section : {&program.init, &program.step}) {
    for (const Instruction &instruction : *section) {
      operands += instruction.operands.size();
    }
  }
  addresses.reserve(operands);
  initCode = prepareSection("init", program.init);
  stepCode = prepareSection("step", program.step);

  std::vector<uint32_t> allAxes(program.mesh.size());
  std::iota(allAxes.begin(), allAxes.end(), 0);
  Collective maximum = {CollectiveKind::AllReduce,
                        ReductionKind::Max,
                        ElementType::I32,
                        std::move(allAxes),
                        {1},
                        0,
                        0};
  agree =
      communicator.prepare(maximum, {"control", 0, "is the loss or norm of any rank not finite"});
  return true;
}

bool Executor::allocateArena() {
  // aligned_alloc wants a multiple of the alignment; an empty arena still gets an address.
  uint64_t bytes = (program.arenaBytes / kAlignment + 1) * kAlignment;
  arena.reset(static_cast<char *>(std::aligned_alloc(kAlignment, bytes)));
  if (!arena) {
    return false;
  }
  std::memset(arena.get(), 0, bytes);
  return true;
}

bool Executor::prepareProducts() {
  for (const Product &product : program.products) {
    std::unique_ptr<BF16Product> &made = bf16Products.emplace_back();
    std::string error;
    if (product.type == ElementType::BF16 && !(made = BF16Product::make(product, error))) {
      return link->fail(error);
    }
  }
  return true;
}

std::vector<Executor::Prepared>
Executor::prepareSection(const char *section, const std::vector<Instruction> &instructions) {
  std::vector<Prepared> code;
  code.reserve(instructions.size());
  for (uint32_t index = 0; index < instructions.size(); ++index) {
    const Instruction &instruction = instructions[index];
    Prepared prepared;
    prepared.opcode = instruction.opcode;
    prepared.target = instruction.target;
    prepared.operands = addresses.data() + addresses.size();
    prepared.immediates = instruction.immediates.data();
    for (const Operand &operand : instruction.operands) {
      addresses.push_back(address(operand.buffer));
    }
    switch (instruction.opcode) {
    case Opcode::Kernel:
      prepared.kernel = kernels[instruction.target];
      break;
    case Opcode::Product:
      break;
    case Opcode::Collective:
      prepared.handle = link->prepare(program.collectives[instruction.target],
                                      {section, index, program.labels[instruction.label]});
      break;
    case Opcode::Observe: {
      const std::string &name = program.observations[instruction.target].name;
      prepared.mustBeFinite = name == "loss" || name == "gradient_norm";
      break;
    }
    }
    code.push_back(prepared);
  }
  return code;
}

Outcome Executor::runSection(const std::vector<Prepared> &code) {
  for (size_t index = 0; index < code.size(); ++index) {
    Outcome outcome = execute(code[index]);
    if (outcome != Outcome::Done) {
      notFiniteAt = index;
      return outcome;
    }
  }
  return link->stopped() ? Outcome::Stopped : Outcome::Done;
}

Outcome Executor::execute(const Prepared &instruction) {
  void *const *operands = instruction.operands;
  switch (instruction.opcode) {
  case Opcode::Kernel:
    if (link->stopped()) { // Kernels are where the time goes; a failure need not wait for them.
      return Outcome::Stopped;
    }
    instruction.kernel(operands, instruction.immediates, place.data());
    return Outcome::Done;
  case Opcode::Product:
    return runProduct(instruction);
  case Opcode::Collective:
    return link->run(instruction.handle, operands[0], operands[1]) ? Outcome::Done
                                                                   : Outcome::Stopped;
  case Opcode::Observe:
    return observe(instruction);
  }
  return Outcome::Done;
}

Outcome Executor::runProduct(const Prepared &instruction) {
  void *const *operands = instruction.operands;
  std::string error;
  if (BF16Product *product = bf16Products[instruction.target].get()) {
    bool done = product->run(operands[0], operands[1], operands[2], error);
    return done || link->fail(error) ? Outcome::Done : Outcome::Stopped;
  }
  rt::runProduct(program.products[instruction.target], operands[0], operands[1], operands[2]);
  return Outcome::Done;
}

Outcome Executor::observe(const Prepared &instruction) {
  const void *data = instruction.operands[0];
  observer->observe(self, instruction.target, data);
  if (!instruction.mustBeFinite) {
    return Outcome::Done;
  }
  const Observation &observation = program.observations[instruction.target];
  double value = observation.layout.type == ElementType::F64 ? *static_cast<const double *>(data)
                                                             : *static_cast<const float *>(data);
  int32_t notFinite = !std::isfinite(value), anyNotFinite = 0;
  if (!link->run(agree, &notFinite, &anyNotFinite)) {
    return Outcome::Stopped;
  }
  return anyNotFinite ? Outcome::NotFinite : Outcome::Done;
}
