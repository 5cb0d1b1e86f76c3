//===- Expansion.cpp - the instructions of a section, in order --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/Expansion.h"

#include "support/Text.h"

#include <algorithm>

using namespace weft::rt;

Expansion::Expansion(const Program &program, const std::vector<Action> &actions)
    : program(&program), actions(&actions) {
  begins.reserve(actions.size() + 1);
  size_t count = 0;
  for (const Action &action : actions) {
    begins.push_back(count);
    count += program.bodies[action.body].instructions.size();
  }
  begins.push_back(count);
}

size_t Expansion::actionOf(size_t number) const {
  // The last of several that begin there: those before it have no instructions.
  return size_t(std::upper_bound(begins.begin(), begins.end(), number) - begins.begin()) - 1;
}

const Instruction &Expansion::operator[](size_t number) const {
  size_t action = actionOf(number);
  return bodyOf(action)[number - begins[action]];
}

std::string Expansion::label(size_t number) const {
  return labelOf(*program, (*this)[number], (*actions)[actionOf(number)]);
}

std::string weft::rt::actionText(const Program &program, const Action &action) {
  const std::string &name = program.bodies[action.body].name;
  return action.microBatch ? concat(name, " for micro-batch ", *action.microBatch) : name;
}

std::string weft::rt::labelOf(const Program &program, const Instruction &instruction,
                              const Action &action) {
  const std::string &label = program.labels[instruction.label];
  if (!action.microBatch) {
    return label;
  }
  const char *separator = label.empty() ? "" : label.starts_with("(") ? " " : "/";
  return concat("micro-batch ", *action.microBatch, separator, label);
}

std::vector<int64_t> weft::rt::immediatesOf(const Instruction &instruction, const Action &action) {
  std::vector<int64_t> numbers;
  for (const Immediate &immediate : instruction.immediates) {
    numbers.push_back(immediate.value +
                      (immediate.addsMicroBatch ? action.microBatch.value_or(0) : 0));
  }
  return numbers;
}
