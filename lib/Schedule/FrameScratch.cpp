//===- FrameScratch.cpp - what lies in frames that are not full -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/BodyUses.h"
#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Frames.h"

#include <algorithm>
#include <map>
#include <set>

using namespace weft;
using namespace weft::schedule;

namespace {

/// Bytes of a frame that are needed from the first to the last of these instructions.
struct Taken {
  uint64_t begin = 0, end = 0;
  int64_t first = 0, last = 0;
};

using BodyUses = std::vector<std::vector<rt::BufferUse>>;

/// Returns the number of bodies that use each buffer.
std::vector<uint32_t> countUsers(const rt::Program &program, const BodyUses &uses) {
  std::vector<uint32_t> users(program.buffers.size(), 0);
  for (const std::vector<rt::BufferUse> &own : uses) {
    for (const rt::BufferUse &use : own) {
      ++users[use.buffer];
    }
  }
  return users;
}

class ScratchPlacer {
public:
  explicit ScratchPlacer(rt::Program &program)
      : program(program), alignment(rt::alignmentOf(program)), uses(rt::findUses(program)),
        users(countUsers(program, uses)) {
    for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
      findNeededAfter(*section);
    }
  }

  void run() {
    for (uint32_t body = 0; body < program.bodies.size(); ++body) {
      placeScratchOf(body);
    }
  }

private:
  /// Finds the bodies that leave a framed buffer's value to a later action.
  void findNeededAfter(const std::vector<rt::Action> &section) {
    const std::set<uint32_t> gathered = findGathered(section);
    std::map<std::pair<uint32_t, int64_t>, uint32_t> before;
    for (const rt::Action &action : section) {
      for (const rt::BufferUse &use : uses[action.body]) {
        if (!program.buffers[use.buffer].frameSet) {
          continue;
        }
        // What is gathered is of all micro-batches until it is gathered anew.
        const int64_t owner = gathered.contains(use.buffer) ? 0 : *action.microBatch;
        auto [last, isFirst] = before.try_emplace({use.buffer, owner}, action.body);
        if (!isFirst && use.readsBefore) {
          neededAfter.insert({use.buffer, last->second});
        }
        last->second = action.body;
      }
    }
  }

  /// Returns the framed buffers that actions of no micro-batch use.
  std::set<uint32_t> findGathered(const std::vector<rt::Action> &section) const {
    std::set<uint32_t> gathered;
    for (const rt::Action &action : section) {
      for (const rt::BufferUse &use : uses[action.body]) {
        if (!action.microBatch && program.buffers[use.buffer].frameSet) {
          gathered.insert(use.buffer);
        }
      }
    }
    return gathered;
  }

  void placeScratchOf(uint32_t body) {
    std::map<uint32_t, std::vector<const rt::BufferUse *>> kept;
    std::vector<const rt::BufferUse *> scratch;
    const std::set<uint32_t> beside = findBeside(program.bodies[body]);
    for (const rt::BufferUse &use : uses[body]) {
      const rt::Buffer &buffer = program.buffers[use.buffer];
      if (buffer.frameSet) {
        kept[*buffer.frameSet].push_back(&use);
      } else if (users[use.buffer] == 1 && buffer.kind != rt::BufferClass::Workspace &&
                 !beside.contains(use.buffer)) {
        scratch.push_back(&use);
      }
    }
    std::ranges::sort(scratch, {}, [&](const rt::BufferUse *use) { // The largest first.
      return std::pair(~program.buffers[use->buffer].bytes, use->buffer);
    });
    for (const auto &[set, own] : kept) {
      std::vector<Taken> taken = findTaken(set, body, own, beside);
      std::erase_if(scratch, [&](const rt::BufferUse *use) { return place(*use, set, taken); });
    }
  }

  /// The buffers that other streams use, perhaps longer than the next instructions take.
  static std::set<uint32_t> findBeside(const rt::Body &body) {
    std::set<uint32_t> beside;
    for (const rt::Instruction &instruction : body.instructions) {
      for (const rt::Operand &operand : instruction.operands) {
        if (instruction.stream != rt::Stream::Compute) {
          beside.insert(operand.buffer);
        }
      }
    }
    return beside;
  }

  /// What an action of the body needs of a frame, and when.
  std::vector<Taken> findTaken(uint32_t set, uint32_t body,
                               const std::vector<const rt::BufferUse *> &own,
                               const std::set<uint32_t> &beside) const {
    const auto end = int64_t(program.bodies[body].instructions.size());
    std::vector<Taken> taken;
    for (uint32_t number = 0; number < program.buffers.size(); ++number) {
      const rt::Buffer &buffer = program.buffers[number];
      if (buffer.frameSet != set || users[number] == 1) {
        continue; // Of another set, or another body's scratch.
      }
      Taken all = {buffer.offset, buffer.offset + buffer.bytes, 0, end};
      auto found = std::ranges::find(own, number, &rt::BufferUse::buffer);
      if (found != own.end() && !beside.contains(number)) {
        all.first = (*found)->readsBefore ? 0 : (*found)->first;
        all.last = neededAfter.contains({number, body}) ? end : (*found)->last;
      }
      taken.push_back(all);
    }
    std::ranges::sort(taken, {}, &Taken::begin);
    return taken;
  }

  /// Places a buffer at the lowest offset in the frame that is free while the body uses it. Returns
  /// false if there is none.
  bool place(const rt::BufferUse &use, uint32_t set, std::vector<Taken> &taken) {
    rt::Buffer &buffer = program.buffers[use.buffer];
    uint64_t begin = 0;
    for (const Taken &other : taken) {
      const bool meets = other.first <= use.last && use.first <= other.last;
      if (meets && other.begin < begin + buffer.bytes) {
        begin = std::max(begin, (other.end + alignment - 1) / alignment * alignment);
      }
    }
    if (begin + buffer.bytes > program.frameSets[set].bytes) {
      return false;
    }
    buffer.frameSet = set;
    buffer.offset = begin;
    const Taken own = {begin, begin + buffer.bytes, use.first, use.last};
    taken.insert(std::ranges::upper_bound(taken, begin, {}, &Taken::begin), own);
    return true;
  }

  rt::Program &program;
  const uint64_t alignment;
  const BodyUses uses;
  const std::vector<uint32_t> users;
  /// Framed buffers and bodies whose values of them later actions read.
  std::set<std::pair<uint32_t, uint32_t>> neededAfter;
};

} // namespace

void weft::schedule::placeScratchInFrames(rt::Program &program) {
  if (!program.frameSets.empty()) {
    ScratchPlacer(program).run();
  }
}

void weft::schedule::takeScratchFromFrames(rt::Program &program) {
  const std::vector<uint32_t> users = countUsers(program, rt::findUses(program));
  for (size_t number = 0; number < users.size(); ++number) {
    if (users[number] == 1) {
      program.buffers[number].frameSet.reset();
    }
  }
}
