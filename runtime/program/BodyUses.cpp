//===- BodyUses.cpp - how a body uses buffers -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/BodyUses.h"

#include <map>

using namespace weft::rt;

std::vector<BufferUse> weft::rt::findUses(const Program &program, const Body &body) {
  std::map<uint32_t, BufferUse> byBuffer;
  int64_t time = 0;
  for (const Instruction &instruction : body.instructions) {
    for (const Operand &operand : instruction.operands) {
      if (operand.buffer >= program.buffers.size() || program.buffers[operand.buffer].persistent) {
        continue;
      }
      BufferUse &use =
          byBuffer.try_emplace(operand.buffer, BufferUse{operand.buffer, time, time}).first->second;
      use.readsBefore |= use.first == time && operand.access != Access::Write;
      use.last = time;
    }
    ++time;
  }
  std::vector<BufferUse> uses;
  uses.reserve(byBuffer.size());
  for (const auto &[buffer, use] : byBuffer) {
    uses.push_back(use);
  }
  return uses;
}
