//===- AbstractRun.cpp - all orders in which small programs may run --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AbstractRun.h"

#include "AbstractMachine.h"

#include <random>
#include <unordered_set>

namespace weft::test {

const char *nameOf(Fate fate) {
  static constexpr const char *kNames[] = {"ends",         "deadlock",      "mismatch", "race",
                                           "several ends", "out of bounds", "unknown"};
  return kNames[size_t(fate)];
}

namespace {

/// An event: a step of a rank that may be done now, and that of its partners.
struct Event {
  size_t rank = 0;
  const Step *step = nullptr;
};

class Explorer {
public:
  explicit Explorer(AbstractMachine &machine) : machine(machine) {
    found.fate = machine.isOutOfBounds() ? Fate::OutOfBounds : Fate::Ends;
  }

  Exploration explore() {
    open.push_back(machine.start());
    while (!open.empty() && found.fate == Fate::Ends) {
      State state = std::move(open.back());
      open.pop_back();
      runOwn(state);
      if (!seen.insert(state.hash()).second) {
        continue;
      }
      for (const Event &event : visit(state)) {
        open.push_back(state);
        perform(open.back(), event);
      }
    }
    return conclude();
  }

  Exploration walk(size_t walks) {
    std::mt19937_64 random(walks); // NOLINT(bugprone-random-generator-seed): the same in each run.
    for (size_t number = 0; number < walks && found.fate == Fate::Ends; ++number) {
      State state = machine.start();
      for (std::vector<Event> events = visit(state); !events.empty(); events = visit(state)) {
        perform(state, events[random() % events.size()]);
      }
    }
    return conclude();
  }

private:
  /// Lets each rank do what no one else sees.
  void runOwn(State &state) {
    for (size_t rank = 0; rank < machine.rankCount(); ++rank) {
      for (size_t stream = 0, idle = 0; idle < rt::kStreams; stream = (stream + 1) % rt::kStreams) {
        const Step *step = machine.ready(state, rank, stream);
        bool isOwn = step && !step->rendezvous && !step->isWatched;
        idle = isOwn && machine.perform(state, rank, *step) ? 0 : idle + 1;
      }
    }
  }

  void perform(State &state, const Event &event) {
    if (!machine.perform(state, event.rank, *event.step)) {
      found.fate = Fate::Mismatch;
    }
  }

  /// Returns what may happen next; nothing at the end, or if that is harmful.
  std::vector<Event> visit(const State &state) {
    if (found.fate != Fate::Ends) {
      return {};
    }
    if (++found.states > kMostStates) {
      found.fate = Fate::Unknown;
      return {};
    }
    std::vector<Event> events;
    std::set<size_t> met;
    for (size_t rank = 0; rank < machine.rankCount(); ++rank) {
      if (machine.hasRace(state, rank)) {
        found.fate = Fate::Race;
        return {};
      }
      for (size_t stream = 0; stream < rt::kStreams; ++stream) {
        const Step *step = machine.ready(state, rank, stream);
        bool waits = step && step->rendezvous && !machine.haveCome(state, *step);
        if (step && !waits && (!step->rendezvous || met.insert(*step->rendezvous).second)) {
          events.push_back({rank, step});
        }
      }
    }
    if (events.empty() && machine.isAtEnd(state)) {
      found.ends.insert(machine.endOf(state));
    } else if (events.empty()) {
      found.fate = Fate::Deadlock;
    }
    return events;
  }

  Exploration conclude() {
    if (found.fate == Fate::Ends && found.ends.size() > 1) {
      found.fate = Fate::SeveralEnds;
    }
    return found;
  }

  AbstractMachine &machine;
  Exploration found;
  std::vector<State> open;
  std::unordered_set<Term> seen;
};

} // namespace

Exploration explore(std::span<const rt::Program> programs, KernelTerms &kernels, Queues queues) {
  AbstractMachine machine(programs, kernels, queues);
  return Explorer(machine).explore();
}

Exploration walk(std::span<const rt::Program> programs, KernelTerms &kernels, Queues queues,
                 size_t walks) {
  AbstractMachine machine(programs, kernels, queues);
  return Explorer(machine).walk(walks);
}

} // namespace weft::test
