//===- Team.h - the threads that share a rank's work ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A rank is one thread that walks the program; what is large it shares with the
// helpers of its team. A job is cut into parts that do not depend on each other,
// and whoever is free takes the next: timing decides who runs a part, never what
// is in it, so bits do not depend on timing.
//
// Between jobs helpers spin for some microseconds, since the next job is near, and
// then sleep. A Team belongs to its rank's thread: only that thread calls `run`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_TEAM_H
#define WEFT_RT_EXECUTION_TEAM_H

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace weft::rt {

class Team {
public:
  /// `threads` counts the caller, so one thread means no helpers. A system that has no more
  /// threads to give ends the process, as it does for ranks.
  explicit Team(int64_t threads);
  ~Team();
  Team(const Team &) = delete;
  Team &operator=(const Team &) = delete;

  /// Threads that share the work, the caller among them.
  int64_t size() const { return int64_t(helpers.size()) + 1; }

  /// Calls `work(i)` once for each i from 0 to before `parts`, on any threads of the team, and
  /// returns when all calls have. What the caller wrote before is seen by all, what the parts
  /// wrote is seen by the caller after. Allocates nothing.
  template <typename Work> void run(int64_t parts, Work &&work) {
    if (parts == 1 || helpers.empty()) {
      for (int64_t i = 0; i < parts; ++i) {
        work(i);
      }
      return;
    }
    runJob({parts, &work,
            [](void *context, int64_t part) { (*static_cast<decltype(&work)>(context))(part); }});
  }

private:
  struct Job {
    int64_t parts = 0;
    void *context = nullptr;
    void (*call)(void *context, int64_t part) = nullptr;
  };

  void runJob(const Job &newJob);
  void takeParts();
  void help();

  std::vector<std::thread> helpers;
  Job job;
  /// Counts jobs; a new number tells helpers that `job` is new, or that `ending` is.
  alignas(64) std::atomic<uint32_t> generation = 0;
  alignas(64) std::atomic<int64_t> nextPart = 0;
  /// Helpers that have not yet finished with the present job.
  alignas(64) std::atomic<int64_t> busy = 0;
  bool ending = false;
};

/// How many parts to cut `iterations` into for a device of `cores`, and how long each is but the
/// last: more parts than cores, so that a slow one does not hold up all.
struct Cut {
  int64_t parts = 1, length = 1;
};
Cut cutIterations(int64_t iterations, int64_t cores);

/// Processors that this process may use, at least 1.
int64_t countProcessors();

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_TEAM_H
