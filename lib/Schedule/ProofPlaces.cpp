//===- ProofPlaces.cpp - buffers that are needed at once lie apart --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The check of packings knows a buffer's life as one interval of a list of all bodies. If
// it finds two that overlap, the actions decide: values are then followed through all
// instructions, from the one that writes a value to the last that reads it.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Lifetimes.h"

#include <algorithm>
#include <optional>

using namespace weft;
using namespace weft::schedule;

namespace {

/// From the instruction that writes a value to the last that reads it, both inclusive; instructions
/// of all sections are numbered one after the other.
struct ValueLife {
  size_t first = 0, last = 0;
};

class ValueLives {
public:
  ValueLives(const rt::Program &program, const rt::BufferPlaces &places)
      : places(places), lives(places.size()) {
    for (Section section : kSections) {
      rt::Expansion expansion = expansionOf(program, section);
      for (auto it = expansion.begin(); it != expansion.end(); ++it) {
        for (const rt::Operand &operand : it->operands) {
          note(it.by(), operand);
        }
        ++time;
      }
    }
  }

  /// Returns true if both places hold a value that is needed at one time.
  bool meet(uint32_t a, uint32_t b) const {
    auto x = lives[a].begin(), y = lives[b].begin();
    while (x != lives[a].end() && y != lives[b].end()) {
      if (x->first <= y->last && y->first <= x->last) {
        return true;
      }
      ++(x->last < y->last ? x : y);
    }
    return false;
  }

private:
  void note(const rt::Action &action, const rt::Operand &operand) {
    std::vector<ValueLife> &own = lives[places.find(operand.buffer, action.frame)];
    // One that an instruction reads and writes goes on.
    bool isNew = operand.access == rt::Access::Write && (own.empty() || own.back().last < time);
    if (own.empty() || isNew) {
      own.push_back({time, time});
    }
    own.back().last = time;
  }

  const rt::BufferPlaces &places;
  /// Of each place, in the order of time.
  std::vector<std::vector<ValueLife>> lives;
  size_t time = 0;
};

} // namespace

void weft::schedule::checkPlaces(const rt::Program &program, Diagnostics &diagnostics) {
  const rt::BufferPlaces places(program);
  std::optional<ValueLives> lives;
  auto overlap = [&](uint32_t a, uint32_t b) {
    auto lasts = [&](uint32_t place) { return program.buffers[places[place].buffer].persistent; };
    if (lasts(a) || lasts(b)) {
      return true;
    }
    if (!lives) {
      lives.emplace(program, places);
    }
    return lives->meet(a, b);
  };
  for (const ArenaFault &fault : checkArena(makePlaceProblem(program), currentPlan(program))) {
    if (fault.kind != ArenaFault::Kind::Overlap || overlap(fault.buffer, fault.other)) {
      diagnostics.add(toText(fault, [&](uint32_t number) { return places.name(number); }));
    }
  }
}
