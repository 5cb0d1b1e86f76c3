//===- InstructionRange.cpp - instructions that reports name --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/InstructionRange.h"

#include "support/Text.h"

using namespace weft::rt;

std::string weft::rt::textOf(const Program &program, const InstructionRange &range) {
  const Instruction *last = range.lastOne();
  if (!last) {
    return "";
  }
  std::string numbers = range.first == range.last
                            ? concat(" instruction ", range.last)
                            : concat(" instructions ", range.first, " to ", range.last);
  const std::string &label = program.labels[last->label];
  return concat(range.section, numbers, " (", targetText(program, *last), label.empty() ? "" : ", ",
                label, ")");
}

InstructionRange weft::rt::firstUse(const Program &program, Opcode opcode, uint32_t target) {
  const std::pair<const char *, const std::vector<Instruction> *> sections[] = {
      {"init", &program.init}, {"step", &program.step}, {"evaluate", &program.evaluate}};
  for (auto [name, instructions] : sections) {
    for (uint32_t index = 0; index < instructions->size(); ++index) {
      const Instruction &one = (*instructions)[index];
      if (one.opcode == opcode && one.target == target) {
        return {name, instructions, index, index};
      }
    }
  }
  return {};
}
