//===- Rendezvous.h - where rank classes come together ----------*- C++ -*-===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Ranks of several classes wait for each other at a collective across classes, and
// where all agree to go on. A group of such a collective has one rank of each of its
// classes, all at the same place, so the ranks at one place stand for all: each class
// goes from one rendezvous to its next, and a rendezvous takes place once all of its
// classes have come to it. What classes do in between does not concern the others, so
// every order in which rendezvous may take place ends alike.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_RENDEZVOUS_H
#define WEFT_LIB_SCHEDULE_RENDEZVOUS_H

#include "weft-rt/Program.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

namespace weft::schedule {

struct Rendezvous {
  /// The collective's number; none where ranks agree to go on.
  std::optional<uint32_t> number;
  /// The numbers of the classes that come to it.
  std::span<const uint32_t> classes;

  bool operator==(const Rendezvous &other) const { return number == other.number; }
};

inline bool isRendezvous(const rt::Program &program, const rt::Instruction &instruction) {
  return instruction.opcode == rt::Opcode::Agree ||
         (instruction.opcode == rt::Opcode::Collective &&
          program.collectives[instruction.target].isAcrossClasses());
}

/// REQUIRES: the instruction is a rendezvous. `all` are the numbers of all classes; the result
/// refers to it, or to the program.
inline Rendezvous rendezvousAt(const rt::Program &program, const rt::Instruction &instruction,
                               std::span<const uint32_t> all) {
  if (instruction.opcode == rt::Opcode::Agree) {
    return {std::nullopt, all};
  }
  const rt::Collective &collective = program.collectives[instruction.target];
  return {collective.number, collective.classes};
}

/// Returns 0 to `count - 1`.
inline std::vector<uint32_t> numbersOfClasses(size_t count) {
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Lets as many rendezvous take place as can. `current(c)` returns the one that class c has come
/// to, none at its end, as a pointer or an optional; `pass(classes)` lets those classes go on to
/// their next one.
template <typename Current, typename Pass>
void passRendezvous(size_t classes, const Current &current, const Pass &pass) {
  std::vector<uint32_t> moved = numbersOfClasses(classes);
  while (!moved.empty()) {
    auto here = current(moved.back());
    moved.pop_back();
    auto isThere = [&](uint32_t other) {
      auto there = current(other);
      return there && *there == *here;
    };
    if (here && std::ranges::all_of(here->classes, isThere)) {
      pass(here->classes);
      for (uint32_t other : here->classes) {
        moved.push_back(other);
      }
    }
  }
}

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_RENDEZVOUS_H
