//===- BufferLives.cpp - when buffers are needed ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft-rt/BufferLives.h"

#include "weft-rt/BodyUses.h"

#include <algorithm>
#include <optional>

using namespace weft::rt;

namespace {

/// The last action so far that uses a place.
struct Touch {
  size_t action = 0;
  const BufferUse *use = nullptr;
};

class Finder {
public:
  explicit Finder(const Program &program) : program(program), places(program) {
    found.lives.resize(places.size());
    int64_t time = 0;
    for (const Body &body : program.bodies) {
      found.begins.push_back(time);
      uses.push_back(findUses(program, body));
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
  void cover(uint32_t place, int64_t first, int64_t last) {
    BufferLife &life = found.lives[place];
    bool isNone = life.first > life.last;
    life = {isNone ? first : std::min(life.first, first), std::max(life.last, last)};
  }

  void visit(const std::vector<Action> &section) {
    std::vector<Touch> before(places.size());
    for (size_t action = 0; action < section.size(); ++action) {
      for (const BufferUse &use : uses[section[action].body]) {
        uint32_t place = places.find(use.buffer, section[action].frames);
        const int64_t begin = found.begins[section[action].body];
        cover(place, begin + use.first, begin + use.last);
        if (use.readsBefore && before[place].use) {
          coverBetween(section, before[place], action, use, place);
        }
        before[place] = {action, &use};
      }
    }
  }

  /// The value is kept from the end of the earlier use to the beginning of the later one.
  void coverBetween(const std::vector<Action> &section, const Touch &touch, size_t action,
                    const BufferUse &use, uint32_t place) {
    const uint32_t earlier = section[touch.action].body;
    cover(place, found.begins[earlier] + touch.use->last, found.begins[earlier + 1] - 1);
    for (size_t other = touch.action + 1; other < action; ++other) {
      uint32_t body = section[other].body;
      if (found.begins[body] < found.begins[body + 1]) {
        cover(place, found.begins[body], found.begins[body + 1] - 1);
      }
    }
    const int64_t begin = found.begins[section[action].body];
    cover(place, begin, begin + use.first);
  }

  const Program &program;
  const BufferPlaces places;
  /// Of each body.
  std::vector<std::vector<BufferUse>> uses;
  BufferLives found;
};

} // namespace

BufferLives weft::rt::findBufferLives(const Program &program) { return Finder(program).run(); }
