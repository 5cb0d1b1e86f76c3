//===- Sampler.cpp - repeats work on all ranks and takes the times ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "calibrate/Sampler.h"

using namespace weft::rt;
using namespace weft::rt::calibrate;

/// The shortest sample: a thousand times the time of reading the clock.
static constexpr double kSampleSeconds = 50e-6;
static constexpr int64_t kFewestSamples = 5, kMostSamples = 2000;

Sampler::Sampler(Communicator &link, int64_t ranks, int64_t threads, double secondsPerCase,
                 Shared &shared)
    : link(link), threads(threads), secondsPerCase(secondsPerCase), shared(shared) {
  Collective maximum = {.reduction = ReductionKind::Max, .type = ElementType::I32, .shape = {1}};
  barrier = link.prepare(maximum, allRanks(ranks), {"calibration", 0, "barrier"});
}

bool Sampler::meet() {
  int32_t nothing = 0, result = 0;
  return link.run(barrier, &nothing, &result);
}

bool Sampler::decide(double seconds) {
  if (!meet()) {
    return false;
  }
  if (link.rank() == 0) {
    double once = std::max(seconds, 1e-9);
    shared.repetitions = std::max<int64_t>(1, int64_t(std::ceil(kSampleSeconds / once)));
    shared.end = kMostSamples;
    begin = std::chrono::steady_clock::now();
  }
  mine().clear();
  return meet();
}

bool Sampler::isOver(int64_t sample) const {
  std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return link.rank() == 0 && sample >= kFewestSamples && passed.count() > secondsPerCase;
}

Timing Sampler::collect() {
  Timing timing;
  if (!meet()) {
    return timing;
  }
  if (link.rank() == 0) {
    std::vector<double> all;
    for (const std::vector<double> &samples : shared.samples) {
      all.insert(all.end(), samples.begin(), samples.end());
    }
    std::sort(all.begin(), all.end());
    timing.median = all[all.size() / 2];
    timing.spread = (all[all.size() * 9 / 10] - all[all.size() / 10]) / timing.median;
  }
  meet();
  return timing;
}
