//===- Rendezvous.h - synchronizes the ranks of a group ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each group of ranks has one Rendezvous for the whole run. A collective is:
//
//   meet    every member shares its buffers and waits for all members; the last
//           one checks that all came with the same operation
//   ...     members read each other's operands, write each other's results
//   part    all wait until all are done, then buffers belong to their owners again
//
// A waiting member spins a few times, then sleeps in the kernel, so ranks may
// outnumber cores. Only failures allocate memory.
//
// Memory order: all writes of a member before `meet` or `part` are visible to every
// member after its own `meet` or `part`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_LOCAL_RENDEZVOUS_H
#define WEFT_RT_BACKENDS_LOCAL_RENDEZVOUS_H

#include "backends/local/RunState.h"

#include <atomic>
#include <memory>
#include <vector>

namespace weft::rt::local {

/// A thread of a rank that runs operations: the seconds for which it has waited for other ranks,
/// and whether it moves elements now.
struct Runner {
  double waitedSeconds = 0;
  std::atomic<bool> isMoving = false;
};

class Rendezvous {
public:
  /// `ranks` in group order, or of a transfer from low to high; at least two.
  Rendezvous(std::vector<int64_t> ranks, RunState &run);

  size_t size() const { return ranks.size(); }
  /// Returns the number of the member that `rank` is.
  size_t indexOf(int64_t rank) const { return rt::indexOf(rank, ranks); }

  /// Shares the buffers of `member` and waits for the others. Returns false if the run stopped:
  /// another member brought another operation, did not come in time, or failed. The time for others
  /// counts while the rank's thread waits (`Progress::waitsSince`).
  bool meet(size_t member, const Operation &operation, const void *operand, void *result,
            Runner &runner);

  /// Waits until every member is done with the others' buffers. Returns false if the run stopped.
  bool part(size_t member, Runner &runner) { return barrier(member, nullptr, runner); }

  /// Return the buffers of `member`. REQUIRES: between `meet` and `part`.
  const void *operandOf(size_t member) const { return places[member].operand; }
  void *resultOf(size_t member) const { return places[member].result; }

private:
  /// The state of one member, which it alone writes; on cache lines of its own.
  struct alignas(128) Place {
    const Operation *operation = nullptr;
    const void *operand = nullptr;
    void *result = nullptr;
    /// The number of barriers that the member has come to.
    std::atomic<uint64_t> arrivals = 0;
  };

  /// `operation` is compared with those of the others; null for `part`.
  bool barrier(size_t member, const Operation *operation, Runner &runner);
  bool wait(size_t member, uint32_t before);
  bool isLate(size_t member, std::chrono::steady_clock::time_point begin) const;
  void checkSameOperation();
  /// Returns true if some other member has not come and has left the run.
  bool someoneLeft(size_t member) const;
  bool isMissing(size_t other, size_t member) const;
  void reportMissing(size_t member, bool timedOut);
  static std::chrono::nanoseconds sinceMove(const Progress &progress);
  ExitCode codeOfWait() const;

  const std::vector<int64_t> ranks;
  RunState &run;
  std::unique_ptr<Place[]> places;
  alignas(128) std::atomic<uint32_t> arrived = 0;
  /// Counts completed barriers; sleepers wait for it to change.
  alignas(128) std::atomic<uint32_t> generation = 0;
  std::atomic<uint32_t> sleepers = 0;
};

} // namespace weft::rt::local

#endif // WEFT_RT_BACKENDS_LOCAL_RENDEZVOUS_H
