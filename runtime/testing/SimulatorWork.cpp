//===- SimulatorWork.cpp - enqueued work and the order of running it ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorWork.h"

#include "support/Random.h"
#include "testing/SimulatorHandles.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

uint64_t Dice::roll(uint64_t count) { return randomBits(seed, 0, rolls++) % count; }

void WorkGraph::add(Work work) {
  size_t stream = work.place.stream;
  streams.resize(std::max(streams.size(), stream + 1));
  streams[stream].push_back(std::move(work));
}

bool WorkGraph::finish(const Clock &target, const std::function<bool()> &helpOthers) {
  auto mood = Mood(dice.roll(3));
  while (!done.covers(target)) {
    std::vector<size_t> ready = readyStreams();
    bool isStuck = std::none_of(ready.begin(), ready.end(), [&](size_t stream) {
      return target.covers(streams[stream].front().place);
    });
    if (isStuck && helpOthers()) {
      continue;
    }
    if (ready.empty()) {
      return false;
    }
    runNext(choose(ready, target, mood));
  }
  return true;
}

bool WorkGraph::advance() {
  std::vector<size_t> ready = readyStreams();
  if (!ready.empty()) {
    runNext(ready[dice.roll(ready.size())]);
  }
  return !ready.empty();
}

bool WorkGraph::isReached(size_t stream) const {
  const Work &next = streams[stream].front();
  Clock then = done;
  then.join(next.place);
  return then.covers(next.clock);
}

bool WorkGraph::isBefore(Place place) const {
  return place.stream < streams.size() && !streams[place.stream].empty() &&
         streams[place.stream].front().place.index == place.index && isReached(place.stream);
}

void WorkGraph::loiter() {
  for (uint64_t rounds = dice.roll(4); rounds > 0; --rounds) {
    if (std::vector<size_t> ready = readyStreams(); !ready.empty()) {
      runNext(ready[dice.roll(ready.size())]);
    }
  }
}

std::vector<size_t> WorkGraph::readyStreams() const {
  std::vector<size_t> ready;
  for (size_t stream = 0; stream < streams.size(); ++stream) {
    if (streams[stream].empty()) {
      continue;
    }
    const Work &next = streams[stream].front();
    if (isReached(stream) && (!next.isMet || next.isMet())) {
      ready.push_back(stream);
    }
  }
  return ready;
}

size_t WorkGraph::choose(const std::vector<size_t> &ready, const Clock &target, Mood mood) {
  std::vector<size_t> preferred;
  for (size_t stream : ready) {
    bool isNeeded = target.covers(streams[stream].front().place);
    if (mood == Mood::Any || isNeeded == (mood == Mood::Lazy)) {
      preferred.push_back(stream);
    }
  }
  const std::vector<size_t> &from = preferred.empty() ? ready : preferred;
  return from[dice.roll(from.size())];
}

void WorkGraph::runNext(size_t stream) {
  Work work = std::move(streams[stream].front());
  streams[stream].pop_front();
  done.join(work.place);
  try {
    work.run();
  } catch (const Misuse &fault) {
    misuse(work.what, " failed: ", fault.text);
  }
}
