//===- ProofPlaces.cpp - that nothing overlaps what is in use ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sweeps over the arena. The first has one instant for each instruction of each body: all
// that is needed there in any action lies apart. Frames that share bytes count as one
// there, needed while any of them is. If two lives overlap, the actions decide: values are
// then followed through all instructions, from the one that writes a value to the last that
// reads it. So are, always, those that lie in frames.
//
//===----------------------------------------------------------------------===//

#include "ProofParts.h"
#include "weft-rt/BodyUses.h"
#include "weft-rt/BufferLives.h"
#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Arena.h"
#include "weft/Schedule/Frames.h"

#include <algorithm>
#include <array>

using namespace weft;
using namespace weft::schedule;

namespace {

/// What lies in the bytes of one entry of a problem.
struct Entry {
  uint64_t begin = 0, end = 0;
  int64_t first = 0, last = -1;
  std::vector<uint32_t> places;

  bool isNeeded() const { return first <= last; }
  void join(const Entry &other) {
    const bool isFirst = !isNeeded();
    end = std::max(end, other.end);
    if (other.isNeeded()) {
      first = isFirst ? other.first : std::min(first, other.first);
      last = std::max(last, other.last);
    }
    places.insert(places.end(), other.places.begin(), other.places.end());
  }
};

class PlaceCheck {
public:
  PlaceCheck(const rt::Program &program, Diagnostics &diagnostics)
      : program(program), diagnostics(diagnostics), places(program), uses(rt::findUses(program)) {}

  void run() {
    std::vector<std::string> messages;
    const bool areApart = sweep(listPlaces(), messages);
    if (!areApart) {
      messages.clear(); // The actions decide.
    }
    if (!areApart || !program.frameSets.empty()) {
      for (Section section : kSections) {
        sweep(listValues(expansionOf(program, section), /*hasAll=*/!areApart), messages);
      }
    }
    for (const std::string &message : messages) {
      diagnostics.add(message);
    }
  }

private:
  /// Returns true if nothing overlaps. Adds a message for each fault.
  bool sweep(const std::vector<Entry> &entries, std::vector<std::string> &messages) const {
    ArenaProblem problem;
    problem.alignment = rt::alignmentOf(program);
    ArenaPlan plan;
    plan.bytes = program.arenaBytes;
    for (const Entry &entry : entries) {
      problem.buffers.push_back({entry.end - entry.begin, entry.first, entry.last});
      plan.offsets.push_back(entry.begin);
    }
    bool areApart = true;
    for (const ArenaFault &fault : checkArena(problem, plan)) {
      areApart &= fault.kind != ArenaFault::Kind::Overlap;
      messages.push_back(toText(fault, [&](uint32_t number) {
        const bool isOther = number != fault.buffer;
        return nameOf(entries[number], entries[isOther ? fault.buffer : fault.other]);
      }));
    }
    return areApart;
  }

  /// Names a place of the entry, one that shares bytes with the other if there is one.
  std::string nameOf(const Entry &entry, const Entry &other) const {
    auto found = std::ranges::find_if(entry.places, [&](uint32_t place) {
      return places[place].begin < other.end && other.begin < places[place].end;
    });
    return places.name(found == entry.places.end() ? entry.places.front() : *found);
  }

  /// One entry for each place, or for places in frames of a section that share bytes.
  std::vector<Entry> listPlaces() const {
    const rt::BufferLives found = rt::findBufferLives(program);
    const std::vector<size_t> sections = findSectionsOfSets(program);
    std::vector<Entry> entries;
    std::array<std::vector<Entry>, kFrameRegions> framed;
    for (uint32_t i = 0; i < places.size(); ++i) {
      const rt::BufferPlace &place = places[i];
      const std::optional<uint32_t> set = program.buffers[place.buffer].frameSet;
      std::vector<Entry> &list = set ? framed[sections[*set]] : entries;
      list.push_back({place.begin, place.end, found.lives[i].first, found.lives[i].last, {i}});
    }
    for (std::vector<Entry> &list : framed) {
      joinShared(list);
      entries.insert(entries.end(), list.begin(), list.end());
    }
    return entries;
  }

  static void joinShared(std::vector<Entry> &entries) {
    std::ranges::sort(entries, {}, &Entry::begin);
    std::vector<Entry> joined;
    for (const Entry &entry : entries) {
      if (!joined.empty() && entry.begin < joined.back().end) {
        joined.back().join(entry);
      } else {
        joined.push_back(entry);
      }
    }
    entries = std::move(joined);
  }

  /// One entry for each value that lies in a frame, or for all values, from its first use to its
  /// last.
  std::vector<Entry> listValues(const rt::Expansion &section, bool hasAll) const {
    std::vector<Entry> entries;
    std::vector<std::optional<size_t>> current(places.size());
    for (size_t action = 0; action < section.actionCount(); ++action) {
      const auto begin = int64_t(section.beginOf(action));
      for (const rt::BufferUse &use : uses[section.action(action).body]) {
        if (!hasAll && !program.buffers[use.buffer].frameSet) {
          continue;
        }
        const uint32_t place = places.find(use.buffer, section.action(action).frames);
        if (use.readsBefore && current[place]) {
          entries[*current[place]].last = begin + use.last;
          continue;
        }
        current[place] = entries.size();
        entries.push_back(
            {places[place].begin, places[place].end, begin + use.first, begin + use.last, {place}});
      }
    }
    for (uint32_t place = 0; hasAll && place < places.size(); ++place) {
      if (program.buffers[places[place].buffer].persistent) {
        entries.push_back(
            {places[place].begin, places[place].end, 0, int64_t(section.size()), {place}});
      }
    }
    return entries;
  }

  const rt::Program &program;
  Diagnostics &diagnostics;
  const rt::BufferPlaces places;
  /// Of each body.
  const std::vector<std::vector<rt::BufferUse>> uses;
};

} // namespace

void weft::schedule::checkPlaces(const rt::Program &program, Diagnostics &diagnostics) {
  PlaceCheck(program, diagnostics).run();
}
