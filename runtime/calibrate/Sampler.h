//===- Sampler.h - repeats work on all ranks and takes its time ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// All ranks of a run do the same work at the same time, as they do in training: what
// one of them reaches while the others rest is of no use. Work that is shorter than a
// clock can tell is repeated within a sample.
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

/// Of all samples of all ranks.
struct Timing {
  /// Seconds of one repetition.
  double median = 0;
  /// Distance of the 10th and the 90th of 100 samples, over the median.
  double spread = 0;
};

/// What the ranks of a run share. Each writes its own samples; the rest is rank 0's.
struct Shared {
  explicit Shared(int64_t ranks) : samples(size_t(ranks)) {}

  std::vector<std::vector<double>> samples;
  int64_t repetitions = 1;
  /// The sample that is not taken any more. Rank 0 may set it to the one before which all meet
  /// next.
  std::atomic<int64_t> end = 0;
};

/// One rank's part of a run. Belongs to its thread.
class Sampler {
public:
  /// `secondsPerCase` bounds what one `measure` takes, rendezvous included, unless a few samples
  /// take longer.
  Sampler(Communicator &link, int64_t ranks, int64_t threads, double secondsPerCase,
          Shared &shared);

  /// Runs `work` on all ranks, again and again; every rank must call this with the same work.
  /// Gives the timing on rank 0, and nothing on the others, or if the run has failed.
  template <typename Work> Timing measure(Work &&work) {
    return measureBy([&](int64_t repetitions) { return timed(repetitions, work); });
  }

  /// The same of work that another clock is taken for: `timed` does it so often, and gives the
  /// seconds of all.
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

  /// Lets each `measure` from here on take so long. Every rank must call this.
  void allow(double seconds) { secondsPerCase = seconds; }
  Team &team() { return threads; }
  Communicator &communicator() { return link; }
  /// Waits for all ranks. False if the run has failed: others may not be here then, and nothing
  /// that is shared may be touched any more.
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
  /// Rank 0 chooses how often to repeat, from the time of one repetition.
  bool decide(double seconds);
  /// Whether this is rank 0, and no sample after those before `sample` is wanted.
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
