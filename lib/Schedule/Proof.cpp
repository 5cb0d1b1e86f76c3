//===- Proof.cpp - proves that a program has no deadlocks or races --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Proof.h"

#include "ProofParts.h"

#include <algorithm>
#include <set>

using namespace weft;
using namespace weft::schedule;

const std::vector<rt::Action> &weft::schedule::actionsOf(const rt::Program &program,
                                                         Section section) {
  return section == Section::Init   ? program.init
         : section == Section::Step ? program.step
                                    : program.evaluate;
}

rt::Expansion weft::schedule::expansionOf(const rt::Program &program, Section section) {
  return {program, actionsOf(program, section)};
}

std::vector<BodyUse> weft::schedule::findBodyUses(const rt::Program &program) {
  std::vector<BodyUse> uses;
  std::set<std::pair<uint32_t, std::vector<rt::FrameUse>>> seen;
  for (Section section : kSections) {
    rt::Expansion expansion = expansionOf(program, section);
    for (size_t action = 0; action < expansion.actionCount(); ++action) {
      const auto &[body, microBatch, frames] = expansion.action(action);
      if (seen.insert({body, frames}).second) {
        uses.push_back({section, body, frames, expansion.beginOf(action)});
      }
    }
  }
  return uses;
}

std::string weft::schedule::describeInstruction(const rt::Program &program, Section section,
                                                size_t number) {
  rt::Expansion expansion = expansionOf(program, section);
  bool isLabelled = expansion[number].label < program.labels.size();
  static constexpr const char *kNames[] = {"init", "step", "evaluate"};
  std::string text = kNames[static_cast<size_t>(section)];
  text += " instruction " + std::to_string(number);
  if (isLabelled) {
    text += " '" + expansion.label(number) + "'";
  }
  const rt::Action &action = expansion.action(expansion.actionOf(number));
  return !action.frames.empty() ? text + " of " + program.bodies[action.body].name : text;
}

std::string weft::schedule::describeCollective(const rt::Program &program,
                                               const rt::Collective &collective) {
  std::string text = rt::nameOf(collective.kind);
  if (rt::isReduction(collective.kind)) {
    text += std::string(" ") + rt::nameOf(collective.reduction);
  }
  text += std::string(" ") + rt::nameOf(collective.type) + "[";
  for (size_t i = 0; i < collective.shape.size(); ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(collective.shape[i]);
  }
  text += "]";
  if (rt::changesShape(collective.kind)) {
    text += " dim " + std::to_string(collective.dim);
  }
  if (collective.kind == rt::CollectiveKind::AllToAll) {
    text += " to dim " + std::to_string(collective.dim2);
  }
  text += collective.isAcrossClasses() ? " across classes" : " over";
  for (uint32_t member : collective.classes) {
    text += " " + std::to_string(member);
  }
  for (uint32_t axis : collective.axes) {
    text += " " + program.mesh[axis].name;
  }
  for (size_t i = 0; i < collective.sources.size(); ++i) {
    text += (i == 0 ? " from " : ",") + std::to_string(collective.sources[i]);
  }
  return text;
}

namespace {

/// Checks one table by itself.
void checkProgram(const rt::Program &program, Diagnostics &diagnostics) {
  if (!checkWellFormed(program, diagnostics)) {
    return;
  }
  checkNames(program, diagnostics);
  checkShapes(program, diagnostics);
  checkDataFlow(program, diagnostics);
  checkPlaces(program, diagnostics);
  checkStreams(program, diagnostics);
}

Proof conclude(std::span<const rt::Program> programs, Diagnostics &diagnostics) {
  Proof proof;
  proof.diagnostics = diagnostics.take();
  if (proof.holds()) {
    proof.certificate = rt::certificateOf(programs);
  }
  return proof;
}

} // namespace

Proof weft::schedule::prove(std::span<const rt::Program> programs) {
  Diagnostics diagnostics;
  for (const rt::Program &program : programs) {
    checkProgram(program, diagnostics);
  }
  if (diagnostics.size() == 0) {
    checkCollectives(programs, diagnostics);
  }
  return conclude(programs, diagnostics);
}

Proof weft::schedule::prove(const rt::Program &program) {
  Diagnostics diagnostics;
  checkProgram(program, diagnostics);
  return conclude(std::span(&program, 1), diagnostics);
}
