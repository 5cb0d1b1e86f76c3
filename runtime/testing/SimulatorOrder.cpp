//===- SimulatorOrder.cpp - the order of work on streams, and races -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorOrder.h"

#include "testing/SimulatorHandles.h"

#include <algorithm>

using namespace weft::rt;
using namespace weft::rt::cuda;

bool Clock::covers(const Clock &other) const {
  for (size_t stream = 0; stream < other.reached.size(); ++stream) {
    if (other.reached[stream] > of(stream)) {
      return false;
    }
  }
  return true;
}

void Clock::join(Place place) {
  reached.resize(std::max(reached.size(), place.stream + 1));
  reached[place.stream] = std::max(reached[place.stream], place.index);
}

void Clock::join(const Clock &other) {
  for (size_t stream = 0; stream < other.reached.size(); ++stream) {
    join({stream, other.reached[stream]});
  }
}

bool weft::rt::cuda::collide(const Touch &a, const Touch &b) {
  return (a.writes() || b.writes()) && std::max(a.begin, b.begin) < std::min(a.end, b.end);
}

void Races::check(const std::vector<Touch> &touches, const Clock &clock) const {
  for (const Past &other : past) {
    if (clock.covers(other.place)) {
      continue;
    }
    for (const Touch &touch : touches) {
      if (collide(touch, other.touch)) {
        misuse("a race: ", touch.writes() ? "writes " : "reads ", touch.what, ", of which ",
               other.work, other.touch.writes() ? " writes " : " reads ",
               std::min(touch.end, other.touch.end) - std::max(touch.begin, other.touch.begin),
               " bytes as ", other.touch.what, ", and no event orders them");
      }
    }
  }
}

void Races::add(const std::vector<Touch> &touches, Place place, const std::string &work) {
  for (const Touch &touch : touches) {
    past.push_back({touch, place, work});
  }
}

void Races::forget(const Clock &host) {
  std::erase_if(past, [&](const Past &one) { return host.covers(one.place); });
}

bool Races::touches(uint64_t begin, uint64_t end) const {
  return std::any_of(past.begin(), past.end(), [&](const Past &one) {
    return one.touch.begin < end && begin < one.touch.end;
  });
}
