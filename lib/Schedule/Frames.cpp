//===- Frames.cpp - places for micro-batches in flight ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Frames.h"

#include "FramePlaces.h"
#include "FrameScratch.h"
#include "weft-rt/BufferPlaces.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace weft;
using namespace weft::schedule;

namespace {

/// By owner, see `Frame`.
using Spans = std::map<int64_t, Span>;

void cover(Spans &spans, int64_t owner, size_t action) {
  Span &own = spans.try_emplace(owner, Span{action, action}).first->second;
  own.last = action;
}

/// Returns true if two owners need something at a time.
bool overlap(const Spans &spans) {
  std::vector<Span> inTime;
  for (const auto &[owner, span] : spans) {
    inTime.push_back(span);
  }
  std::ranges::sort(inTime);
  return std::ranges::adjacent_find(inTime, &Span::meets) != inTime.end();
}

/// Returns true if no owner needs something in two actions.
bool isInOneAction(const Spans &spans) {
  return std::ranges::all_of(
      spans, [](const auto &each) { return each.second.first == each.second.last; });
}

/// Numbers of frame sets or buffers that each body uses.
using Used = std::vector<std::set<uint32_t>>;

/// Finds what each body uses, where `numberOf` returns the number that a buffer counts as, if any.
template <typename NumberOf> Used findUsed(const rt::Program &program, const NumberOf &numberOf) {
  Used used(program.bodies.size());
  for (size_t body = 0; body < program.bodies.size(); ++body) {
    for (const rt::Instruction &instruction : program.bodies[body].instructions) {
      for (const rt::Operand &operand : instruction.operands) {
        if (std::optional<uint32_t> number = numberOf(operand.buffer)) {
          used[body].insert(*number);
        }
      }
    }
  }
  return used;
}

Used findSets(const rt::Program &program) {
  return findUsed(program, [&](uint32_t buffer) { return program.buffers[buffer].frameSet; });
}

/// Says whose each of what the actions of a section use is.
class Owners {
public:
  Owners(const Used &used, const std::vector<rt::Action> &section) : used(used) {
    for (const rt::Action &action : section) {
      if (!action.microBatch) {
        gathered.insert(used[action.body].begin(), used[action.body].end());
      }
    }
  }

  bool isGathered(uint32_t number) const { return gathered.contains(number); }

  /// Calls `visit` with each number that the action uses and its owner. REQUIRES: it is called for
  /// all actions, in order.
  template <typename Visit> void take(const rt::Action &action, const Visit &visit) {
    for (uint32_t number : used[action.body]) {
      if (!action.microBatch) {
        ++times[number];
      }
      visit(number, isGathered(number) ? -times[number] : *action.microBatch);
    }
  }

private:
  const Used &used;
  std::set<uint32_t> gathered;
  std::map<uint32_t, int64_t> times;
};

/// Returns when owners need each of what bodies use.
std::map<uint32_t, Spans> findSpans(const Used &used, const std::vector<rt::Action> &section) {
  std::map<uint32_t, Spans> spans;
  Owners owners(used, section);
  for (size_t number = 0; number < section.size(); ++number) {
    owners.take(section[number],
                [&](uint32_t each, int64_t owner) { cover(spans[each], owner, number); });
  }
  return spans;
}

/// The frames that a section needs.
std::vector<Frame> findFrames(const rt::Program &program, const Used &setsOf,
                              const std::vector<rt::Action> &section) {
  std::vector<Frame> frames;
  for (const auto &[set, own] : findSpans(setsOf, section)) {
    for (const auto &[owner, span] : own) {
      frames.push_back({set, owner, span, program.frameSets[set].bytes});
    }
  }
  return frames;
}

/// `init`, `step` and `evaluate`.
template <typename Program> auto sectionsOf(Program &program) {
  return std::array{&program.init, &program.step, &program.evaluate};
}

/// Returns the most bytes of frames that are in use at one time, for each section.
std::array<uint64_t, kFrameRegions> findMost(const rt::Program &program, const FrameShapes &shapes,
                                             const Used &setsOf) {
  const std::array sections = sectionsOf(program);
  std::array<uint64_t, kFrameRegions> most = {};
  std::vector<uint64_t> ofBody;
  for (uint32_t body = 0; body < program.bodies.size(); ++body) {
    ofBody.push_back(shapes.most(std::vector(setsOf[body].begin(), setsOf[body].end()), body));
  }
  for (size_t number = 0; number < kFrameRegions; ++number) {
    // Of frames that an action does not use.
    std::vector<int64_t> changes(sections[number]->size() + 1, 0);
    for (const Frame &frame : findFrames(program, setsOf, *sections[number])) {
      changes[frame.span.first] += int64_t(frame.bytes);
      changes[frame.span.last + 1] -= int64_t(frame.bytes);
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    for (size_t action = 0; action < sections[number]->size(); ++action) {
      const uint32_t body = (*sections[number])[action].body;
      auto other = uint64_t(changes[action]);
      for (uint32_t set : setsOf[body]) {
        other -= program.frameSets[set].bytes;
      }
      most[number] = std::max(most[number], other + ofBody[body]);
    }
  }
  return most;
}

/// Numbers the places that the frames of a set have had.
class FrameNumbers {
public:
  explicit FrameNumbers(rt::Program &program) : program(program) {}

  void add(const Frame &frame) {
    std::vector<uint64_t> &offsets = program.frameSets[frame.set].offsets;
    const auto found = std::ranges::find(offsets, frame.offset);
    numbers[{frame.set, frame.owner}] = uint32_t(found - offsets.begin());
    if (found == offsets.end()) {
      offsets.push_back(frame.offset);
    }
  }
  uint32_t find(uint32_t set, int64_t owner) const { return numbers.at({set, owner}); }

private:
  rt::Program &program;
  /// Of the frame of a set and its owner.
  std::map<std::pair<uint32_t, int64_t>, uint32_t> numbers;
};

/// All that packing frames sets in a program.
struct FramePlan {
  explicit FramePlan(const rt::Program &program) : frameSets(program.frameSets) {
    for (const rt::Buffer &buffer : program.buffers) {
      buffers.push_back({buffer.frameSet, buffer.offset});
    }
    for (const auto *section : sectionsOf(program)) {
      for (const rt::Action &action : *section) {
        frames.push_back(action.frames);
      }
    }
  }

  void apply(rt::Program &program) const {
    program.frameSets = frameSets;
    for (size_t i = 0; i < buffers.size(); ++i) {
      std::tie(program.buffers[i].frameSet, program.buffers[i].offset) = buffers[i];
    }
    auto own = frames.begin();
    for (auto *section : sectionsOf(program)) {
      for (rt::Action &action : *section) {
        action.frames = *own++;
      }
    }
  }

  std::vector<rt::FrameSet> frameSets;
  std::vector<std::pair<std::optional<uint32_t>, uint64_t>> buffers;
  std::vector<std::vector<rt::FrameUse>> frames;
};

/// How often sets are cut, and the order of their frames is changed.
struct Trial {
  size_t parts = 0, changes = 0;
};

class FramePacker {
public:
  explicit FramePacker(rt::Program &program)
      : program(program), alignment(rt::alignmentOf(program)), needs(program) {
    for (const rt::Buffer &buffer : program.buffers) {
      persistentBytes += buffer.persistent ? buffer.bytes : 0;
    }
  }

  void run() {
    takeScratchFromFrames(program, needs);
    const FramePlan whole(program);
    std::optional<FramePlan> best;
    uint64_t least = 0;
    for (const Trial &trial : kTrials) {
      if (best && (least == 0 || effort == 0)) {
        break;
      }
      whole.apply(program);
      split(trial.parts);
      const uint64_t excess = pack(trial);
      if (!best || excess < least) {
        best.emplace(program);
        least = excess;
      }
    }
    best->apply(program);
  }

private:
  /// Cuts the sets into parts of about equal size, which find room more easily:
  /// the smallest of the large sets into so many, or none if 0.
  void split(size_t parts) {
    if (parts == 0) {
      return;
    }
    uint64_t largest = 0, smallest = ~uint64_t(0);
    layOut();
    for (const rt::FrameSet &set : program.frameSets) {
      largest = std::max(largest, set.bytes);
    }
    for (const rt::FrameSet &set : program.frameSets) {
      smallest = set.bytes >= largest / 4 ? std::min(smallest, set.bytes) : smallest;
    }
    const std::vector<rt::FrameSet> whole = program.frameSets;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> sets;
    std::vector<bool> isCut(whole.size(), false);
    for (rt::Buffer &buffer : program.buffers) {
      if (!buffer.frameSet) {
        continue;
      }
      const uint64_t bytes = whole[*buffer.frameSet].bytes;
      const uint64_t own = partsOf(bytes, smallest / parts);
      const uint64_t part = (buffer.offset + buffer.bytes / 2) / (bytes / own + 1);
      // The first part of a set that has buffers keeps its number.
      auto next = isCut[*buffer.frameSet] ? uint32_t(program.frameSets.size()) : *buffer.frameSet;
      auto [set, isNew] = sets.try_emplace({*buffer.frameSet, part}, next);
      isCut[*buffer.frameSet] = true;
      program.frameSets.resize(std::max<size_t>(program.frameSets.size(), set->second + 1));
      buffer.frameSet = set->second;
    }
  }

  static uint64_t partsOf(uint64_t bytes, uint64_t part) {
    return part == 0 ? 1 : std::max<uint64_t>((bytes + part / 2) / part, 1);
  }

  /// Puts the buffers of each frame one after another: all are needed at once.
  void layOut() {
    for (rt::FrameSet &set : program.frameSets) {
      set = {};
    }
    for (rt::Buffer &buffer : program.buffers) {
      if (buffer.frameSet) {
        rt::FrameSet &set = program.frameSets[*buffer.frameSet];
        buffer.offset = set.bytes;
        set.bytes += (buffer.bytes + alignment - 1) / alignment * alignment;
      }
    }
  }

  /// Gives frames their places. Returns by how many bytes they miss the goal.
  uint64_t pack(const Trial &trial) {
    layOut();
    placeScratchInFrames(program, needs);
    const Used setsOf = findSets(program);
    FrameShapes shapes(program, needs);
    const auto most = findMost(program, shapes, setsOf);
    uint64_t excess = 0;
    for (size_t number = 0; number < kFrameRegions; ++number) {
      std::vector<rt::Action> &section = *sectionsOf(program)[number];
      std::vector<Frame> frames = findFrames(program, setsOf, section);
      const uint64_t enough = most[number] + toleranceFor(most[number]);
      PackingGoal goal = {enough / alignment * alignment, effort};
      const uint64_t size = placeFrames(frames, section, shapes, trial.changes, goal);
      effort = goal.effort;
      excess = std::max(excess, size - std::min(size, goal.bytes));
      setFrames(section, setsOf, frames);
    }
    return excess;
  }

  /// No more is tried when frames take so much more than what is in use: this part of the arena.
  uint64_t toleranceFor(uint64_t most) const {
    constexpr double kPart = 0.004;
    constexpr uint64_t kLeast = 1 << 14;
    return std::max(uint64_t(kPart * double(most + persistentBytes)), kLeast);
  }

  void setFrames(std::vector<rt::Action> &section, const Used &setsOf, std::vector<Frame> &frames) {
    std::ranges::sort(frames, {},
                      [](const Frame &frame) { return std::pair(frame.span, frame.set); });
    FrameNumbers numbers(program);
    for (const Frame &frame : frames) {
      numbers.add(frame);
    }
    Owners owners(setsOf, section);
    for (rt::Action &action : section) {
      action.frames.clear();
      owners.take(action, [&](uint32_t set, int64_t owner) {
        action.frames.push_back({set, numbers.find(set, owner)});
      });
    }
  }

  static constexpr Trial kTrials[] = {{0, 0},   {3, 0},   {1, 0},   {4, 0},   {2, 0},  {0, 100},
                                      {4, 400}, {3, 400}, {1, 100}, {2, 100}, {0, 600}};
  static constexpr size_t kEffort = 600000;

  rt::Program &program;
  const uint64_t alignment;
  const BodyNeeds needs;
  uint64_t persistentBytes = 0;
  /// Of pairs of frames, see `PackingGoal`.
  size_t effort = kEffort;
};

} // namespace

void weft::schedule::makeFrameSets(rt::Program &program, const std::vector<rt::Action> &section,
                                   const std::vector<bool> &mayHaveFrames) {
  const Used used = findUsed(program, [&](uint32_t buffer) {
    return mayHaveFrames[buffer] ? std::optional(buffer) : std::nullopt;
  });
  const Owners owners(used, section);
  std::map<uint32_t, Spans> spans = findSpans(used, section);
  std::erase_if(spans, [](const auto &each) { return isInOneAction(each.second); });
  // Of what lies in one place, bodies are taken to have one order.
  if (findCourses(section).size() < 2 && std::ranges::none_of(spans, [&](const auto &each) {
        return owners.isGathered(each.first) || overlap(each.second);
      })) {
    return;
  }
  std::map<std::pair<bool, Spans>, uint32_t> sets;
  for (const auto &[buffer, own] : spans) {
    auto [set, isNew] =
        sets.try_emplace({owners.isGathered(buffer), own}, uint32_t(program.frameSets.size()));
    if (isNew) {
      program.frameSets.emplace_back();
    }
    program.buffers[buffer].frameSet = set->second;
  }
}

void weft::schedule::packFrames(rt::Program &program) {
  if (!program.frameSets.empty()) {
    FramePacker(program).run();
  }
}

std::array<uint64_t, kFrameRegions> weft::schedule::findMostFrameBytes(const rt::Program &program) {
  const BodyNeeds needs(program);
  return findMost(program, FrameShapes(program, needs), findSets(program));
}

std::vector<size_t> weft::schedule::findSectionsOfSets(const rt::Program &program) {
  std::vector<size_t> sections(program.frameSets.size(), 1);
  const std::array all = sectionsOf(program);
  for (size_t number = 0; number < kFrameRegions; ++number) {
    for (const rt::Action &action : *all[number]) {
      for (const rt::FrameUse &use : action.frames) {
        sections[use.set] = number;
      }
    }
  }
  return sections;
}

std::array<FrameRegion, kFrameRegions>
weft::schedule::findFrameRegions(const rt::Program &program) {
  std::array<FrameRegion, kFrameRegions> regions = {};
  const std::vector<size_t> sections = findSectionsOfSets(program);
  for (size_t number = 0; number < program.frameSets.size(); ++number) {
    const rt::FrameSet &set = program.frameSets[number];
    for (uint64_t offset : set.offsets) {
      FrameRegion &region = regions[sections[number]];
      const bool isFirst = region.begin == region.end;
      region = {isFirst ? offset : std::min(region.begin, offset),
                std::max(region.end, offset + set.bytes)};
    }
  }
  return regions;
}
