//===- StreamWaits.cpp - waits of instructions for other streams ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Streams.h"

#include "weft-rt/BufferPlaces.h"

#include <algorithm>
#include <array>
#include <set>

using namespace weft;
using namespace weft::schedule;

namespace {

/// For each stream, how many instructions of the list have ended, up to the last one on this
/// stream.
using Clock = std::array<uint32_t, rt::kStreams>;

/// Bytes between two neighbouring ends of buffers, which are always used together.
struct Part {
  /// Their last writer and the readers since then: instruction numbers from 1; 0 is none.
  Clock written = {}, read = {};
};

/// Lists of frames with which actions run the body; one without frames if no action runs it.
std::vector<std::vector<rt::FrameUse>> findFrames(const rt::Program &program, uint32_t body) {
  std::set<std::vector<rt::FrameUse>> found;
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    for (const rt::Action &action : *section) {
      if (action.body == body) {
        found.insert(action.frames);
      }
    }
  }
  return found.empty() ? std::vector<std::vector<rt::FrameUse>>(1)
                       : std::vector(found.begin(), found.end());
}

/// Works as if each list of frames with which actions run the body had an arena of its own: the
/// waits are the same for all of them.
class Waits {
public:
  Waits(const rt::Program &program, uint32_t number, std::vector<rt::Instruction> &body)
      : places(program), frames(findFrames(program, number)), body(body) {
    for (size_t place = 0; place < places.size(); ++place) {
      arenaBytes = std::max(arenaBytes, places[place].end);
    }
    for (const rt::Instruction &instruction : body) {
      for (const rt::Operand &operand : instruction.operands) {
        forPlaces(operand, [&](uint64_t begin, uint64_t end) {
          ends.push_back(begin);
          ends.push_back(end);
        });
      }
    }
    std::sort(ends.begin(), ends.end());
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    parts.resize(ends.size());
    after.resize(body.size());
  }

  void run() {
    for (uint32_t number = 0; number < body.size(); ++number) {
      setWaits(number, findNeeded(body[number]));
      note(number);
    }
  }

private:
  template <typename Visit> void forPlaces(const rt::Operand &operand, const Visit &visit) const {
    for (size_t i = 0; i < frames.size(); ++i) {
      const rt::BufferPlace &place = places[places.find(operand.buffer, frames[i])];
      visit(i * arenaBytes + place.begin, i * arenaBytes + place.end);
    }
  }

  /// Calls `visit` for each part of the operand.
  template <typename Visit> void forParts(const rt::Operand &operand, const Visit &visit) const {
    auto find = [&](uint64_t end) {
      return size_t(std::lower_bound(ends.begin(), ends.end(), end) - ends.begin());
    };
    forPlaces(operand, [&](uint64_t begin, uint64_t end) {
      for (size_t part = find(begin), last = find(end); part < last; ++part) {
        visit(part);
      }
    });
  }

  /// The instructions of each stream that must have ended before the instruction begins.
  Clock findNeeded(const rt::Instruction &instruction) const {
    Clock needed = {};
    auto join = [&](const Clock &others) {
      for (size_t stream = 0; stream < rt::kStreams; ++stream) {
        needed[stream] = std::max(needed[stream], others[stream]);
      }
    };
    for (const rt::Operand &operand : instruction.operands) {
      forParts(operand, [&](size_t part) {
        join(parts[part].written);
        if (operand.access != rt::Access::Read) {
          join(parts[part].read);
        }
      });
    }
    return needed;
  }

  /// The last instruction first: it may have waited for the others.
  void setWaits(uint32_t number, Clock needed) {
    rt::Instruction &instruction = body[number];
    Clock &clock = clocks[size_t(instruction.stream)];
    instruction.waits.clear();
    std::sort(needed.begin(), needed.end(), std::greater());
    for (uint32_t other : needed) {
      if (other == 0 || clock[size_t(body[other - 1].stream)] >= other) {
        continue;
      }
      instruction.waits.push_back(other - 1);
      for (size_t stream = 0; stream < rt::kStreams; ++stream) {
        clock[stream] = std::max(clock[stream], after[other - 1][stream]);
      }
    }
    std::sort(instruction.waits.begin(), instruction.waits.end());
    clock[size_t(instruction.stream)] = number + 1;
    after[number] = clock;
  }

  void note(uint32_t number) {
    const rt::Instruction &instruction = body[number];
    size_t stream = size_t(instruction.stream);
    for (const rt::Operand &operand : instruction.operands) {
      forParts(operand, [&](size_t part) {
        if (operand.access == rt::Access::Read) {
          parts[part].read[stream] = number + 1;
        } else { // It has waited for all before it.
          parts[part] = {};
          parts[part].written[stream] = number + 1;
        }
      });
    }
  }

  const rt::BufferPlaces places;
  const std::vector<std::vector<rt::FrameUse>> frames;
  std::vector<rt::Instruction> &body;
  uint64_t arenaBytes = 0;
  /// The offsets where buffers begin or end, ascending; part i begins at `ends[i]`.
  std::vector<uint64_t> ends;
  std::vector<Part> parts;
  /// The clocks when the next instruction of each stream begins, and when each instruction has
  /// ended.
  std::array<Clock, rt::kStreams> clocks = {};
  std::vector<Clock> after;
};

} // namespace

void weft::schedule::setWaits(rt::Program &program, uint32_t body) {
  std::vector<rt::Instruction> &instructions = program.bodies[body].instructions;
  const bool isOneStream = std::ranges::all_of(
      instructions, [&](const auto &one) { return one.stream == instructions.front().stream; });
  if (isOneStream) {
    for (rt::Instruction &instruction : instructions) {
      instruction.waits.clear();
    }
    return;
  }
  Waits(program, body, instructions).run();
}
