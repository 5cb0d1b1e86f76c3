//===- Timeline.cpp - when the instructions of a section run ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Timeline.h"

#include "BodyRun.h"
#include "Rendezvous.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

using namespace weft;
using namespace weft::schedule;

namespace {

BodyOrder orderOfOneClass(std::span<const rt::Instruction> body) {
  return {body, [](const rt::Instruction &) { return false; }};
}

/// Runs a body without rendezvous to its end.
BodyRun runAlone(const BodyOrder &order) {
  BodyRun run(order, 0);
  run.advance();
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
      orders.emplace_back(body.instructions,
                          [&](const rt::Instruction &each) { return waitsForOthers(each); });
      const bool meets = !orders.back().rendezvous.empty();
      alone.push_back(meets ? std::nullopt : std::optional(runAlone(orders.back()).now()));
    }
    walk();
  }

  /// Returns the rendezvous that it has come to; none at the end.
  std::optional<Rendezvous> current() const {
    return isAtEnd() ? std::nullopt : std::optional(rendezvousAt(program, instruction(), all));
  }
  /// REQUIRES: it is not at the end.
  double begin() const { return run->now(); }
  double seconds() const { return instruction().cost.seconds; }
  void pass(TimeSpan time) {
    if (time.begin > begin()) {
      course.waits.push_back({begin(), time.begin});
    }
    run->pass(time);
    walk();
  }
  /// Returns the course of the actions that it has ended.
  ClassCourse take() { return std::move(course); }

private:
  bool isAtEnd() const { return action == section.size(); }
  const rt::Instruction &instruction() const { return bodyOf(section[action])[waitsAt]; }
  bool waitsForOthers(const rt::Instruction &each) const {
    return all.size() > 1 && isRendezvous(program, each);
  }
  const std::vector<rt::Instruction> &bodyOf(const rt::Action &each) const {
    return program.bodies[each.body].instructions;
  }

  /// Times that are shifted by the action's begin end exactly where the next action begins.
  void visitAlone(double begin) const {
    std::vector<InstructionSpan> spans;
    const BodyRun own = runAlone(orders[section[action].body]);
    for (const TimeSpan &time : own.spans()) {
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
        if (!run) {
          run.emplace(orders[section[action].body], begin);
        }
        if (std::optional<uint32_t> next = run->advance()) {
          waitsAt = *next;
          return;
        }
        end = run->now();
        if (visit) {
          visit(program.rankClass, action, run->spans());
        }
        run.reset();
      }
      course.actions.push_back({begin, end});
    }
  }

  const rt::Program &program;
  const std::vector<rt::Action> &section;
  std::span<const uint32_t> all;
  const ActionVisitor &visit;
  /// Of each body.
  std::vector<BodyOrder> orders;
  /// The time of each body in which no classes meet.
  std::vector<std::optional<double>> alone;
  ClassCourse course;
  /// The action that it has come to, the run of that, and the instruction at which it waits.
  size_t action = 0;
  std::optional<BodyRun> run;
  uint32_t waitsAt = 0;
};

/// All classes together.
class Simulation {
public:
  Simulation(std::span<const rt::Program> programs,
             const std::vector<rt::Action> rt::Program::*section, const ActionVisitor &visit)
      : all(numbersOfClasses(programs.size())) {
    walkers.reserve(programs.size()); // Runs refer to the orders of their walkers.
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
  const BodyOrder order = orderOfOneClass(body);
  const BodyRun run = runAlone(order);
  return {run.spans().begin(), run.spans().end()};
}

double weft::schedule::predictSeconds(std::span<const rt::Instruction> body) {
  return runAlone(orderOfOneClass(body)).now();
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
