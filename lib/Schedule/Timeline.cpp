//===- Timeline.cpp - when the instructions of a section run ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Timeline.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

using namespace weft;
using namespace weft::schedule;

namespace {

/// Returns true if ranks agree at the instruction whether to go on.
bool isDecision(const rt::Instruction &instruction) {
  return instruction.opcode == rt::Opcode::Observe && instruction.cost.seconds > 0;
}

/// One run of a body: when each of its instructions so far runs.
class Run {
public:
  explicit Run(double begin = 0) : links(begin) { streams.fill(begin); }

  /// Returns the earliest time at which the next instruction may begin.
  double beginOf(const rt::Instruction &next) const {
    double begin = streams[size_t(next.stream)];
    for (uint32_t other : next.waits) {
      begin = std::max(begin, times[other].end);
    }
    return next.opcode == rt::Opcode::Collective ? std::max(begin, links) : begin;
  }

  void add(const rt::Instruction &next, TimeSpan time) {
    times.push_back(time);
    streams[size_t(next.stream)] = time.end;
    if (next.opcode == rt::Opcode::Collective) {
      links = time.end;
    }
    if (isDecision(next)) {
      // No instruction is issued before.
      for (double &other : streams) {
        other = std::max(other, time.end);
      }
    }
  }

  void add(const rt::Instruction &next) {
    double begin = beginOf(next);
    add(next, {begin, begin + next.cost.seconds});
  }

  size_t size() const { return times.size(); }
  double end() const { return *std::ranges::max_element(streams); }
  std::vector<TimeSpan> take() { return std::move(times); }

private:
  std::array<double, rt::kStreams> streams;
  double links;
  std::vector<TimeSpan> times;
};

Run runAlone(std::span<const rt::Instruction> body) {
  Run run;
  for (const rt::Instruction &instruction : body) {
    run.add(instruction);
  }
  return run;
}

/// A class that walks down a section from rendezvous to rendezvous.
class Walker {
public:
  Walker(const rt::Program &program, const std::vector<rt::Action> &section, bool hasOthers)
      : program(program), section(section), hasOthers(hasOthers) {
    for (const rt::Body &body : program.bodies) {
      bool meets = std::ranges::any_of(
          body.instructions, [&](const rt::Instruction &each) { return isRendezvous(each); });
      alone.push_back(meets ? std::nullopt : std::optional(predictSeconds(body.instructions)));
    }
    walk();
  }

  /// Returns the rendezvous that it has come to; null at the end.
  const rt::Instruction *current() const {
    return action == section.size() ? nullptr : &bodyOf(section[action])[run.size()];
  }
  /// Returns the collective that it has come to; null at a decision and at the end.
  const rt::Collective *collective() const {
    const rt::Instruction *here = current();
    return here && here->opcode == rt::Opcode::Collective ? &program.collectives[here->target]
                                                          : nullptr;
  }
  /// REQUIRES: it is not at the end.
  double begin() const { return run.beginOf(*current()); }
  void pass(TimeSpan time) {
    run.add(*current(), time);
    walk();
  }
  /// Returns the end of the last action that it has ended.
  double end() const { return now; }

private:
  bool isRendezvous(const rt::Instruction &each) const {
    return hasOthers && (isDecision(each) || (each.opcode == rt::Opcode::Collective &&
                                              program.collectives[each.target].isAcrossClasses()));
  }
  const std::vector<rt::Instruction> &bodyOf(const rt::Action &each) const {
    return program.bodies[each.body].instructions;
  }

  void walk() {
    for (; action < section.size(); ++action) {
      if (std::optional<double> seconds = alone[section[action].body]) {
        now += *seconds;
      } else {
        const std::vector<rt::Instruction> &body = bodyOf(section[action]);
        for (; run.size() < body.size(); run.add(body[run.size()])) {
          if (isRendezvous(body[run.size()])) {
            return;
          }
        }
        now = run.end();
      }
      run = Run(now);
    }
  }

  const rt::Program &program;
  const std::vector<rt::Action> &section;
  const bool hasOthers;
  /// The time of each body in which no classes meet.
  std::vector<std::optional<double>> alone;
  size_t action = 0;
  /// The end of the actions before, and the run of this one.
  double now = 0;
  Run run;
};

/// All classes together. As in the proof, a rendezvous takes place once all of its classes have
/// come to it; what each does in between does not concern the others.
class Simulation {
public:
  Simulation(std::span<const rt::Program> programs,
             const std::vector<rt::Action> rt::Program::*section)
      : all(programs.size()) {
    std::iota(all.begin(), all.end(), 0);
    for (const rt::Program &program : programs) {
      walkers.emplace_back(program, program.*section, programs.size() > 1);
    }
  }

  double run() {
    std::vector<uint32_t> moved = all;
    while (!moved.empty()) {
      const Walker &last = walkers[moved.back()];
      moved.pop_back();
      if (!last.current()) {
        continue;
      }
      const std::vector<uint32_t> &members = last.collective() ? last.collective()->classes : all;
      if (std::ranges::all_of(members,
                              [&](uint32_t each) { return areAtOne(walkers[each], last); })) {
        meet(members);
        moved.insert(moved.end(), members.begin(), members.end());
      }
    }
    double end = 0;
    for (const Walker &each : walkers) {
      end = std::max(end, each.end());
    }
    return end;
  }

private:
  static bool areAtOne(const Walker &a, const Walker &b) {
    const rt::Collective *ofA = a.collective(), *ofB = b.collective();
    return a.current() && (ofA && ofB ? ofA->number == ofB->number : !ofA && !ofB);
  }

  void meet(const std::vector<uint32_t> &members) {
    double begin = 0, seconds = 0;
    for (uint32_t each : members) {
      begin = std::max(begin, walkers[each].begin());
      seconds = std::max(seconds, walkers[each].current()->cost.seconds);
    }
    for (uint32_t each : members) {
      walkers[each].pass({begin, begin + seconds});
    }
  }

  std::vector<Walker> walkers;
  /// The numbers of all classes.
  std::vector<uint32_t> all;
};

} // namespace

std::vector<TimeSpan> weft::schedule::predictTimes(std::span<const rt::Instruction> body) {
  return runAlone(body).take();
}

double weft::schedule::predictSeconds(std::span<const rt::Instruction> body) {
  return runAlone(body).end();
}

double weft::schedule::predictSeconds(std::span<const rt::Program> programs,
                                      const std::vector<rt::Action> rt::Program::*section) {
  return Simulation(programs, section).run();
}
