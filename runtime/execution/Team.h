//===- Team.h - the threads that share a rank's work ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank is one thread that runs the program; it shares large work with the helper
// threads of its team. A job is cut into independent parts, and each free thread
// takes the next part. Timing decides which thread runs a part, never the part's
// content, so bits do not depend on timing.
//
// While a communication thread of the rank works, the rank's thread can spare a helper
// for it, so that no more threads work than the rank was given.
//
// Between jobs, helpers spin for some microseconds, because the next job is usually
// near, and then sleep. A Team belongs to its rank's thread: only that thread calls
// `run`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_TEAM_H
#define WEFT_RT_EXECUTION_TEAM_H

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace weft::rt {

class Team {
public:
  /// `threads` counts the caller: 1 means no helpers. Each thread calls `start` once, the caller
  /// too, before the constructor returns. If the system refuses another thread, the process ends,
  /// as it does for ranks.
  explicit Team(int64_t threads, const std::function<void()> &start = [] {});
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  /// Returns the number of threads, the caller included.
  int64_t size() const { return int64_t(helpers.size()) + 1; }

  /// Calls `work(i)` once for each i from 0 to `parts - 1`, on any threads of the team but `spared`
  /// ones, and returns when all calls have returned. The parts see all earlier writes of the
  /// caller, and the caller then sees all writes of the parts. Allocates nothing.
  template <typename Work> void run(int64_t parts, Work &&work, int64_t spared = 0) {
    const int64_t wanted = int64_t(helpers.size()) - spared;
    if (parts == 1 || wanted <= 0) {
      for (int64_t i = 0; i < parts; ++i) {
        work(i);
      }
      return;
    }
    runJob({parts, wanted, &work,
            [](void *context, int64_t part) { (*static_cast<decltype(&work)>(context))(part); }});
  }

private:
  struct Job {
    int64_t parts = 0;
    /// The helpers that may take parts: those with lower numbers.
    int64_t helpers = 0;
    void *context = nullptr;
    void (*call)(void *context, int64_t part) = nullptr;
  };

  void runJob(const Job &newJob);
  void takeParts();
  void awaitHelpers() const;
  void help(int64_t number);

  std::vector<std::thread> helpers;
  Job job;
  /// The number of jobs so far; a change tells helpers that `job` or `ending` is new.
  alignas(64) std::atomic<uint32_t> generation = 0;
  alignas(64) std::atomic<int64_t> nextPart = 0;
  /// The helpers that have not finished the present job, or not started.
  alignas(64) std::atomic<int64_t> busy = 0;
  bool ending = false;
};

/// The division of iterations: the number of parts, and the length of each part but the last.
struct Cut {
  int64_t parts = 1, length = 1;
};
/// Divides `iterations` for a device of `cores` cores, into more parts than cores, so that a slow
/// core does not delay all.
Cut cutIterations(int64_t iterations, int64_t cores);

/// Returns the number of processors that this process may use, at least 1.
int64_t countProcessors();

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_TEAM_H
