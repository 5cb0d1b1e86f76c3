//===- ProofCollectives.cpp - collectives of all ranks match ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Within a class all ranks issue the same collectives in the same order, and each group is
// of one class. So what is left to show is that classes come to each rendezvous in one
// order (Rendezvous.h). What takes place before something else, as they walk down their
// lists, comes before it in the linear order.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"
#include "Rendezvous.h"

#include <algorithm>

using namespace weft;
using namespace weft::schedule;

namespace {

/// Where a body's classes come together: the number of the instruction.
struct Place {
  uint32_t instruction = 0;
  Rendezvous rendezvous;
};

/// Returns those of each body. `all` are the numbers of all classes.
std::vector<std::vector<Place>> findRendezvous(const rt::Program &program,
                                               std::span<const uint32_t> all) {
  std::vector<std::vector<Place>> places(program.bodies.size());
  for (size_t body = 0; body < program.bodies.size(); ++body) {
    const std::vector<rt::Instruction> &list = program.bodies[body].instructions;
    for (uint32_t i = 0; i < list.size(); ++i) {
      if (isRendezvous(program, list[i])) {
        places[body].push_back({i, rendezvousAt(program, list[i], all)});
      }
    }
  }
  return places;
}

/// A class that walks down its rendezvous in one section.
class Walker {
public:
  Walker(const rt::Program &program, Section section, std::span<const uint32_t> all)
      : program(program), section(section), actions(actionsOf(program, section)),
        places(findRendezvous(program, all)) {
    enterBody();
  }

  /// Returns the rendezvous that it has come to; none at the end.
  const Rendezvous *current() const { return next ? &next->rendezvous : nullptr; }
  void advance() {
    if (++next == endOfBody) {
      ++action;
      enterBody();
    }
  }

  int64_t rank() const { return program.ranks().first; }
  /// Returns "rank 4 at step instruction 17 '...' issues all-reduce ...".
  std::string describe() const {
    rt::Expansion list = expansionOf(program, section);
    const rt::Instruction &instruction = list.bodyOf(action)[next->instruction];
    return "rank " + std::to_string(rank()) + " at " +
           describeInstruction(program, section, list.beginOf(action) + next->instruction) +
           (instruction.opcode == rt::Opcode::Agree
                ? " agrees to go on"
                : " issues " +
                      describeCollective(program, program.collectives[instruction.target]));
  }

private:
  /// Goes on to the first action from `action` on that has a rendezvous.
  void enterBody() {
    for (next = endOfBody = nullptr; action < actions.size(); ++action) {
      const std::vector<Place> &own = places[actions[action].body];
      if (!own.empty()) {
        next = own.data();
        endOfBody = next + own.size();
        return;
      }
    }
  }

  const rt::Program &program;
  Section section;
  const std::vector<rt::Action> &actions;
  std::vector<std::vector<Place>> places;
  size_t action = 0;
  /// In the body of the action; null at the end.
  const Place *next = nullptr, *endOfBody = nullptr;
};

class OrderCheck {
public:
  OrderCheck(std::span<const rt::Program> programs, Section section, Diagnostics &diagnostics)
      : all(numbersOfClasses(programs.size())), diagnostics(diagnostics) {
    for (const rt::Program &program : programs) {
      walkers.emplace_back(program, section, all);
    }
  }

  void run() {
    passRendezvous(
        walkers.size(), [&](uint32_t number) { return walkers[number].current(); },
        [&](std::span<const uint32_t> classes) {
          for (uint32_t member : classes) {
            walkers[member].advance();
          }
        });
    report();
  }

private:
  /// Follows one who waits to those for whom it waits, until one waits for an earlier one, or has
  /// come to its end.
  void report() {
    auto stuck =
        std::ranges::find_if(walkers, [](const Walker &each) { return each.current() != nullptr; });
    if (stuck == walkers.end()) {
      return;
    }
    std::vector<uint32_t> chain = {static_cast<uint32_t>(stuck - walkers.begin())};
    while (walkers[chain.back()].current() && std::ranges::count(chain, chain.back()) == 1) {
      const Rendezvous &here = *walkers[chain.back()].current();
      chain.push_back(*std::ranges::find_if(here.classes, [&](uint32_t member) {
        const Rendezvous *there = walkers[member].current();
        return !there || *there != here;
      }));
    }
    std::string text;
    for (size_t i = 0; i + 1 < chain.size(); ++i) {
      text += (i == 0 ? "" : "; ") + walkers[chain[i]].describe() + " and waits for rank " +
              std::to_string(walkers[chain[i + 1]].rank());
    }
    bool isCircle = walkers[chain.back()].current() != nullptr;
    diagnostics.add(isCircle ? "deadlock: " + text
                             : text + ", which issues no collective that matches it");
  }

  const std::vector<uint32_t> all;
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
