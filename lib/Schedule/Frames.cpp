//===- Frames.cpp - places for micro-batches in flight ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Frames.h"

#include "weft-rt/BufferPlaces.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The first and the last action that need something.
struct Span {
  size_t first = 0, last = 0;
  auto operator<=>(const Span &) const = default;
  bool meets(const Span &other) const { return first <= other.last && other.first <= last; }
};

/// By micro-batch, or by the number of times that it was gathered.
using Spans = std::map<int64_t, Span>;

void cover(Spans &spans, int64_t owner, size_t action) {
  Span &own = spans.try_emplace(owner, Span{action, action}).first->second;
  own.last = action;
}

/// Returns true if two micro-batches need something at a time.
bool overlap(const Spans &spans) {
  std::vector<Span> inTime;
  for (const auto &[owner, span] : spans) {
    inTime.push_back(span);
  }
  std::ranges::sort(inTime);
  return std::ranges::adjacent_find(inTime, &Span::meets) != inTime.end();
}

/// Returns true if no micro-batch needs something in two actions.
bool isInOneAction(const Spans &spans) {
  return std::ranges::all_of(
      spans, [](const auto &each) { return each.second.first == each.second.last; });
}

/// A frame of one micro-batch, or of what is gathered once.
struct Frame {
  uint32_t set = 0;
  int64_t owner = 0;
  Span span = {};
  uint64_t bytes = 0, offset = 0;
  /// What frames of this size and a little less are placed as.
  uint64_t slot = 0;
  uint64_t end() const { return offset + bytes; }
};

/// Frames at least as large as this part of the largest take its place: many equal slots are used
/// again without loss, and what is left of a slot is free for small frames.
constexpr double kSlots[] = {1, 0.9, 0.75};

/// Gives frames their places in a region.
class Packer {
public:
  explicit Packer(size_t sets) : placesOf(sets) {}

  /// Returns the size of the region. REQUIRES: frames have their slots.
  uint64_t place(std::vector<Frame> &frames) {
    std::ranges::sort(frames, {}, [](const Frame &frame) {
      return std::tuple(~frame.slot, frame.span, frame.set);
    });
    uint64_t size = 0;
    for (size_t number = 0; number < frames.size(); ++number) {
      Frame &frame = frames[number];
      if (frame.slot != frames[alike].slot) {
        alike = number;
        active.clear();
      }
      std::erase_if(active,
                    [&](const Frame *other) { return other->span.last < frame.span.first; });
      findGaps(frame, std::span(frames).first(alike));
      frame.offset = choose(frame);
      placesOf[frame.set].insert(frame.offset);
      active.push_back(&frame);
      size = std::max(size, frame.end());
    }
    return size;
  }

private:
  struct Gap {
    uint64_t begin = 0, end = 0;
    bool holds(uint64_t offset, uint64_t bytes) const {
      return begin <= offset && offset <= end && bytes <= end - offset;
    }
  };

  /// Finds what is free while the frame is in use, given the frames of larger slots. All frames of
  /// its slot that are placed begin no later than it does.
  void findGaps(const Frame &frame, std::span<const Frame> larger) {
    taken.clear();
    for (const Frame &other : larger) {
      if (other.span.meets(frame.span)) {
        taken.push_back({other.offset, other.end()});
      }
    }
    for (const Frame *other : active) {
      taken.push_back({other->offset, other->offset + other->slot});
    }
    std::ranges::sort(taken, {}, &Gap::begin);
    gaps.clear();
    uint64_t end = 0;
    for (const Gap &part : taken) {
      if (part.begin > end) {
        gaps.push_back({end, part.begin});
      }
      end = std::max(end, part.end);
    }
    gaps.push_back({end, ~uint64_t(0)});
  }

  uint64_t choose(const Frame &frame) const {
    auto own = std::ranges::find_if(placesOf[frame.set], [&](uint64_t offset) {
      return std::ranges::any_of(gaps,
                                 [&](const Gap &gap) { return gap.holds(offset, frame.slot); });
    });
    if (own != placesOf[frame.set].end()) {
      return *own;
    }
    auto fits = [&](const Gap &gap) { return gap.holds(gap.begin, frame.slot); };
    return std::ranges::find_if(gaps, fits)->begin;
  }

  /// The number of the first frame of the present slot, and those of the slot that are placed and
  /// in use when the next one begins.
  size_t alike = 0;
  std::vector<const Frame *> active;
  /// Of each set, the places that its frames have had so far.
  std::vector<std::set<uint64_t>> placesOf;
  /// Of the frame that is placed: what others take, and what is free.
  std::vector<Gap> taken, gaps;
};

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

/// Gives frames their places, those among several ways that take the fewest bytes.
void placeFrames(std::vector<Frame> &frames, size_t sets) {
  std::vector<Frame> best;
  uint64_t least = ~uint64_t(0);
  for (double part : kSlots) {
    giveSlots(frames, part);
    if (uint64_t size = Packer(sets).place(frames); size < least) {
      least = size;
      best = frames;
    }
  }
  frames = std::move(best);
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

  /// Calls `visit` with each number that the action uses and its owner: a micro-batch, or how often
  /// it has been gathered. REQUIRES: it is called for all actions, in order.
  template <typename Visit> void take(const rt::Action &action, const Visit &visit) {
    for (uint32_t number : used[action.body]) {
      if (!action.microBatch) {
        ++times[number];
      }
      visit(number, isGathered(number) ? times[number] : *action.microBatch);
    }
  }

private:
  const Used &used;
  std::set<uint32_t> gathered;
  std::map<uint32_t, int64_t> times;
};

/// Returns when micro-batches need each of what bodies use.
std::map<uint32_t, Spans> findSpans(const Used &used, const std::vector<rt::Action> &section) {
  std::map<uint32_t, Spans> spans;
  Owners owners(used, section);
  for (size_t number = 0; number < section.size(); ++number) {
    owners.take(section[number],
                [&](uint32_t each, int64_t owner) { cover(spans[each], owner, number); });
  }
  return spans;
}

/// The frames that the micro-batches of a section need.
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

/// Places the frames of one section.
class SectionFrames {
public:
  SectionFrames(rt::Program &program, const Used &setsOf, std::vector<rt::Action> &section)
      : program(program), setsOf(setsOf), section(section) {}

  void run() {
    std::vector<Frame> frames = findFrames(program, setsOf, section);
    placeFrames(frames, program.frameSets.size());
    std::ranges::sort(frames, {},
                      [](const Frame &frame) { return std::pair(frame.span, frame.set); });
    for (const Frame &frame : frames) {
      numbers[{frame.set, frame.owner}] = numberOf(frame);
    }
    Owners owners(setsOf, section);
    for (rt::Action &action : section) {
      action.frames.clear();
      owners.take(action, [&](uint32_t set, int64_t owner) {
        action.frames.push_back({set, numbers.at({set, owner})});
      });
    }
  }

private:
  /// Returns the number of the frame in its set; each place is one.
  uint32_t numberOf(const Frame &frame) {
    std::vector<uint64_t> &offsets = program.frameSets[frame.set].offsets;
    const auto found = std::ranges::find(offsets, frame.offset);
    const auto number = uint32_t(found - offsets.begin());
    if (found == offsets.end()) {
      offsets.push_back(frame.offset);
    }
    return number;
  }

  rt::Program &program;
  const Used &setsOf;
  std::vector<rt::Action> &section;
  /// Of the frame of a set and its owner.
  std::map<std::pair<uint32_t, int64_t>, uint32_t> numbers;
};

/// Puts the buffers of each frame one after another: all are needed at once.
void layOutFrames(rt::Program &program) {
  takeScratchFromFrames(program);
  const uint64_t alignment = rt::alignmentOf(program);
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

} // namespace

void weft::schedule::makeFrameSets(rt::Program &program, const std::vector<rt::Action> &section,
                                   const std::vector<bool> &mayHaveFrames) {
  const Used used = findUsed(program, [&](uint32_t buffer) {
    return mayHaveFrames[buffer] ? std::optional(buffer) : std::nullopt;
  });
  const Owners owners(used, section);
  std::map<uint32_t, Spans> spans = findSpans(used, section);
  std::erase_if(spans, [](const auto &each) { return isInOneAction(each.second); });
  if (std::ranges::none_of(spans, [&](const auto &each) {
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
  layOutFrames(program);
  const Used setsOf = findSets(program);
  for (auto *section : sectionsOf(program)) {
    SectionFrames(program, setsOf, *section).run();
  }
}

std::array<uint64_t, kFrameRegions> weft::schedule::findMostFrameBytes(const rt::Program &program) {
  const Used setsOf = findSets(program);
  const std::array sections = sectionsOf(program);
  std::array<uint64_t, kFrameRegions> most = {};
  for (size_t number = 0; number < kFrameRegions; ++number) {
    std::vector<int64_t> changes(sections[number]->size() + 1, 0);
    for (const Frame &frame : findFrames(program, setsOf, *sections[number])) {
      changes[frame.span.first] += int64_t(frame.bytes);
      changes[frame.span.last + 1] -= int64_t(frame.bytes);
    }
    std::partial_sum(changes.begin(), changes.end(), changes.begin());
    most[number] = uint64_t(*std::ranges::max_element(changes));
  }
  return most;
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
