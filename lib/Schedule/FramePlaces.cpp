//===- FramePlaces.cpp - places of frames in a region -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FramePlaces.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <random>
#include <set>
#include <tuple>

using namespace weft;
using namespace weft::schedule;

namespace {

/// Gives frames their places in a region.
class Packer {
public:
  Packer(const std::vector<rt::Action> &section, FrameShapes &shapes, PackingGoal &goal)
      : section(section), shapes(shapes), goal(goal), placesOf(shapes.setCount()),
        begins(section.size()), passes(section.size()) {}

  /// Returns the size of the region. REQUIRES: frames have their slots.
  uint64_t place(std::vector<Frame> &frames) {
    clear();
    uint64_t size = 0;
    for (Frame &frame : frames) {
      findTaken(frame);
      frame.offset = uint64_t(choose(frame));
      placesOf[frame.set].insert(int64_t(frame.offset));
      begins[frame.span.first].push_back(&frame);
      for (size_t action = frame.span.first; action <= frame.span.last; ++action) {
        passes[action].push_back(&frame);
      }
      size = std::max(size, frame.end());
    }
    return size;
  }

private:
  /// Forgets all places, but not the memory that their lists take.
  void clear() {
    for (std::set<int64_t> &places : placesOf) {
      places.clear();
    }
    for (size_t action = 0; action < section.size(); ++action) {
      begins[action].clear();
      passes[action].clear();
    }
  }

  /// Finds where the frame must not begin, given those that have their places.
  void findTaken(const Frame &frame) {
    taken.clear();
    for (const Frame *other : passes[frame.span.first]) {
      take(*other, frame);
    }
    for (size_t action = frame.span.first + 1; action <= frame.span.last; ++action) {
      for (const Frame *other : begins[action]) {
        take(*other, frame);
      }
    }
    goal.effort -= std::min(goal.effort, taken.size() + 1);
  }

  void take(const Frame &other, const Frame &frame) {
    const auto at = int64_t(other.offset);
    const size_t first = std::max(frame.span.first, other.span.first);
    if (frame.owner == other.owner && first == std::min(frame.span.last, other.span.last)) {
      for (auto [begin, end] : shapes.between(other.set, frame.set, section[first].body)) {
        taken.push_back({at + begin, at + end});
      }
      return;
    }
    const bool isAlike = frame.slot == other.slot;
    taken.push_back({at - int64_t(isAlike ? frame.slot : frame.bytes),
                     at + int64_t(isAlike ? frame.slot : other.bytes)});
  }

  int64_t choose(const Frame &frame) {
    std::ranges::sort(taken, {}, &Distances::begin);
    if (int64_t own = findFree(placesOf[frame.set]); own >= 0) {
      return own;
    }
    const int64_t lowest = findLowest(), highest = frame.isHigh ? findHighest(frame) : -1;
    return highest >= 0 ? highest : lowest;
  }

  /// Returns the lowest of these places that is free; a negative number if there is none.
  int64_t findFree(const std::set<int64_t> &offsets) const {
    auto next = taken.begin();
    int64_t end = 0;
    for (int64_t offset : offsets) {
      for (; next != taken.end() && next->begin < offset; ++next) {
        end = std::max(end, next->end);
      }
      if (end <= offset) {
        return offset;
      }
    }
    return -1;
  }

  int64_t findLowest() const {
    int64_t lowest = 0;
    for (const Distances &each : taken) {
      lowest = each.begin < lowest ? std::max(lowest, each.end) : lowest;
    }
    return lowest;
  }

  /// Returns a negative number if there is no place below the goal.
  int64_t findHighest(const Frame &frame) {
    std::ranges::sort(taken, std::greater(), &Distances::end);
    int64_t highest = int64_t(goal.bytes) - int64_t(frame.slot);
    for (const Distances &each : taken) {
      highest = each.end > highest ? std::min(highest, each.begin) : highest;
    }
    return highest;
  }

  const std::vector<rt::Action> &section;
  FrameShapes &shapes;
  PackingGoal &goal;
  /// Of each set, the places that its frames have had so far.
  std::vector<std::set<int64_t>> placesOf;
  /// Of each action, the frames that begin there, and those that it finds.
  std::vector<std::vector<const Frame *>> begins, passes;
  /// Of the frame that is placed: where it must not begin, strictly between.
  std::vector<Distances> taken;
};

/// Frames at least as large as this part of the largest take its place: many equal slots are used
/// again without loss, and what is left of a slot is free for small frames.
constexpr double kSlots[] = {1, 0.9, 0.75};

void giveSlots(std::vector<Frame> &frames, double part) {
  std::ranges::sort(frames, std::greater(), &Frame::bytes);
  uint64_t slot = 0;
  for (Frame &frame : frames) {
    if (double(frame.bytes) < part * double(slot) || slot == 0) {
      slot = frame.bytes;
    }
    frame.slot = slot;
  }
}

/// Tries ways to place the frames of a section.
class PlaceSearch {
public:
  PlaceSearch(std::vector<Frame> &frames, const std::vector<rt::Action> &section,
              FrameShapes &shapes, PackingGoal &goal)
      : frames(frames), packer(section, shapes, goal), goal(goal) {}

  uint64_t run(size_t changes) {
    for (double part : kSlots) {
      giveSlots(frames, part);
      std::ranges::sort(frames, {}, [](const Frame &frame) {
        return std::tuple(~frame.slot, frame.span, frame.set);
      });
      place();
    }
    for (; changes > 0 && !isDone(); --changes) {
      frames = best;
      for (size_t count = 1 + random() % 3; count > 0; --count) {
        change();
      }
      place();
    }
    frames = std::move(best);
    return least;
  }

private:
  bool isDone() const { return !best.empty() && (least <= goal.bytes || goal.effort == 0); }

  bool isTooHigh(const Frame &frame) const { return frame.end() > goal.bytes; }

  /// Places frames in their present order, and remembers the best order so far.
  void place() {
    if (isDone()) {
      return;
    }
    const uint64_t size = packer.place(frames);
    uint64_t sum = 0;
    for (const Frame &frame : frames) {
      sum += isTooHigh(frame) ? frame.end() - goal.bytes : 0;
    }
    if (best.empty() || std::pair(size, sum) <= std::pair(least, above)) {
      least = size;
      above = sum;
      best = frames;
    }
  }

  /// Lets a frame, or all frames of its set, come earlier in the order, or be placed from the other
  /// end. Half of the frames are such as end too high.
  void change() {
    const size_t number = chooseFrame();
    const bool isHigh = !frames[number].isHigh, isWholeSet = random() % 2 == 0;
    const uint32_t set = frames[number].set;
    auto isMeant = [&](size_t i) { return isWholeSet ? frames[i].set == set : i == number; };
    if (random() % 2 == 0) {
      for (size_t i = 0; i < frames.size(); ++i) {
        frames[i].isHigh = isMeant(i) ? isHigh : frames[i].isHigh;
      }
      return;
    }
    const size_t to = random() % (number + 1);
    std::vector<Frame> next, later;
    for (size_t i = 0; i < frames.size(); ++i) {
      (isMeant(i) || i < to ? next : later).push_back(frames[i]);
    }
    next.insert(next.end(), later.begin(), later.end());
    frames = std::move(next);
  }

  size_t chooseFrame() {
    std::vector<size_t> high;
    for (size_t i = 0; i < frames.size(); ++i) {
      if (isTooHigh(frames[i])) {
        high.push_back(i);
      }
    }
    const bool isAny = high.empty() || random() % 2 == 0;
    return isAny ? random() % frames.size() : high[random() % high.size()];
  }

  std::vector<Frame> &frames;
  Packer packer;
  PackingGoal &goal;
  std::vector<Frame> best;
  /// The size of its region, and all bytes by which its frames end above the goal.
  uint64_t least = 0, above = 0;
  std::mt19937_64 random{1}; // The same in each compilation.
};

} // namespace

uint64_t weft::schedule::placeFrames(std::vector<Frame> &frames,
                                     const std::vector<rt::Action> &section, FrameShapes &shapes,
                                     size_t changes, PackingGoal &goal) {
  return frames.empty() ? 0 : PlaceSearch(frames, section, shapes, goal).run(changes);
}
