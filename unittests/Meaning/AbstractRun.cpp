//===- AbstractRun.cpp - all orders in which small programs may run --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AbstractRun.h"

#include "AbstractMachine.h"

#include <unordered_set>

namespace weft::test {

const char *nameOf(Fate fate) {
  static constexpr const char *kNames[] = {"ends",         "deadlock",      "mismatch", "race",
                                           "several ends", "out of bounds", "unknown"};
  return kNames[size_t(fate)];
}

namespace {

class Explorer {
public:
  Explorer(AbstractMachine &machine, Reduction reduction)
      : machine(machine), reduction(reduction) {}

  Exploration run() {
    if (machine.isOutOfBounds()) {
      found.fate = Fate::OutOfBounds;
      return found;
    }
    open.push_back(machine.start());
    while (!open.empty() && found.fate == Fate::Ends) {
      State state = std::move(open.back());
      open.pop_back();
      visit(state);
    }
    if (found.fate == Fate::Ends && found.ends.size() > 1) {
      found.fate = Fate::SeveralEnds;
    }
    return found;
  }

private:
  /// Lets each rank do what no one else sees.
  void runOwn(State &state) {
    for (size_t rank = 0; rank < machine.rankCount(); ++rank) {
      for (size_t stream = 0, idle = 0; idle < rt::kStreams; stream = (stream + 1) % rt::kStreams) {
        const Step *step = machine.ready(state, rank, stream);
        bool isOwn = step && !step->meeting && !step->isWatched;
        idle = isOwn && machine.perform(state, rank, *step) ? 0 : idle + 1;
      }
    }
  }

  void visit(State &state) {
    if (reduction == Reduction::OwnInstructions) {
      runOwn(state);
    }
    if (!seen.insert(state.hash()).second) {
      return;
    }
    if (++found.states > kMostStates) {
      found.fate = Fate::Unknown;
      return;
    }
    bool moves = false;
    std::unordered_set<size_t> met;
    for (size_t rank = 0; rank < machine.rankCount(); ++rank) {
      if (machine.hasRace(state, rank)) {
        found.fate = Fate::Race;
        return;
      }
      for (size_t stream = 0; stream < rt::kStreams; ++stream) {
        const Step *step = machine.ready(state, rank, stream);
        if (!step || (step->meeting && (!machine.haveCome(state, *step) ||
                                        !met.insert(*step->meeting).second))) {
          continue;
        }
        moves = true;
        open.push_back(state);
        if (!machine.perform(open.back(), rank, *step)) {
          found.fate = Fate::Mismatch;
          return;
        }
      }
    }
    if (!moves && machine.isAtEnd(state)) {
      found.ends.insert(machine.endOf(state));
    } else if (!moves) {
      found.fate = Fate::Deadlock;
    }
  }

  AbstractMachine &machine;
  const Reduction reduction;
  Exploration found;
  std::vector<State> open;
  std::unordered_set<Term> seen;
};

} // namespace

Exploration explore(std::span<const rt::Program> programs, KernelTerms &kernels, Queues queues,
                    Reduction reduction) {
  AbstractMachine machine(programs, kernels, queues);
  return Explorer(machine, reduction).run();
}

} // namespace weft::test
