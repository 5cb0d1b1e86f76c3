//===- FlatPrograms.cpp - programs as one list of instructions -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FlatPrograms.h"

#include "weft-rt/BufferPlaces.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace weft::test {

namespace {

// The only line here that knows how an action names its frames.
uint32_t placeOf(const rt::BufferPlaces &places, uint32_t buffer, const rt::Action &action) {
  return places.find(buffer, action.frames);
}

class Flattener {
public:
  explicit Flattener(const rt::Program &program) : program(program), places(program) {}

  rt::Program run() {
    flat = program;
    flat.frameSets.clear();
    flat.buffers.clear();
    for (size_t number = 0; number < places.size(); ++number) {
      rt::Buffer buffer = program.buffers[places[number].buffer];
      buffer.offset = places[number].begin;
      buffer.frameSet.reset();
      flat.buffers.push_back(buffer);
    }
    names.resize(places.size());
    std::iota(names.begin(), names.end(), 0);
    for (auto *list : {&flat.parameters, &flat.optimizerState, &flat.inputs}) {
      for (rt::NamedTensor &tensor : *list) {
        tensor.buffer = places.find(tensor.buffer);
      }
    }
    flat.bodies.clear();
    for (auto [name, section] : {std::pair("init", &rt::Program::init),
                                 {"step", &rt::Program::step},
                                 {"evaluate", &rt::Program::evaluate}}) {
      if (!(program.*section).empty()) {
        flat.*section = {{uint32_t(flat.bodies.size())}};
        flat.bodies.push_back({name, listOf(program.*section)});
      }
    }
    return std::move(flat);
  }

private:
  std::vector<rt::Instruction> listOf(const std::vector<rt::Action> &section) {
    std::vector<rt::Instruction> list;
    for (const rt::Action &action : section) {
      const size_t begin = list.size();
      std::map<rt::Stream, size_t> before; // The last instruction of each stream.
      for (size_t i = 0; i < begin; ++i) {
        before[list[i].stream] = i;
      }
      for (const rt::Instruction &instruction : program.bodies[action.body].instructions) {
        list.push_back(made(instruction, action, begin));
        for (auto [stream, last] : before) {
          if (stream != instruction.stream) {
            list.back().waits.push_back(uint32_t(last));
          }
        }
        std::ranges::sort(list.back().waits);
      }
    }
    return list;
  }

  /// Whether an instruction writes a buffer that it also reads.
  static bool isKept(const rt::Instruction &instruction, const rt::Operand &written) {
    return std::ranges::any_of(instruction.operands, [&](const rt::Operand &other) {
      return &other != &written && other.buffer == written.buffer;
    });
  }

  rt::Instruction made(const rt::Instruction &from, const rt::Action &action, size_t begin) {
    rt::Instruction instruction = from;
    std::vector<int64_t> numbers = rt::immediatesOf(from, action);
    instruction.immediates.assign(numbers.begin(), numbers.end());
    // Operands that are read come first.
    for (size_t i = 0; i < from.operands.size(); ++i) {
      const rt::Operand &operand = from.operands[i];
      uint32_t &name = names[placeOf(places, operand.buffer, action)];
      if (operand.access == rt::Access::Write && !flat.buffers[name].persistent &&
          !isKept(from, operand)) {
        flat.buffers.push_back(rt::Buffer(flat.buffers[name]));
        name = uint32_t(flat.buffers.size() - 1);
      }
      instruction.operands[i].buffer = name;
    }
    for (uint32_t &wait : instruction.waits) {
      wait += uint32_t(begin);
    }
    return instruction;
  }

  const rt::Program &program;
  const rt::BufferPlaces places;
  rt::Program flat;
  /// The buffer that holds what each place does.
  std::vector<uint32_t> names;
};

} // namespace

rt::Program flattened(const rt::Program &program) { return Flattener(program).run(); }

bool keepsMicroBatchesApart(const rt::Program &program) {
  rt::BufferPlaces places(program);
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    std::map<uint32_t, std::optional<int64_t>> writtenFor;
    for (const rt::Action &action : *section) {
      for (const rt::Instruction &instruction : program.bodies[action.body].instructions) {
        for (const rt::Operand &operand : instruction.operands) {
          uint32_t place = placeOf(places, operand.buffer, action);
          bool isOther = writtenFor.contains(place) && writtenFor[place] != action.microBatch;
          if (operand.access != rt::Access::Write && program.buffers[operand.buffer].frameSet &&
              isOther) {
            return false;
          }
        }
        for (const rt::Operand &operand : instruction.operands) {
          if (operand.access != rt::Access::Read) {
            writtenFor[placeOf(places, operand.buffer, action)] = action.microBatch;
          }
        }
      }
    }
  }
  return true;
}

} // namespace weft::test
