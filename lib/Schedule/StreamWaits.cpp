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

class Waits {
public:
  Waits(const rt::Program &program, std::vector<rt::Instruction> &body)
      : places(program), body(body) {
    for (const rt::Instruction &instruction : body) {
      for (const rt::Operand &operand : instruction.operands) {
        for (const rt::BufferPlace &place : places.of(operand.buffer)) {
          ends.push_back(place.begin);
          ends.push_back(place.end);
        }
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
  /// Calls `visit` for each part of the operand: of its places in all frames, since waits are the
  /// same in each.
  template <typename Visit> void forParts(const rt::Operand &operand, const Visit &visit) const {
    auto find = [&](uint64_t end) {
      return size_t(std::lower_bound(ends.begin(), ends.end(), end) - ends.begin());
    };
    for (const rt::BufferPlace &place : places.of(operand.buffer)) {
      for (size_t part = find(place.begin), end = find(place.end); part < end; ++part) {
        visit(part);
      }
    }
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
  std::vector<rt::Instruction> &body;
  /// The offsets where buffers begin or end, ascending; part i begins at `ends[i]`.
  std::vector<uint64_t> ends;
  std::vector<Part> parts;
  /// The clocks when the next instruction of each stream begins, and when each instruction has
  /// ended.
  std::array<Clock, rt::kStreams> clocks = {};
  std::vector<Clock> after;
};

} // namespace

void weft::schedule::setWaits(const rt::Program &program, std::vector<rt::Instruction> &body) {
  Waits(program, body).run();
}
