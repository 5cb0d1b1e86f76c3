//===- FrameShapes.cpp - what bodies need of frames -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FrameShapes.h"

#include "weft-rt/BufferPlaces.h"
#include "weft/Schedule/Streams.h"

#include <algorithm>
#include <numeric>

using namespace weft;
using namespace weft::schedule;

std::set<std::vector<uint32_t>>
weft::schedule::findCourses(const std::vector<rt::Action> &section) {
  std::map<int64_t, std::vector<uint32_t>> bodiesOf;
  for (const rt::Action &action : section) {
    if (action.microBatch) {
      bodiesOf[*action.microBatch].push_back(action.body);
    }
  }
  std::set<std::vector<uint32_t>> courses;
  for (auto &[microBatch, bodies] : bodiesOf) {
    courses.insert(std::move(bodies));
  }
  return courses;
}

BodyNeeds::BodyNeeds(const rt::Program &program)
    : program(program), allUses(rt::findUses(program)), userCounts(program.buffers.size(), 0) {
  for (uint32_t body = 0; body < program.bodies.size(); ++body) {
    for (const rt::BufferUse &use : allUses[body]) {
      ++userCounts[use.buffer];
    }
    extendBeside(body);
  }
  for (const auto *section : {&program.init, &program.step, &program.evaluate}) {
    findNeededAfter(*section);
  }
}

void BodyNeeds::extendBeside(uint32_t body) {
  const std::vector<rt::Instruction> &instructions = program.bodies[body].instructions;
  const std::vector<int64_t> lasts = predictLastBeside(instructions);
  for (size_t i = 0; i < instructions.size(); ++i) {
    for (const rt::Operand &operand : instructions[i].operands) {
      const rt::BufferUse *use = lasts[i] > int64_t(i) ? findUse(body, operand.buffer) : nullptr;
      if (use) {
        int64_t &last = allUses[body][size_t(use - allUses[body].data())].last;
        last = std::max(last, lasts[i]);
      }
    }
  }
}

const rt::BufferUse *BodyNeeds::findUse(uint32_t body, uint32_t buffer) const {
  auto use = std::ranges::lower_bound(allUses[body], buffer, {}, &rt::BufferUse::buffer);
  return use != allUses[body].end() && use->buffer == buffer ? &*use : nullptr;
}

void BodyNeeds::findNeededAfter(const std::vector<rt::Action> &section) {
  findGatheredAfter(section);
  for (const std::vector<uint32_t> &course : findCourses(section)) {
    followCourse(course, [](uint32_t) { return true; });
  }
}

void BodyNeeds::findGatheredAfter(const std::vector<rt::Action> &section) {
  std::set<uint32_t> gathered;
  for (const rt::Action &action : section) {
    for (const rt::BufferUse &use : allUses[action.body]) {
      if (!action.microBatch && program.buffers[use.buffer].frameSet) {
        gathered.insert(use.buffer);
      }
    }
  }
  if (gathered.empty()) {
    return;
  }
  std::vector<uint32_t> course;
  for (const rt::Action &action : section) {
    course.push_back(action.body);
  }
  followCourse(course, [&](uint32_t buffer) { return gathered.contains(buffer); });
}

template <typename Follows>
void BodyNeeds::followCourse(std::span<const uint32_t> course, const Follows &follows) {
  std::map<uint32_t, uint32_t> before; // The last body so far that uses a buffer.
  for (uint32_t body : course) {
    for (const rt::BufferUse &use : allUses[body]) {
      if (!follows(use.buffer)) {
        continue;
      }
      auto [last, isFirst] = before.try_emplace(use.buffer, body);
      if (!isFirst && use.readsBefore) {
        neededAfter.insert({last->second, use.buffer});
      }
      last->second = body;
    }
  }
}

Taken BodyNeeds::find(uint32_t body, uint32_t buffer) const {
  const rt::Buffer &own = program.buffers[buffer];
  const auto end = int64_t(program.bodies[body].instructions.size());
  Taken taken = {own.offset, own.offset + own.bytes, 0, end};
  if (const rt::BufferUse *use = findUse(body, buffer)) {
    taken.first = use->readsBefore ? 0 : use->first;
    taken.last = neededAfter.contains({body, buffer}) ? end : use->last;
  }
  return taken;
}

FrameShapes::FrameShapes(const rt::Program &program, const BodyNeeds &needs)
    : program(program), needs(needs), buffersOf(program.frameSets.size()) {
  for (uint32_t buffer = 0; buffer < program.buffers.size(); ++buffer) {
    if (program.buffers[buffer].frameSet) {
      buffersOf[*program.buffers[buffer].frameSet].push_back(buffer);
    }
  }
}

std::vector<Taken> FrameShapes::find(uint32_t set, uint32_t body) const {
  const uint64_t alignment = rt::alignmentOf(program);
  std::vector<Taken> shape;
  for (uint32_t buffer : buffersOf[set]) {
    const bool isScratch = needs.users(buffer) == 1;
    if (isScratch && !needs.uses(body, buffer)) {
      continue; // Of another body.
    }
    Taken &taken = shape.emplace_back(needs.find(body, buffer));
    taken.end = (taken.end + alignment - 1) / alignment * alignment;
  }
  std::ranges::sort(shape, {}, &Taken::begin);
  return shape;
}

uint64_t FrameShapes::most(std::span<const uint32_t> sets, uint32_t body) const {
  std::vector<int64_t> changes(program.bodies[body].instructions.size() + 2, 0);
  for (uint32_t set : sets) {
    for (const Taken &taken : find(set, body)) {
      changes[size_t(taken.first)] += int64_t(taken.end - taken.begin);
      changes[size_t(taken.last) + 1] -= int64_t(taken.end - taken.begin);
    }
  }
  std::partial_sum(changes.begin(), changes.end(), changes.begin());
  return uint64_t(*std::ranges::max_element(changes));
}

const std::vector<Distances> &FrameShapes::between(uint32_t other, uint32_t set, uint32_t body) {
  auto [it, isNew] = found.try_emplace({other, set, body});
  std::vector<Distances> &apart = it->second;
  if (!isNew) {
    return apart;
  }
  std::vector<Distances> all;
  const std::vector<Taken> own = find(set, body);
  for (const Taken &theirs : find(other, body)) {
    for (const Taken &taken : own) {
      if (theirs.first <= taken.last && taken.first <= theirs.last) {
        all.push_back({int64_t(theirs.begin) - int64_t(taken.end),
                       int64_t(theirs.end) - int64_t(taken.begin)});
      }
    }
  }
  std::ranges::sort(all, {}, &Distances::begin);
  for (const Distances &each : all) {
    if (!apart.empty() && each.begin < apart.back().end) {
      apart.back().end = std::max(apart.back().end, each.end);
    } else {
      apart.push_back(each);
    }
  }
  return apart;
}
