//===- Sampler.h - repeats work on all ranks and takes the times ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks of a run do the same work at the same time, as in training; the speed of one
// rank while the others rest would be misleading. Work that is too short for the clock is
// repeated within a sample.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_SAMPLER_H
#define WEFT_RT_CALIBRATE_SAMPLER_H

#include "execution/Team.h"
#include "weft-rt/Backend.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <vector>

namespace weft::rt::calibrate {

/// The summary of all samples of all ranks.
struct Timing {
  /// The median seconds of one repetition.
  double median = 0;
  /// The distance between the 10th and the 90th percentile, divided by the median.
  double spread = 0;
};

/// The shared state of the ranks of a run. Each rank writes its own samples, rank 0 the rest.
struct Shared {
  explicit Shared(int64_t ranks) : samples(size_t(ranks)) {}

  std::vector<std::vector<double>> samples;
  int64_t repetitions = 1;
  /// The number of samples to take. Rank 0 may set it to the sample before which all ranks meet
  /// next.
  std::atomic<int64_t> end = 0;
};

/// One rank's part of a run. Only its thread may use it.
class Sampler {
public:
  /// `secondsPerCase` bounds the time of one `measure`, rendezvous included, unless the smallest
  /// number of samples takes longer.
  Sampler(Communicator &link, int64_t ranks, int64_t threads, double secondsPerCase,
          Shared &shared);

  /// Runs `work` repeatedly on all ranks; every rank must call this with the same work. Returns the
  /// timing on rank 0, and zeros on the others or if the run has failed.
  template <typename Work> Timing measure(Work &&work) {
    return measureBy([&](int64_t repetitions) { return timed(repetitions, work); });
  }

  /// As `measure`, with another clock: `timed(n)` does the work n times and returns the seconds of
  /// all n.
  template <typename Timed> Timing measureBy(Timed &&timed) {
    timed(1); // Pages, caches and helpers.
    if (!decide(timed(1))) {
      return {};
    }
    for (int64_t sample = 0;; ++sample) {
      if (isOver(sample)) {
        shared.end = sample;
      }
      if (!meet()) {
        return {};
      }
      if (sample >= shared.end) {
        break;
      }
      mine().push_back(timed(shared.repetitions) / double(shared.repetitions));
    }
    return collect();
  }

  /// Sets the seconds for each `measure` from here on. Every rank must call this.
  void allow(double seconds) { secondsPerCase = seconds; }
  Team &team() { return threads; }
  Communicator &communicator() { return link; }
  /// Waits for all ranks. Returns false if the run has failed: then other ranks may be elsewhere,
  /// and the caller must not touch shared state any more.
  bool meet();

private:
  template <typename Work> static double timed(int64_t repetitions, Work &work) {
    auto begin = std::chrono::steady_clock::now();
    for (int64_t i = 0; i < repetitions; ++i) {
      work();
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  std::vector<double> &mine() { return shared.samples[size_t(link.rank())]; }
  /// Lets rank 0 choose the number of repetitions from the time of one.
  bool decide(double seconds);
  /// Returns true if this is rank 0 and the samples before `sample` suffice.
  bool isOver(int64_t sample) const;
  Timing collect();

  Communicator &link;
  Team threads;
  double secondsPerCase;
  Shared &shared;
  Communicator::Handle barrier = 0;
  std::chrono::steady_clock::time_point begin;
};

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_SAMPLER_H
