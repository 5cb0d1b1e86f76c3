//===- Team.cpp - the threads that share a rank's work ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Team.h"

#include <algorithm>
#include <sched.h>

using namespace weft::rt;

namespace {

/// Rounds of spinning: some tens of microseconds.
constexpr int kSpins = 4000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

} // namespace

Team::Team(int64_t threads, const std::function<void()> &start) {
  const int64_t count = std::max<int64_t>(threads, 1) - 1;
  helpers.reserve(size_t(count));
  busy = count;
  while (int64_t(helpers.size()) < count) {
    helpers.emplace_back([this, &start, number = int64_t(helpers.size())] {
      start();
      busy.fetch_sub(1, std::memory_order_release);
      help(number);
    });
  }
  start();
  awaitHelpers();
}

/// A helper may lack a processor: yields this thread's after a while.
void Team::awaitHelpers() const {
  for (int spins = 0; busy.load(std::memory_order_acquire) != 0; ++spins) {
    spins < kSpins ? relax() : void(sched_yield());
  }
}

Team::~Team() {
  ending = true;
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  for (std::thread &helper : helpers) {
    helper.join();
  }
}

void Team::runJob(const Job &newJob) {
  job = newJob;
  nextPart.store(0, std::memory_order_relaxed);
  busy.store(int64_t(helpers.size()), std::memory_order_relaxed);
  generation.fetch_add(1, std::memory_order_release);
  generation.notify_all();
  takeParts();
  awaitHelpers();
}

void Team::takeParts() {
  for (;;) {
    int64_t part = nextPart.fetch_add(1, std::memory_order_relaxed);
    if (part >= job.parts) {
      return;
    }
    job.call(job.context, part);
  }
}

void Team::help(int64_t number) {
  for (uint32_t seen = 0;;) {
    for (int spins = 0; generation.load(std::memory_order_acquire) == seen && spins < kSpins;
         ++spins) {
      relax();
    }
    generation.wait(seen, std::memory_order_acquire);
    ++seen; // A job ends only when all helpers have: none is ever missed.
    if (ending) {
      return;
    }
    if (number < job.helpers) {
      takeParts();
    }
    busy.fetch_sub(1, std::memory_order_release);
  }
}

Cut weft::rt::cutIterations(int64_t iterations, int64_t cores) {
  if (cores <= 1 || iterations <= 1) {
    return {1, iterations};
  }
  int64_t parts = std::min(iterations, 4 * cores);
  int64_t length = (iterations + parts - 1) / parts;
  // Parts of many iterations begin at cache lines and vectors.
  constexpr int64_t kLine = 64;
  if (length >= 4 * kLine) {
    length = (length + kLine - 1) / kLine * kLine;
  }
  return {(iterations + length - 1) / length, length};
}

int64_t weft::rt::countProcessors() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  if (sched_getaffinity(0, sizeof processors, &processors) != 0) {
    return std::max(1u, std::thread::hardware_concurrency());
  }
  return std::max(1, CPU_COUNT(&processors));
}
