//===- ProofDataFlow.cpp - reads, writes and places -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include "weft/Schedule/Lifetimes.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The buffers that are not persistent and hold what was written to them: a later write to any of
/// their bytes, as another buffer, ends that.
class IntactBuffers {
public:
  explicit IntactBuffers(const rt::Program &program) : program(program) {}

  void clear() { byBegin.clear(); }

  /// Calls `spoil` for each buffer that does not hold its content any more.
  template <typename Spoil> void write(uint32_t number, const Spoil &spoil) {
    const rt::Buffer &buffer = program.buffers[number];
    uint64_t end = buffer.offset + buffer.bytes;
    auto place = byBegin.lower_bound(buffer.offset);
    if (place != byBegin.begin() && endOf(std::prev(place)->second) > buffer.offset) {
      --place;
    }
    while (place != byBegin.end() && place->first < end) {
      if (place->second != number) {
        spoil(place->second);
      }
      place = byBegin.erase(place);
    }
    if (buffer.bytes > 0) {
      byBegin[buffer.offset] = number;
    }
  }

private:
  uint64_t endOf(uint32_t number) const {
    return program.buffers[number].offset + program.buffers[number].bytes;
  }

  const rt::Program &program;
  /// No two share bytes.
  std::map<uint64_t, uint32_t> byBegin;
};

class DataFlowCheck {
public:
  DataFlowCheck(const rt::Program &program, Diagnostics &diagnostics)
      : program(program), diagnostics(diagnostics), isWritten(program.buffers.size(), false),
        spoiledBy(program.buffers.size()), users(program.buffers.size()), intact(program) {
    for (size_t i = 0; i < program.buffers.size(); ++i) {
      isWritten[i] = isInput(i);
    }
  }

  void run() {
    checkSection(Section::Init);
    checkNamed(program.parameters);
    checkNamed(program.optimizerState);
    for (Section section : {Section::Step, Section::Evaluate}) {
      for (size_t i = 0; i < program.buffers.size(); ++i) {
        isWritten[i] = program.buffers[i].persistent;
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
      if (!isWritten[tensor.buffer]) {
        diagnostics.add("init does not write '" + tensor.name + "'");
      }
    }
  }

  void checkSection(Section section) {
    intact.clear();
    std::fill(spoiledBy.begin(), spoiledBy.end(), std::nullopt);
    size_t number = 0;
    for (const rt::Instruction &instruction : expansionOf(program, section)) {
      problem.clear();
      check(section, instruction);
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

  void noteWrite(uint32_t buffer) {
    isWritten[buffer] = true;
    if (!program.buffers[buffer].persistent) {
      intact.write(buffer, [&](uint32_t other) {
        isWritten[other] = false;
        spoiledBy[other] = buffer;
      });
    }
  }

  void checkOperand(Section section, const rt::Operand &operand) {
    std::string name = "buffer " + std::to_string(operand.buffer);
    if (operand.access != rt::Access::Write && !isWritten[operand.buffer]) {
      problem = "reads " + name +
                (spoiledBy[operand.buffer]
                     ? ", some of whose bytes buffer " +
                           std::to_string(*spoiledBy[operand.buffer]) + " has overwritten"
                     : ", which no instruction has written");
    }
    if (operand.access != rt::Access::Read && isInput(operand.buffer)) {
      problem = "writes " + name + ", an input";
    }
    if (program.buffers[operand.buffer].persistent) {
      return;
    }
    std::optional<Section> &user = users[operand.buffer];
    if (user && *user != section) {
      problem = "uses " + name + " of " + (*user == Section::Init ? "init" : "step") +
                ", which is not persistent";
    }
    user = user.value_or(section);
  }

  void checkAlias(const rt::Instruction &instruction, size_t i, size_t j) {
    const rt::Operand &a = instruction.operands[i], &b = instruction.operands[j];
    if (a.access == rt::Access::Read && b.access == rt::Access::Read) {
      return;
    }
    const rt::Buffer &x = program.buffers[a.buffer], &y = program.buffers[b.buffer];
    if (x.offset >= y.offset + y.bytes || y.offset >= x.offset + x.bytes) {
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
  std::vector<bool> isWritten;
  /// The buffer that was last written over each.
  std::vector<std::optional<uint32_t>> spoiledBy;
  /// The section that uses each buffer that is not persistent.
  std::vector<std::optional<Section>> users;
  IntactBuffers intact;
  std::string problem;
};

} // namespace

void weft::schedule::checkDataFlow(const rt::Program &program, Diagnostics &diagnostics) {
  DataFlowCheck(program, diagnostics).run();
}

void weft::schedule::checkPlaces(const rt::Program &program, Diagnostics &diagnostics) {
  for (const ArenaFault &fault : checkArena(makeArenaProblem(program), currentPlan(program))) {
    diagnostics.add(toText(fault));
  }
}
