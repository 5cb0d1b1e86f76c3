//===- ProgressMarks.cpp - where devices report their progress ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/ProgressMarks.h"

#include "weft-rt/Expansion.h"

#include <cstring>

using namespace weft::rt;

ProgressMarks::ProgressMarks(const Program &program) : program(program) {
  add("init", program.init);
  add("step", program.step);
  add("evaluate", program.evaluate);
}

void ProgressMarks::add(const char *section, const std::vector<Action> &actions) {
  Expansion instructions(program, actions);
  Section &added = sections[sectionCount++];
  added = {section, std::vector<uint32_t>(instructions.size())};
  ProgressMark mark = {{section, &actions, 0, 0}, 0};
  auto isCollective = [](const Instruction &one) { return one.opcode == Opcode::Collective; };
  uint32_t index = 0;
  for (auto it = instructions.begin(); it != instructions.end(); ++index) {
    const Instruction &one = *it;
    ++it;
    mark.range.last = index;
    mark.seconds += one.cost.seconds;
    bool isLast = it == instructions.end();
    bool isLong = mark.seconds >= kMostSeconds ||
                  index - mark.range.first + 1 >= kMostInstructions ||
                  (!isLast && mark.seconds + it->cost.seconds > kMostSeconds);
    if (isLast || isLong || isCollective(one) || isCollective(*it)) {
      marks.push_back(mark);
      added.behind[index] = uint32_t(marks.size() - 1);
      mark = {{section, &actions, index + 1, 0}, 0};
    }
  }
}

uint32_t ProgressMarks::behind(const char *section, size_t instruction) const {
  for (const Section &each : sections) {
    if (std::strcmp(each.name, section) == 0) {
      return each.behind[instruction];
    }
  }
  return 0;
}

const Instruction *ProgressMarks::instruction(uint32_t number) const {
  return at(number).range.lastOne(program);
}

std::string ProgressMarks::describe(uint32_t number) const {
  return instruction(number) ? textOf(program, at(number).range) : "a copy that its rank waits for";
}
