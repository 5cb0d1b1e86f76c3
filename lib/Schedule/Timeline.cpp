//===- Timeline.cpp - when the instructions of a section run ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Timeline.h"

#include "Rendezvous.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

using namespace weft;
using namespace weft::schedule;

namespace {

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

  void add(const rt::Instruction &next, const InstructionSpan &time) {
    times.push_back(time);
    streams[size_t(next.stream)] = time.end;
    if (next.opcode == rt::Opcode::Collective) {
      links = time.end;
    }
    if (next.opcode == rt::Opcode::Agree) {
      // No instruction is issued before.
      for (double &other : streams) {
        other = std::max(other, time.end);
      }
    }
  }

  void add(const rt::Instruction &next) {
    double begin = beginOf(next);
    add(next, {{begin, begin + next.cost.seconds}, begin});
  }

  size_t size() const { return times.size(); }
  double end() const { return *std::ranges::max_element(streams); }
  std::span<const InstructionSpan> spans() const { return times; }

private:
  std::array<double, rt::kStreams> streams;
  double links;
  std::vector<InstructionSpan> times;
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
  /// `all` are the numbers of all classes.
  Walker(const rt::Program &program, const std::vector<rt::Action> &section,
         std::span<const uint32_t> all, const ActionVisitor &visit)
      : program(program), section(section), all(all), visit(visit) {
    for (const rt::Body &body : program.bodies) {
      bool meets = std::ranges::any_of(
          body.instructions, [&](const rt::Instruction &each) { return waitsForOthers(each); });
      alone.push_back(meets ? std::nullopt : std::optional(predictSeconds(body.instructions)));
    }
    walk();
  }

  /// Returns the rendezvous that it has come to; none at the end.
  std::optional<Rendezvous> current() const {
    return isAtEnd() ? std::nullopt : std::optional(rendezvousAt(program, instruction(), all));
  }
  /// REQUIRES: it is not at the end.
  double begin() const { return run.beginOf(instruction()); }
  double seconds() const { return instruction().cost.seconds; }
  void pass(TimeSpan time) {
    const double arrival = begin();
    if (time.begin > arrival) {
      course.waits.push_back({arrival, time.begin});
    }
    run.add(instruction(), {time, arrival});
    walk();
  }
  /// Returns the course of the actions that it has ended.
  ClassCourse take() { return std::move(course); }

private:
  bool isAtEnd() const { return action == section.size(); }
  const rt::Instruction &instruction() const { return bodyOf(section[action])[run.size()]; }
  bool waitsForOthers(const rt::Instruction &each) const {
    return all.size() > 1 && isRendezvous(program, each);
  }
  const std::vector<rt::Instruction> &bodyOf(const rt::Action &each) const {
    return program.bodies[each.body].instructions;
  }

  /// Times that are shifted by the action's begin end exactly where the next action begins.
  void visitAlone(double begin) const {
    std::vector<InstructionSpan> spans;
    spans.reserve(bodyOf(section[action]).size());
    for (const TimeSpan &time : predictTimes(bodyOf(section[action]))) {
      spans.push_back({{begin + time.begin, begin + time.end}, begin + time.begin});
    }
    visit(program.rankClass, action, spans);
  }

  void walk() {
    for (; !isAtEnd(); ++action) {
      const double begin = course.end();
      double end = begin;
      if (std::optional<double> seconds = alone[section[action].body]) {
        end += *seconds;
        if (visit) {
          visitAlone(begin);
        }
      } else {
        const std::vector<rt::Instruction> &body = bodyOf(section[action]);
        for (; run.size() < body.size(); run.add(body[run.size()])) {
          if (waitsForOthers(body[run.size()])) {
            return;
          }
        }
        end = run.end();
        if (visit) {
          visit(program.rankClass, action, run.spans());
        }
      }
      course.actions.push_back({begin, end});
      run = Run(end);
    }
  }

  const rt::Program &program;
  const std::vector<rt::Action> &section;
  std::span<const uint32_t> all;
  const ActionVisitor &visit;
  /// The time of each body in which no classes meet.
  std::vector<std::optional<double>> alone;
  ClassCourse course;
  /// The action that it has come to, and the run of that.
  size_t action = 0;
  Run run;
};

/// All classes together.
class Simulation {
public:
  Simulation(std::span<const rt::Program> programs,
             const std::vector<rt::Action> rt::Program::*section, const ActionVisitor &visit)
      : all(numbersOfClasses(programs.size())) {
    for (const rt::Program &program : programs) {
      walkers.emplace_back(program, program.*section, all, visit);
    }
  }

  std::vector<ClassCourse> run() {
    passRendezvous(
        walkers.size(), [&](uint32_t number) { return walkers[number].current(); },
        [&](std::span<const uint32_t> classes) { pass(classes); });
    std::vector<ClassCourse> courses;
    for (Walker &each : walkers) {
      courses.push_back(each.take());
    }
    return courses;
  }

private:
  void pass(std::span<const uint32_t> classes) {
    double begin = 0, seconds = 0;
    for (uint32_t each : classes) {
      begin = std::max(begin, walkers[each].begin());
      seconds = std::max(seconds, walkers[each].seconds());
    }
    for (uint32_t each : classes) {
      walkers[each].pass({begin, begin + seconds});
    }
  }

  /// The numbers of all classes.
  const std::vector<uint32_t> all;
  std::vector<Walker> walkers;
};

} // namespace

std::vector<TimeSpan> weft::schedule::predictTimes(std::span<const rt::Instruction> body) {
  const Run run = runAlone(body);
  return {run.spans().begin(), run.spans().end()};
}

double weft::schedule::predictSeconds(std::span<const rt::Instruction> body) {
  return runAlone(body).end();
}

double ClassCourse::busy() const {
  return std::accumulate(waits.begin(), waits.end(), end(), [](double rest, const TimeSpan &wait) {
    return rest - (wait.end - wait.begin);
  });
}

std::vector<ClassCourse>
weft::schedule::predictCourse(std::span<const rt::Program> programs,
                              const std::vector<rt::Action> rt::Program::*section,
                              const ActionVisitor &visit) {
  return Simulation(programs, section, visit).run();
}

double weft::schedule::predictSeconds(std::span<const rt::Program> programs,
                                      const std::vector<rt::Action> rt::Program::*section) {
  double end = 0;
  for (const ClassCourse &course : predictCourse(programs, section)) {
    end = std::max(end, course.end());
  }
  return end;
}
