//===- BodyUses.cpp - how a body uses buffers -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/BodyUses.h"

#include <algorithm>
#include <utility>

using namespace weft::rt;

/// Returns one use for each operand.
static std::vector<BufferUse> listOperands(const Program &program, const Body &body) {
  std::vector<BufferUse> operands;
  int64_t time = 0;
  for (const Instruction &instruction : body.instructions) {
    for (const Operand &operand : instruction.operands) {
      if (operand.buffer < program.buffers.size() && !program.buffers[operand.buffer].persistent) {
        operands.push_back({operand.buffer, time, time, operand.access != Access::Write});
      }
    }
    ++time;
  }
  return operands;
}

std::vector<BufferUse> weft::rt::findUses(const Program &program, const Body &body) {
  std::vector<BufferUse> operands = listOperands(program, body), uses;
  std::ranges::sort(operands, {},
                    [](const BufferUse &use) { return std::pair(use.buffer, use.first); });
  for (const BufferUse &operand : operands) {
    if (uses.empty() || uses.back().buffer != operand.buffer) {
      uses.push_back(operand);
      continue;
    }
    BufferUse &use = uses.back();
    // An instruction may read and write a buffer by two operands.
    use.readsBefore |= operand.first == use.first && operand.readsBefore;
    use.last = operand.last;
  }
  return uses;
}

std::vector<std::vector<BufferUse>> weft::rt::findUses(const Program &program) {
  std::vector<std::vector<BufferUse>> uses;
  for (const Body &body : program.bodies) {
    uses.push_back(findUses(program, body));
  }
  return uses;
}
