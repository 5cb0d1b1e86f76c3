//===- MemoryCourse.cpp - the memory in use over the course of a section ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/MemoryCourse.h"

#include "weft-rt/BodyUses.h"
#include "weft-rt/BufferPlaces.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

using namespace weft::rt;

uint64_t MemoryUse::total() const {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t(0));
}

uint64_t MemoryUse::totalFramed() const {
  return std::accumulate(framed.begin(), framed.end(), uint64_t(0));
}

MemoryUse &MemoryUse::operator+=(const MemoryUse &other) {
  for (size_t kind = 0; kind < kBufferClasses; ++kind) {
    bytes[kind] += other.bytes[kind];
    framed[kind] += other.framed[kind];
  }
  aligned += other.aligned;
  return *this;
}

/// Differences may be negative, which unsigned numbers add up correctly.
MemoryUse &MemoryUse::operator-=(const MemoryUse &other) {
  for (size_t kind = 0; kind < kBufferClasses; ++kind) {
    bytes[kind] -= other.bytes[kind];
    framed[kind] -= other.framed[kind];
  }
  aligned -= other.aligned;
  return *this;
}

static MemoryUse useOf(const Buffer &buffer, uint64_t alignment) {
  MemoryUse use;
  use.bytes[size_t(buffer.kind)] = buffer.bytes;
  use.framed[size_t(buffer.kind)] = buffer.frameSet ? buffer.bytes : 0;
  use.aligned = (buffer.bytes + alignment - 1) / alignment * alignment;
  return use;
}

MemoryUse weft::rt::persistentUse(const Program &program) {
  const uint64_t alignment = alignmentOf(program);
  MemoryUse all;
  for (const Buffer &buffer : program.buffers) {
    if (buffer.persistent) {
      all += useOf(buffer, alignment);
    }
  }
  return all;
}

namespace {

/// Whether a value is needed before, or after, the action that uses it: one for each passing use
/// of its body.
using Marks = std::vector<bool>;

/// The uses of each body of a section.
class SectionUses {
public:
  SectionUses(const Program &program, const std::vector<Action> &section)
      : locals(program.bodies.size()), passing(program.bodies.size()) {
    std::vector<bool> isPassing(program.buffers.size(), false);
    std::vector<bool> isSeen(program.bodies.size(), false);
    for (const Action &action : section) {
      if (isSeen[action.body]) {
        continue;
      }
      isSeen[action.body] = true;
      locals[action.body] = findUses(program, program.bodies[action.body]);
      for (const BufferUse &use : locals[action.body]) {
        isPassing[use.buffer] = isPassing[use.buffer] || use.readsBefore;
      }
    }
    for (size_t body = 0; body < locals.size(); ++body) {
      for (const BufferUse &use : locals[body]) {
        if (isPassing[use.buffer]) {
          passing[body].push_back(use);
        }
      }
      std::erase_if(locals[body], [&](const BufferUse &use) { return isPassing[use.buffer]; });
    }
  }

  /// Return the uses of buffers that hold no value between actions, and of those that may.
  const std::vector<BufferUse> &local(const Action &action) const { return locals[action.body]; }
  const std::vector<BufferUse> &between(const Action &action) const { return passing[action.body]; }

private:
  std::vector<std::vector<BufferUse>> locals, passing;
};

class CourseFinder {
public:
  CourseFinder(const Program &program, const std::vector<Action> &section)
      : program(program), section(section), uses(program, section), places(program),
        alignment(alignmentOf(program)) {}

  MemoryCourse run() {
    // What is kept from one action to a later one begins and ends between actions.
    std::vector<MemoryUse> changes(section.size() + 1);
    std::vector<Marks> before = findBefore(changes), after = findAfter();
    MemoryUse kept = persistentUse(program);
    for (size_t number = 0; number < section.size(); ++number) {
      kept += changes[number];
      course.actions.push_back({profileOf(section[number], before[number], after[number]), kept});
    }
    return std::move(course);
  }

private:
  MemoryUse useOf(uint32_t buffer) const { return ::useOf(program.buffers[buffer], alignment); }

  /// Finds the values that are needed before an action, and adds them to the changes of the
  /// actions in between, which do not use them.
  std::vector<Marks> findBefore(std::vector<MemoryUse> &changes) const {
    std::vector<Marks> marks(section.size());
    std::vector<std::optional<size_t>> touched(places.size());
    for (size_t number = 0; number < section.size(); ++number) {
      for (const BufferUse &use : uses.between(section[number])) {
        std::optional<size_t> &earlier = touched[places.find(use.buffer, section[number].frames)];
        bool isNeeded = use.readsBefore && earlier;
        marks[number].push_back(isNeeded);
        if (isNeeded) {
          changes[*earlier + 1] += useOf(use.buffer);
          changes[number] -= useOf(use.buffer);
        }
        earlier = number;
      }
    }
    return marks;
  }

  std::vector<Marks> findAfter() const {
    std::vector<Marks> marks(section.size());
    std::vector<bool> isRead(places.size(), false);
    for (size_t number = section.size(); number-- > 0;) {
      for (const BufferUse &use : uses.between(section[number])) {
        uint32_t place = places.find(use.buffer, section[number].frames);
        marks[number].push_back(isRead[place]);
        isRead[place] = use.readsBefore;
      }
    }
    return marks;
  }

  size_t profileOf(const Action &action, const Marks &before, const Marks &after) {
    auto [it, isNew] =
        numbers.try_emplace(std::tuple(action.body, before, after), course.profiles.size());
    if (isNew) {
      course.profiles.push_back(makeProfile(action, before, after));
    }
    return it->second;
  }

  MemoryCourse::Profile makeProfile(const Action &action, const Marks &before,
                                    const Marks &after) const {
    const size_t size = program.bodies[action.body].instructions.size();
    std::vector<MemoryUse> changes(size + 1);
    auto add = [&](const BufferUse &use, bool isBefore, bool isAfter) {
      changes[isBefore ? 0 : size_t(use.first)] += useOf(use.buffer);
      changes[isAfter ? size : size_t(use.last) + 1] -= useOf(use.buffer);
    };
    for (const BufferUse &use : uses.local(action)) {
      add(use, false, false);
    }
    const std::vector<BufferUse> &between = uses.between(action);
    for (size_t i = 0; i < between.size(); ++i) {
      add(between[i], before[i], after[i]);
    }
    changes.pop_back();
    for (size_t i = 1; i < size; ++i) {
      changes[i] += changes[i - 1];
    }
    const auto peak =
        size_t(std::ranges::max_element(changes, {}, &MemoryUse::aligned) - changes.begin());
    return {std::move(changes), peak};
  }

  const Program &program;
  const std::vector<Action> &section;
  const SectionUses uses;
  const BufferPlaces places;
  const uint64_t alignment;
  /// Of each profile, by what it depends on.
  std::map<std::tuple<uint32_t, Marks, Marks>, size_t> numbers;
  MemoryCourse course;
};

} // namespace

MemoryUse MemoryCourse::at(const Instant &instant) const {
  const ActionUse &action = actions[instant.action];
  MemoryUse use = action.kept;
  return use += profiles[action.profile].instants[instant.instruction];
}

std::optional<Instant> MemoryCourse::peak() const {
  std::optional<Instant> peak;
  uint64_t most = 0;
  for (size_t number = 0; number < actions.size(); ++number) {
    const Profile &profile = profiles[actions[number].profile];
    if (profile.instants.empty()) {
      continue;
    }
    uint64_t aligned = actions[number].kept.aligned + profile.instants[profile.peak].aligned;
    if (!peak || aligned > most) {
      peak = {number, profile.peak};
      most = aligned;
    }
  }
  return peak;
}

MemoryCourse weft::rt::findMemoryCourse(const Program &program,
                                        const std::vector<Action> &section) {
  return CourseFinder(program, section).run();
}

uint64_t LiveBuffer::bytes(const Program &program) const {
  return std::max<size_t>(values.size(), 1) * program.buffers[buffer].bytes;
}

namespace {

/// Follows the value of each place through a section, and keeps those that an instant needs.
class ValueFinder {
public:
  ValueFinder(const Program &program, const std::vector<Action> &section, const Instant &instant)
      : program(program), section(section), instant(instant), places(program),
        current(places.size()), live(program.buffers.size()) {}

  std::vector<LiveBuffer> run() {
    const SectionUses uses(program, section);
    for (size_t number = 0; number < section.size(); ++number) {
      for (const BufferUse &use : uses.between(section[number])) {
        visit(use, number);
      }
    }
    for (uint32_t place = 0; place < places.size(); ++place) {
      end(place);
    }
    for (const BufferUse &use : uses.local(section[instant.action])) {
      add(use.buffer, lifeIn(instant.action, use));
    }
    return list();
  }

private:
  static ValueLife lifeIn(size_t action, const BufferUse &use) {
    return {{action, size_t(use.first)}, {action, size_t(use.last)}};
  }

  void visit(const BufferUse &use, size_t number) {
    uint32_t place = places.find(use.buffer, section[number].frames);
    const ValueLife life = lifeIn(number, use);
    if (use.readsBefore && current[place]) {
      current[place]->last = life.last;
    } else {
      end(place);
      current[place] = life;
    }
  }

  void end(uint32_t place) {
    if (current[place]) {
      add(places[place].buffer, *current[place]);
    }
  }

  void add(uint32_t buffer, const ValueLife &life) {
    if (life.first <= instant && instant <= life.last) {
      live[buffer].push_back(life);
    }
  }

  std::vector<LiveBuffer> list() {
    std::vector<LiveBuffer> buffers;
    for (uint32_t buffer = 0; buffer < live.size(); ++buffer) {
      if (program.buffers[buffer].persistent || !live[buffer].empty()) {
        std::ranges::sort(live[buffer], {}, &ValueLife::first);
        buffers.push_back({buffer, std::move(live[buffer])});
      }
    }
    std::ranges::sort(buffers, std::greater(), [&](const LiveBuffer &each) {
      return std::pair(each.bytes(program), ~each.buffer);
    });
    return buffers;
  }

  const Program &program;
  const std::vector<Action> &section;
  const Instant instant;
  const BufferPlaces places;
  /// The value of each place that was used last.
  std::vector<std::optional<ValueLife>> current;
  /// By buffer.
  std::vector<std::vector<ValueLife>> live;
};

} // namespace

std::vector<LiveBuffer> weft::rt::findLiveBuffers(const Program &program,
                                                  const std::vector<Action> &section,
                                                  const Instant &instant) {
  return ValueFinder(program, section, instant).run();
}
