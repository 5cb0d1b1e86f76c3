//===- Frames.cpp - places for micro-batches in flight ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Frames.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

using namespace weft;
using namespace weft::schedule;

namespace {

/// The first and the last action that need something.
struct Span {
  size_t first = 0, last = 0;
};

/// By micro-batch.
using Spans = std::map<int64_t, Span>;

void cover(Spans &spans, int64_t microBatch, const Span &span) {
  Span &own = spans.try_emplace(microBatch, span).first->second;
  own = {std::min(own.first, span.first), std::max(own.last, span.last)};
}

/// Returns true if two micro-batches need something at a time.
bool overlap(const Spans &spans) {
  std::vector<Span> inTime;
  for (const auto &[microBatch, span] : spans) {
    inTime.push_back(span);
  }
  std::ranges::sort(inTime, {}, &Span::first);
  auto meet = [](const Span &a, const Span &b) { return b.first <= a.last; };
  return std::ranges::adjacent_find(inTime, meet) != inTime.end();
}

class Assigner {
public:
  Assigner(rt::Program &program, std::vector<rt::Action> &section)
      : program(program), section(section) {}

  void run(const std::vector<bool> &isOfMicroBatch) {
    findUsed(isOfMicroBatch);
    std::map<uint32_t, Spans> spans;
    for (size_t number = 0; number < section.size(); ++number) {
      for (uint32_t buffer : used[section[number].body]) {
        cover(spans[buffer], *section[number].microBatch, {number, number});
      }
    }
    std::erase_if(spans, [](const auto &each) { return !overlap(each.second); });
    for (const Buffers &group : groupByBodies(spans)) {
      Spans inFlight;
      for (uint32_t buffer : group) {
        program.buffers[buffer].frameSet = static_cast<uint32_t>(program.frameSets.size());
        for (const auto &[microBatch, span] : spans[buffer]) {
          cover(inFlight, microBatch, span);
        }
      }
      program.frameSets.push_back({0, 0, giveFrames(group, inFlight)});
    }
  }

private:
  using Buffers = std::set<uint32_t>;

  void findUsed(const std::vector<bool> &isOfMicroBatch) {
    for (const rt::Body &body : program.bodies) {
      Buffers &own = used.emplace_back();
      for (const rt::Instruction &instruction : body.instructions) {
        for (const rt::Operand &operand : instruction.operands) {
          if (isOfMicroBatch[operand.buffer]) {
            own.insert(operand.buffer);
          }
        }
      }
    }
  }

  /// Divides the buffers of `spans` into groups, so that no body uses buffers of two. Each chunk of
  /// a pipeline stage has its own, as its micro-batches are in flight at other times.
  std::vector<Buffers> groupByBodies(const std::map<uint32_t, Spans> &spans) const {
    std::vector<Buffers> groups;
    for (const Buffers &all : used) {
      Buffers joined;
      std::ranges::copy_if(all, std::inserter(joined, joined.end()),
                           [&](uint32_t buffer) { return spans.contains(buffer); });
      if (joined.empty()) {
        continue;
      }
      std::erase_if(groups, [&](const Buffers &group) {
        bool isShared =
            std::ranges::any_of(group, [&](uint32_t buffer) { return all.contains(buffer); });
        if (isShared) {
          joined.insert(group.begin(), group.end());
        }
        return isShared;
      });
      groups.push_back(std::move(joined));
    }
    return groups;
  }

  bool uses(uint32_t body, const Buffers &group) const {
    return std::ranges::any_of(used[body], [&](uint32_t buffer) { return group.contains(buffer); });
  }

  /// Gives each micro-batch a frame of the group's set while it is in flight. Returns the number of
  /// frames.
  uint32_t giveFrames(const Buffers &group, const Spans &inFlight) {
    uint32_t count = 0;
    std::set<uint32_t> free;
    std::map<int64_t, uint32_t> frames;
    for (size_t number = 0; number < section.size(); ++number) {
      rt::Action &action = section[number];
      auto span = action.microBatch ? inFlight.find(*action.microBatch) : inFlight.end();
      if (span == inFlight.end()) {
        continue;
      }
      if (span->second.first == number) {
        if (free.empty()) {
          free.insert(count++);
        }
        frames[span->first] = *free.begin();
        free.erase(free.begin());
      }
      if (uses(action.body, group)) {
        action.frame = frames.at(span->first);
      }
      if (span->second.last == number) {
        free.insert(frames.at(span->first));
      }
    }
    return count;
  }

  rt::Program &program;
  std::vector<rt::Action> &section;
  /// The buffers of micro-batches that each body uses.
  std::vector<Buffers> used;
};

} // namespace

void weft::schedule::assignFrames(rt::Program &program, std::vector<rt::Action> &section,
                                  const std::vector<bool> &isOfMicroBatch) {
  Assigner(program, section).run(isOfMicroBatch);
}
