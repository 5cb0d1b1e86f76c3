//===- ProofStreams.cpp - accesses to shared bytes are ordered ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Walks a section in the order of issue. A clock records for each stream how many of its
// instructions have certainly ended when an instruction begins: by its predecessors on its own
// stream, by its waits, and by what these implied in turn. For all bytes of the arena the walk
// knows their last writer, and on each stream the last reader since then; an instruction that
// touches the bytes must come after these. Earlier accesses need not be kept: the writer came
// after all of them.
//
// Deliberately shares no code with setWaits.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"

#include <algorithm>
#include <array>
#include <map>

using namespace weft;
using namespace weft::schedule;

namespace {

/// For each stream, one more than the number of the last instruction that has ended.
using Clock = std::array<size_t, rt::kStreams>;

void join(Clock &clock, const Clock &other) {
  std::transform(clock.begin(), clock.end(), other.begin(), clock.begin(),
                 [](size_t a, size_t b) { return std::max(a, b); });
}

/// An instruction and the buffer by which it accesses the bytes; `end` is its number plus one, or 0
/// for no instruction.
struct Touch {
  size_t end = 0;
  uint32_t buffer = 0;
};

/// Bytes up to `end` that the same instructions have accessed.
struct Stretch {
  uint64_t end = 0;
  Touch written;
  std::array<Touch, rt::kStreams> read = {};
};

class StreamCheck {
public:
  StreamCheck(const rt::Program &program, const BodyUse &use, Diagnostics &diagnostics)
      : program(program), use(use), instructions(program.bodies[use.body].instructions),
        diagnostics(diagnostics) {}

  void run() {
    for (size_t number = 0; number < instructions.size(); ++number) {
      const rt::Instruction &instruction = instructions[number];
      Clock &clock = clocks[size_t(instruction.stream)];
      for (uint32_t other : instruction.waits) {
        join(clock, after[other]);
      }
      isReported = false;
      for (const rt::Operand &operand : instruction.operands) {
        check(number, operand, clock);
      }
      for (const rt::Operand &operand : instruction.operands) {
        note(number, operand);
      }
      clock[size_t(instruction.stream)] = number + 1;
      after.push_back(clock);
    }
  }

private:
  using Place = std::map<uint64_t, Stretch>::iterator;

  uint32_t frameOf(uint32_t buffer) const { return program.frameOf(buffer, use.frames); }
  std::string nameOf(uint32_t buffer) const { return rt::nameOf(program, buffer, frameOf(buffer)); }

  /// The first byte of the operand, and the byte after its last.
  std::pair<uint64_t, uint64_t> bytesOf(const rt::Operand &operand) const {
    uint64_t begin = program.offsetOf(operand.buffer, frameOf(operand.buffer));
    return {begin, begin + program.buffers[operand.buffer].bytes};
  }

  /// Splits the stretch that contains `at`, so that no stretch lies on both sides.
  Place cut(uint64_t at) {
    Place next = stretches.lower_bound(at);
    if (next != stretches.begin()) {
      Place previous = std::prev(next);
      if (previous->second.end > at) {
        next = stretches.emplace_hint(next, at, previous->second);
        previous->second.end = at;
      }
    }
    return next;
  }

  void check(size_t number, const rt::Operand &operand, const Clock &clock) {
    auto [begin, end] = bytesOf(operand);
    Place place = stretches.upper_bound(begin);
    if (place != stretches.begin() && std::prev(place)->second.end > begin) {
      --place;
    }
    for (; place != stretches.end() && place->first < end; ++place) {
      const Stretch &stretch = place->second;
      compare(number, operand, clock, stretch.written, true);
      for (const Touch &read : stretch.read) {
        if (operand.access != rt::Access::Read) {
          compare(number, operand, clock, read, false);
        }
      }
    }
  }

  void compare(size_t number, const rt::Operand &operand, const Clock &clock, const Touch &other,
               bool isWrite) {
    if (other.end == 0 || isReported) {
      return;
    }
    const rt::Instruction &instruction = instructions[other.end - 1];
    if (clock[size_t(instruction.stream)] >= other.end) {
      return;
    }
    isReported = true;
    diagnostics.add(describe(number) + (operand.access == rt::Access::Read ? " reads" : " writes") +
                    " " + nameOf(operand.buffer) + " on " +
                    rt::nameOf(instructions[number].stream) + " without waiting for " +
                    describe(other.end - 1) + ", which " + (isWrite ? "writes" : "reads") +
                    " some of its bytes as " + nameOf(other.buffer) + " on " +
                    rt::nameOf(instruction.stream));
  }

  std::string describe(size_t number) const {
    return describeInstruction(program, use.section, use.begin + number);
  }

  void note(size_t number, const rt::Operand &operand) {
    auto [begin, end] = bytesOf(operand);
    Touch touch = {number + 1, operand.buffer};
    Place first = cut(begin), last = cut(end);
    if (operand.access != rt::Access::Read) {
      stretches.erase(first, last);
      stretches[begin] = {end, touch, {}};
      return;
    }
    // Bytes that no instruction has accessed lie between stretches.
    uint64_t at = begin;
    for (Place place = first; at < end;) {
      if (place == last || place->first > at) {
        uint64_t until = place == last ? end : place->first;
        place = stretches.emplace_hint(place, at, Stretch{until, {}, {}});
      }
      place->second.read[size_t(instructions[number].stream)] = touch;
      at = place->second.end;
      ++place;
    }
  }

  const rt::Program &program;
  const BodyUse use;
  const std::vector<rt::Instruction> &instructions;
  Diagnostics &diagnostics;
  /// The stretches by their first bytes.
  std::map<uint64_t, Stretch> stretches;
  /// The clock when the next instruction of each stream begins, and when each instruction has
  /// ended.
  std::array<Clock, rt::kStreams> clocks = {};
  std::vector<Clock> after;
  /// Set after the first fault of an instruction: only that is reported.
  bool isReported = false;
};

} // namespace

void weft::schedule::checkStreams(const rt::Program &program, Diagnostics &diagnostics) {
  for (const BodyUse &use : findBodyUses(program)) {
    const std::vector<rt::Instruction> &instructions = program.bodies[use.body].instructions;
    bool isOne = std::all_of(instructions.begin(), instructions.end(), [](const auto &instruction) {
      return instruction.stream == rt::Stream::Compute;
    });
    if (!isOne) {
      StreamCheck(program, use, diagnostics).run();
    }
  }
}
