//===- ProofDataFlow.cpp - reads and writes -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include "weft-rt/BufferPlaces.h"

#include <map>
#include <optional>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The places that are not persistent and hold what was written to them: a later write to any of
/// their bytes, as another place, ends that.
class IntactPlaces {
public:
  explicit IntactPlaces(const rt::BufferPlaces &places)
      : places(places), isIntact(places.size(), false) {}

  void clear() {
    byBegin.clear();
    isIntact.assign(places.size(), false);
  }

  /// Calls `spoil` for each place that does not hold its content any more.
  template <typename Spoil> void write(uint32_t number, const Spoil &spoil) {
    if (isIntact[number]) {
      return; // No other one shares its bytes.
    }
    isIntact[number] = true;
    const rt::BufferPlace &written = places[number];
    auto next = byBegin.lower_bound(written.begin);
    if (next != byBegin.begin() && places[std::prev(next)->second].end > written.begin) {
      --next;
    }
    while (next != byBegin.end() && next->first < written.end) {
      isIntact[next->second] = false;
      spoil(next->second);
      next = byBegin.erase(next);
    }
    if (written.begin < written.end) {
      byBegin.emplace_hint(next, written.begin, number);
    }
  }

private:
  const rt::BufferPlaces &places;
  std::vector<bool> isIntact;
  /// Those that are intact. No two share bytes.
  std::map<uint64_t, uint32_t> byBegin;
};

/// What a place holds.
struct Content {
  bool isWritten = false;
  /// The place that was last written over it, if that ended its content.
  std::optional<uint32_t> spoiledBy;
  /// The action that wrote it, if one of the section has.
  const rt::Action *writer = nullptr;
};

class DataFlowCheck {
public:
  DataFlowCheck(const rt::Program &program, Diagnostics &diagnostics)
      : program(program), diagnostics(diagnostics), places(program), contents(places.size()),
        users(program.buffers.size()), intact(places) {
    for (size_t i = 0; i < places.size(); ++i) {
      contents[i].isWritten = isInput(places[i].buffer);
    }
  }

  void run() {
    checkSection(Section::Init);
    checkNamed(program.parameters);
    checkNamed(program.optimizerState);
    for (Section section : {Section::Step, Section::Evaluate}) {
      for (size_t i = 0; i < places.size(); ++i) {
        contents[i] = Content();
        contents[i].isWritten = program.buffers[places[i].buffer].persistent;
      }
      checkSection(section);
    }
  }

private:
  bool isInput(size_t buffer) const {
    return program.buffers[buffer].persistent &&
           program.buffers[buffer].kind == rt::BufferClass::Input;
  }

  /// Checks that every persistent tensor has a value before the first step.
  void checkNamed(const std::vector<rt::NamedTensor> &tensors) {
    for (const rt::NamedTensor &tensor : tensors) {
      if (!contents[places.find(tensor.buffer)].isWritten) {
        diagnostics.add("init does not write '" + tensor.name + "'");
      }
    }
  }

  void checkSection(Section section) {
    intact.clear();
    size_t number = 0;
    rt::Expansion expansion = expansionOf(program, section);
    for (auto it = expansion.begin(); it != expansion.end(); ++it) {
      problem.clear();
      action = &it.by();
      check(section, *it);
      if (!problem.empty()) {
        diagnostics.add(describeInstruction(program, section, number) + " " + problem);
      }
      ++number;
    }
  }

  void check(Section section, const rt::Instruction &instruction) {
    for (const rt::Operand &operand : instruction.operands) {
      checkOperand(section, operand);
    }
    for (size_t i = 0; i < instruction.operands.size(); ++i) {
      for (size_t j = i + 1; j < instruction.operands.size(); ++j) {
        checkAlias(instruction, i, j);
      }
    }
    for (const rt::Operand &operand : instruction.operands) {
      if (operand.access != rt::Access::Read) {
        noteWrite(operand.buffer);
      }
    }
  }

  uint32_t placeOf(uint32_t buffer) const { return places.find(buffer, action->frames); }

  void noteWrite(uint32_t buffer) {
    uint32_t place = placeOf(buffer);
    contents[place].isWritten = true;
    contents[place].writer = action;
    if (!program.buffers[buffer].persistent) {
      intact.write(place, [&](uint32_t other) {
        contents[other].isWritten = false;
        contents[other].spoiledBy = place;
      });
    }
  }

  void checkRead(uint32_t buffer) {
    uint32_t place = placeOf(buffer);
    const Content &content = contents[place];
    if (!content.isWritten) {
      problem = "reads " + places.name(place) +
                (content.spoiledBy ? ", some of whose bytes " + places.name(*content.spoiledBy) +
                                         " has overwritten"
                                   : ", which no instruction has written");
    } else if (program.buffers[buffer].frameSet && content.writer->microBatch &&
               content.writer->microBatch != action->microBatch) {
      problem = "reads " + places.name(place) + ", which " +
                program.bodies[content.writer->body].name + " has written for micro-batch " +
                std::to_string(*content.writer->microBatch);
    }
  }

  void checkOperand(Section section, const rt::Operand &operand) {
    auto name = [&] { return "buffer " + std::to_string(operand.buffer); };
    if (operand.access != rt::Access::Write) {
      checkRead(operand.buffer);
    }
    if (operand.access != rt::Access::Read && isInput(operand.buffer)) {
      problem = "writes " + name() + ", an input";
    }
    if (program.buffers[operand.buffer].persistent) {
      return;
    }
    std::optional<Section> &user = users[operand.buffer];
    if (user && *user != section) {
      problem = "uses " + name() + " of " + (*user == Section::Init ? "init" : "step") +
                ", which is not persistent";
    }
    user = user.value_or(section);
  }

  void checkAlias(const rt::Instruction &instruction, size_t i, size_t j) {
    const rt::Operand &a = instruction.operands[i], &b = instruction.operands[j];
    if (a.access == rt::Access::Read && b.access == rt::Access::Read) {
      return;
    }
    const rt::BufferPlace &x = places[placeOf(a.buffer)], &y = places[placeOf(b.buffer)];
    if (x.begin >= y.end || y.begin >= x.end) {
      return;
    }
    if (a.buffer != b.buffer || !worksInPlace(instruction, i, j)) {
      problem = "has operands " + std::to_string(i) + " and " + std::to_string(j) +
                " that share bytes, and writes one of them";
    }
  }

  /// Returns true if the instruction may have one buffer as its operands `i` and `j`: an all-reduce
  /// as operand and result, a matmul as addend and C.
  bool worksInPlace(const rt::Instruction &instruction, size_t i, size_t j) const {
    if (instruction.opcode == rt::Opcode::Collective) {
      return program.collectives[instruction.target].kind == rt::CollectiveKind::AllReduce;
    }
    return instruction.opcode == rt::Opcode::Matmul && i == 2 && j == 3 &&
           program.matmuls[instruction.target].epilogue.hasAddend;
  }

  const rt::Program &program;
  Diagnostics &diagnostics;
  const rt::BufferPlaces places;
  /// Of each place.
  std::vector<Content> contents;
  /// The section that uses each buffer that is not persistent.
  std::vector<std::optional<Section>> users;
  IntactPlaces intact;
  /// The action that is checked.
  const rt::Action *action = nullptr;
  std::string problem;
};

} // namespace

void weft::schedule::checkDataFlow(const rt::Program &program, Diagnostics &diagnostics) {
  DataFlowCheck(program, diagnostics).run();
}
