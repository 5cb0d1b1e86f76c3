//===- TablePlaces.h - instructions of programs, to be changed -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_SCHEDULE_TABLEPLACES_H
#define WEFT_UNITTESTS_SCHEDULE_TABLEPLACES_H

#include "TableMutations.h"

#include <functional>
#include <optional>
#include <utility>
#include <vector>

namespace weft::test {

using Instructions = std::vector<rt::Instruction>;

inline size_t draw(size_t count, Random &random) { return size_t(random() % count); }

template <typename T> T &pick(std::vector<T> &values, Random &random) {
  return values[draw(values.size(), random)];
}

/// Two different numbers below `count`, the first one smaller. REQUIRES: there are two.
std::pair<size_t, size_t> drawTwo(size_t count, Random &random);

/// An instruction of a class.
struct Place {
  rt::Program *program = nullptr;
  Instructions *body = nullptr;
  size_t number = 0;

  rt::Instruction &instruction() const { return (*body)[number]; }
  rt::Collective &collective() const { return program->collectives[instruction().target]; }
};

using Predicate = std::function<bool(const rt::Program &, const rt::Instruction &)>;

bool isAny(const rt::Program &program, const rt::Instruction &instruction);
bool isAgreement(const rt::Program &program, const rt::Instruction &instruction);
bool isTransfer(const rt::Program &program, const rt::Instruction &instruction);
/// A collective of the ranks of one class.
bool isOfGroup(const rt::Program &program, const rt::Instruction &instruction);
bool isCommunication(const rt::Program &program, const rt::Instruction &instruction);
bool hasWaits(const rt::Program &program, const rt::Instruction &instruction);

/// Returns a place of any class, in any body but that of `init`; nothing if there is none.
std::optional<Place> pickPlace(rt::Programs &programs, Random &random, const Predicate &isOne);

/// Makes the body a list of its old instructions; waits go with them, as far as they can.
void relist(Instructions &body, const std::vector<size_t> &old);
/// Returns 0 to the number of instructions minus one.
std::vector<size_t> numbersOf(const Instructions &body);

// These return false if there is no place, or nothing else in its body.

bool drop(const std::optional<Place> &place);
/// Inserts it once more.
bool repeat(const std::optional<Place> &place, Random &random);
bool move(const std::optional<Place> &place, Random &random);
/// Swaps it with another one of its body for which `isOne` holds.
bool swapWithin(const std::optional<Place> &place, Random &random, const Predicate &isOne);

} // namespace weft::test

#endif // WEFT_UNITTESTS_SCHEDULE_TABLEPLACES_H
