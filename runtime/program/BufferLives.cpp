//===- BufferLives.cpp - when buffers are needed ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/BufferLives.h"

#include <algorithm>
#include <map>
#include <optional>

using namespace weft::rt;

namespace {

/// How a body uses a buffer: the instants of its first and last use, and whether it needs the value
/// from before.
struct Use {
  uint32_t buffer = 0;
  int64_t first = 0, last = 0;
  bool readsBefore = false;
};

/// The last action so far that uses a place.
struct Touch {
  size_t action = 0;
  const Use *use = nullptr;
};

class Finder {
public:
  explicit Finder(const Program &program) : program(program), places(program) {
    found.lives.resize(places.size());
    int64_t time = 0;
    for (const Body &body : program.bodies) {
      found.begins.push_back(time);
      uses.push_back(findUses(body, time));
      time += int64_t(body.instructions.size());
    }
    found.begins.push_back(time);
  }

  BufferLives run() {
    for (size_t i = 0; i < places.size(); ++i) {
      if (program.buffers[places[i].buffer].persistent) {
        found.lives[i] = {0, std::max<int64_t>(found.begins.back() - 1, 0)};
      }
    }
    for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
      visit(*section);
    }
    return std::move(found);
  }

private:
  std::vector<Use> findUses(const Body &body, int64_t begin) const {
    std::map<uint32_t, Use> byBuffer;
    int64_t time = begin;
    for (const Instruction &instruction : body.instructions) {
      for (const Operand &operand : instruction.operands) {
        if (operand.buffer >= program.buffers.size() ||
            program.buffers[operand.buffer].persistent) {
          continue;
        }
        auto [it, isNew] = byBuffer.try_emplace(operand.buffer, Use{operand.buffer, time, time});
        Use &use = it->second;
        use.readsBefore |= use.first == time && operand.access != Access::Write;
        use.last = time;
      }
      ++time;
    }
    std::vector<Use> list;
    for (const auto &[buffer, use] : byBuffer) {
      list.push_back(use);
    }
    return list;
  }

  void cover(uint32_t place, int64_t first, int64_t last) {
    BufferLife &life = found.lives[place];
    bool isNone = life.first > life.last;
    life = {isNone ? first : std::min(life.first, first), std::max(life.last, last)};
  }

  void visit(const std::vector<Action> &section) {
    std::vector<Touch> before(places.size());
    for (size_t action = 0; action < section.size(); ++action) {
      for (const Use &use : uses[section[action].body]) {
        uint32_t place = places.find(use.buffer, section[action].frame);
        cover(place, use.first, use.last);
        if (use.readsBefore && before[place].use) {
          coverBetween(section, before[place], action, use, place);
        }
        before[place] = {action, &use};
      }
    }
  }

  /// The value is kept from the end of the earlier use to the beginning of the later one.
  void coverBetween(const std::vector<Action> &section, const Touch &touch, size_t action,
                    const Use &use, uint32_t place) {
    cover(place, touch.use->last, found.begins[section[touch.action].body + 1] - 1);
    for (size_t other = touch.action + 1; other < action; ++other) {
      uint32_t body = section[other].body;
      if (found.begins[body] < found.begins[body + 1]) {
        cover(place, found.begins[body], found.begins[body + 1] - 1);
      }
    }
    cover(place, found.begins[section[action].body], use.first);
  }

  const Program &program;
  const BufferPlaces places;
  /// Of each body.
  std::vector<std::vector<Use>> uses;
  BufferLives found;
};

} // namespace

BufferLives weft::rt::findBufferLives(const Program &program) { return Finder(program).run(); }
