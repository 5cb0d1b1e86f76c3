//===- ClockBarriers.cpp - compares the clocks of ranks -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "training/ClockBarriers.h"

#include "execution/InstructionTime.h"

#include <algorithm>
#include <limits>

using namespace weft::rt;

static int64_t now() { return nanosecondsOf(std::chrono::steady_clock::now()); }

void ClockBarriers::prepare(Communicator &communicator, int64_t ranks) {
  const Collective maximum = {
      .reduction = ReductionKind::Max, .type = ElementType::I32, .shape = {1}};
  handle = communicator.prepare(maximum, allRanks(ranks), {"control", 2, "compare clocks"});
}

bool ClockBarriers::pass(Communicator &communicator) {
  for (Barrier &barrier : barriers) {
    const int32_t own = 0;
    int32_t all = 0;
    barrier.came = now();
    if (!communicator.run(handle, &own, &all)) {
      return false;
    }
    barrier.left = now();
  }
  return true;
}

ClockDifference weft::rt::compareClocks(const ClockBarriers::Barriers &first,
                                        const ClockBarriers::Barriers &second) {
  int64_t least = std::numeric_limits<int64_t>::min();
  int64_t most = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < first.size(); ++i) {
    least = std::max(least, second[i].came - first[i].left);
    most = std::min(most, second[i].left - first[i].came);
  }
  if (least <= 0 && 0 <= most) {
    return {0, std::max(-least, most)};
  }
  const int64_t middle = least + (most - least) / 2;
  return {middle, std::max(most - middle, middle - least)};
}
