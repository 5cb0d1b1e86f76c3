//===- Frames.cpp - places for micro-batches in flight ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Frames.h"

#include <algorithm>
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
    const auto set = static_cast<uint32_t>(program.frameSets.size());
    for (const auto &[buffer, own] : spans) {
      if (overlap(own)) {
        program.buffers[buffer].frameSet = set;
        for (const auto &[microBatch, span] : own) {
          cover(inFlight, microBatch, span);
        }
      }
    }
    if (!inFlight.empty()) {
      program.frameSets.push_back({0, 0, giveFrames()});
    }
  }

private:
  void findUsed(const std::vector<bool> &isOfMicroBatch) {
    for (const rt::Body &body : program.bodies) {
      std::set<uint32_t> &own = used.emplace_back();
      for (const rt::Instruction &instruction : body.instructions) {
        for (const rt::Operand &operand : instruction.operands) {
          if (isOfMicroBatch[operand.buffer]) {
            own.insert(operand.buffer);
          }
        }
      }
    }
  }

  bool usesFrames(uint32_t body) const {
    return std::ranges::any_of(
        used[body], [&](uint32_t buffer) { return program.buffers[buffer].frameSet.has_value(); });
  }

  /// Returns the number of frames.
  uint32_t giveFrames() {
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
      if (usesFrames(action.body)) {
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
  std::vector<std::set<uint32_t>> used;
  /// When each micro-batch needs its frame.
  Spans inFlight;
};

} // namespace

void weft::schedule::assignFrames(rt::Program &program, std::vector<rt::Action> &section,
                                  const std::vector<bool> &isOfMicroBatch) {
  Assigner(program, section).run(isOfMicroBatch);
}
