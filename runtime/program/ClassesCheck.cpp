//===- ClassesCheck.cpp - checks that the programs of a run belong together -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "support/Text.h"
#include "weft-rt/Program.h"

#include <algorithm>
#include <map>
#include <set>

using namespace weft::rt;

namespace {

class ClassesChecker {
public:
  explicit ClassesChecker(std::span<const Program> programs) : programs(programs) {}

  Status check();

private:
  Status checkNumbers() const;
  Status checkRun(const Program &program) const;
  Status checkAcross() const;
  Status checkTold() const;

  std::span<const Program> programs;
};

Status ClassesChecker::check() {
  for (auto part :
       {&ClassesChecker::checkNumbers, &ClassesChecker::checkAcross, &ClassesChecker::checkTold}) {
    if (Status status = (this->*part)(); !status) {
      return status;
    }
  }
  return {};
}

Status ClassesChecker::checkNumbers() const {
  for (size_t i = 0; i < programs.size(); ++i) {
    const Program &program = programs[i];
    if (program.rankClass != i || program.rankClasses != programs.size()) {
      return makeError("program ", i, " of ", programs.size(), " is for rank class ",
                       program.rankClass, " of ", program.rankClasses);
    }
    if (program.ranks().count != programs[0].ranks().count) {
      return makeError("rank class ", i, " has ", program.ranks().count,
                       " ranks, expected as many as class 0, ", programs[0].ranks().count);
    }
    if (Status status = checkRun(program); !status) {
      return status;
    }
  }
  return {};
}

/// Checks what is the same on all ranks.
Status ClassesChecker::checkRun(const Program &program) const {
  const Program &first = programs[0];
  auto isSame = [&](auto... fields) { return ((program.*fields == first.*fields) && ...); };
  auto namesOf = [](const Program &of) {
    std::vector<std::string> names;
    for (const Kernel &kernel : of.kernels) {
      names.push_back(kernel.name);
    }
    return names;
  };
  const std::pair<const char *, bool> parts[] = {
      {"models", isSame(&Program::modelName, &Program::stepFlops)},
      {"plans", isSame(&Program::planHash, &Program::planText)},
      {"certificates", isSame(&Program::certificate)},
      {"batches", isSame(&Program::globalBatch, &Program::microBatches, &Program::sequenceLength,
                         &Program::vocabulary, &Program::documentEnd)},
      {"default options", isSame(&Program::defaultSteps, &Program::defaultSeed)},
      {"kernels", namesOf(program) == namesOf(first)},
      {"evaluations", program.evaluate.empty() == first.evaluate.empty()}};
  for (auto [name, same] : parts) {
    if (!same) {
      return makeError("rank classes 0 and ", program.rankClass, " have different ", name);
    }
  }
  return {};
}

/// Each collective across classes must be there in all of its classes.
Status ClassesChecker::checkAcross() const {
  std::map<uint32_t, std::map<uint32_t, const Collective *>> byNumber;
  for (const Program &program : programs) {
    for (const Collective &collective : program.collectives) {
      if (collective.isAcrossClasses() &&
          !byNumber[collective.number].emplace(program.rankClass, &collective).second) {
        return makeError("rank class ", program.rankClass, " has two collectives of number ",
                         collective.number);
      }
    }
  }
  auto describes = [](const Collective &a, const Collective &b) {
    return a.kind == b.kind && a.reduction == b.reduction && a.type == b.type &&
           a.shape == b.shape && a.dim == b.dim && a.dim2 == b.dim2 && a.sources == b.sources &&
           a.classes == b.classes;
  };
  for (const auto &[number, inClasses] : byNumber) {
    const Collective &first = *inClasses.begin()->second;
    for (uint32_t other : first.classes) {
      auto found = inClasses.find(other);
      if (found == inClasses.end()) {
        return makeError("rank class ", other, " lacks collective number ", number,
                         ", which class ", inClasses.begin()->first, " has");
      }
    }
    for (const auto &[other, collective] : inClasses) {
      if (!describes(first, *collective)) {
        return makeError("rank classes ", inClasses.begin()->first, " and ", other,
                         " have different collectives of number ", number);
      }
    }
  }
  return {};
}

/// What a class does in a section that concerns the others' agreements and reports.
struct Told {
  /// How often ranks agree to go on.
  int64_t agreements = 0;
  /// The names of the scalars that are observed.
  std::set<std::string> scalars;
};

Told toldBy(const Program &program, const std::vector<Action> &section) {
  std::vector<int64_t> runs(program.bodies.size());
  for (const Action &action : section) {
    ++runs[action.body];
  }
  Told told;
  for (size_t body = 0; body < runs.size(); ++body) {
    if (runs[body] == 0) {
      continue;
    }
    for (const Instruction &instruction : program.bodies[body].instructions) {
      if (instruction.opcode == Opcode::Agree) {
        told.agreements += runs[body];
      } else if (instruction.opcode == Opcode::Observe &&
                 program.observations[instruction.target].layout.globalShape.empty()) {
        told.scalars.insert(program.observations[instruction.target].name);
      }
    }
  }
  return told;
}

/// Rank 0 reports what its own program observes, so no scalar may be seen by other classes alone.
Status ClassesChecker::checkTold() const {
  for (auto [name, section] : {std::pair("init", &Program::init),
                               {"step", &Program::step},
                               {"evaluate", &Program::evaluate}}) {
    const Told first = toldBy(programs[0], programs[0].*section);
    for (const Program &program : programs.subspan(1)) {
      const Told told = toldBy(program, program.*section);
      if (told.agreements != first.agreements) {
        return makeError("rank class ", program.rankClass, " has ", told.agreements,
                         " agreements to go on in ", name, ", class 0 has ", first.agreements);
      }
      for (const std::string &scalar : told.scalars) {
        if (!first.scalars.contains(scalar)) {
          return makeError("rank class ", program.rankClass, " observes '", scalar, "' in ", name,
                           ", class 0, which reports it, does not");
        }
      }
    }
  }
  return {};
}

} // namespace

Status weft::rt::checkTogether(std::span<const Program> programs) {
  return programs.empty() ? makeError("there is no program") : ClassesChecker(programs).check();
}

Status weft::rt::checkWellFormed(std::span<const Program> programs) {
  for (const Program &program : programs) {
    if (Status status = checkWellFormed(program); !status) {
      return programs.size() == 1 ? status
                                  : makeError("rank class ", &program - programs.data(), ": ",
                                              status.error().message);
    }
  }
  return checkTogether(programs);
}
