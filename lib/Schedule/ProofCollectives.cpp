//===- ProofCollectives.cpp - collectives of all ranks match ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Within a class all ranks issue the same collectives in the same order, and each group is
// of one class. So what is left to show is the order of collectives across classes. Their
// groups have one rank of each class, all at the same place, so that the ranks at one place
// stand for all: each class walks down its list, and a collective happens once all of its
// classes have come to it. What has happened before something else in this walk comes
// before it in the linear order.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The numbers of the instructions of each body that run collectives across classes.
std::vector<std::vector<uint32_t>> findMeetings(const rt::Program &program) {
  std::vector<std::vector<uint32_t>> places(program.bodies.size());
  for (size_t body = 0; body < program.bodies.size(); ++body) {
    const std::vector<rt::Instruction> &list = program.bodies[body].instructions;
    for (uint32_t i = 0; i < list.size(); ++i) {
      if (list[i].opcode == rt::Opcode::Collective &&
          program.collectives[list[i].target].isAcrossClasses()) {
        places[body].push_back(i);
      }
    }
  }
  return places;
}

/// A class that walks down its collectives across classes in one section.
class Walker {
public:
  Walker(const rt::Program &program, Section section)
      : program(program), section(section), list(expansionOf(program, section)),
        places(findMeetings(program)) {
    skipEnds();
  }

  /// Returns the collective that it has come to; null at the end.
  const rt::Collective *current() const {
    return isAtEnd() ? nullptr : &program.collectives[list.bodyOf(action)[place()].target];
  }
  void advance() {
    ++next;
    skipEnds();
  }

  int64_t rank() const { return program.ranks().first; }
  /// Returns "rank 4 at step instruction 17 '...' issues all-reduce ...".
  std::string describe() const {
    return "rank " + std::to_string(rank()) + " at " +
           describeInstruction(program, section, list.beginOf(action) + place()) + " issues " +
           describeCollective(program, *current());
  }

private:
  bool isAtEnd() const { return action == list.actionCount(); }
  const std::vector<uint32_t> &ofBody() const { return places[list.action(action).body]; }
  uint32_t place() const { return ofBody()[next]; }
  void skipEnds() {
    for (; !isAtEnd() && next == ofBody().size(); next = 0) {
      ++action;
    }
  }

  const rt::Program &program;
  Section section;
  rt::Expansion list;
  std::vector<std::vector<uint32_t>> places;
  size_t action = 0, next = 0;
};

class OrderCheck {
public:
  OrderCheck(std::span<const rt::Program> programs, Section section, Diagnostics &diagnostics)
      : diagnostics(diagnostics) {
    for (const rt::Program &program : programs) {
      walkers.emplace_back(program, section);
    }
  }

  void run() {
    std::vector<uint32_t> ready(walkers.size());
    for (uint32_t number = 0; number < walkers.size(); ++number) {
      ready[number] = number;
    }
    while (!ready.empty()) {
      const rt::Collective *here = walkers[ready.back()].current();
      ready.pop_back();
      if (here && areAllAt(*here)) {
        for (uint32_t member : here->classes) {
          walkers[member].advance();
          ready.push_back(member);
        }
      }
    }
    report();
  }

private:
  bool isAt(uint32_t number, const rt::Collective &collective) const {
    const rt::Collective *current = walkers[number].current();
    return current && current->number == collective.number;
  }
  bool areAllAt(const rt::Collective &collective) const {
    return std::ranges::all_of(collective.classes,
                               [&](uint32_t member) { return isAt(member, collective); });
  }

  /// Follows one who waits to those for whom it waits, until one waits for an earlier one, or has
  /// come to its end.
  void report() {
    auto stuck = std::ranges::find_if(walkers, [](const Walker &each) { return each.current(); });
    if (stuck == walkers.end()) {
      return;
    }
    std::vector<uint32_t> chain = {static_cast<uint32_t>(stuck - walkers.begin())};
    while (walkers[chain.back()].current() && std::ranges::count(chain, chain.back()) == 1) {
      const rt::Collective &here = *walkers[chain.back()].current();
      chain.push_back(*std::ranges::find_if(here.classes,
                                            [&](uint32_t member) { return !isAt(member, here); }));
    }
    std::string text;
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      text += (i == 0 ? "" : "; ") + walkers[chain[i]].describe() + " and waits for rank " +
              std::to_string(walkers[chain[i + 1]].rank());
    }
    bool isCircle = walkers[chain.back()].current();
    diagnostics.add(isCircle ? "deadlock: " + text
                             : text + ", which issues no collective that matches it");
  }

  std::vector<Walker> walkers;
  Diagnostics &diagnostics;
};

} // namespace

void weft::schedule::checkCollectives(std::span<const rt::Program> programs,
                                      Diagnostics &diagnostics) {
  if (rt::Status status = rt::checkTogether(programs); !status) {
    diagnostics.add(status.error().message);
    return;
  }
  for (Section section : kSections) {
    OrderCheck(programs, section, diagnostics).run();
  }
}
