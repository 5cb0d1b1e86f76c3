//===- InstructionRange.cpp - instructions that reports name --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/InstructionRange.h"

#include "support/Text.h"
#include "weft-rt/Expansion.h"

using namespace weft::rt;

const Instruction *InstructionRange::lastOne(const Program &program) const {
  return actions ? &Expansion(program, *actions)[last] : nullptr;
}

std::string weft::rt::textOf(const Program &program, const InstructionRange &range) {
  if (!range.actions) {
    return "";
  }
  Expansion expansion(program, *range.actions);
  std::string numbers = range.first == range.last
                            ? concat(" instruction ", range.last)
                            : concat(" instructions ", range.first, " to ", range.last);
  std::string label = expansion.label(range.last);
  return concat(range.section, numbers, " (", targetText(program, expansion[range.last]),
                label.empty() ? "" : ", ", label, ")");
}

InstructionRange weft::rt::firstUse(const Program &program, Opcode opcode, uint32_t target) {
  const std::pair<const char *, const std::vector<Action> *> sections[] = {
      {"init", &program.init}, {"step", &program.step}, {"evaluate", &program.evaluate}};
  for (auto [name, actions] : sections) {
    uint32_t number = 0;
    for (const Instruction &one : Expansion(program, *actions)) {
      if (one.opcode == opcode && one.target == target) {
        return {name, actions, number, number};
      }
      ++number;
    }
  }
  return {};
}
