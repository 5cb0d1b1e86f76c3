//===- Rendezvous.h - where the members of a group meet ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each group of ranks has one Rendezvous for the whole run. A collective is:
//
//   meet    every member shows its buffers; all wait until all have come, and the
//           last one checks that they came with the same operation
//   ...     members read each other's operands, write each other's results
//   part    all wait until all are done, then buffers belong to their owners again
//
// Waiting looks a few times for the others, then sleeps in the kernel, so ranks
// may outnumber cores. Nothing is allocated unless something goes wrong.
//
// Memory order: what a member wrote before `meet` or `part` is visible to every
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

class Rendezvous {
public:
  /// `ranks` in group order; at least two.
  Rendezvous(std::vector<int64_t> ranks, RunState &run);

  size_t size() const { return ranks.size(); }

  /// Shows what `member` brings and waits for the others. False if the run stopped:
  /// a partner brought another operation, did not come in time, or failed.
  bool meet(size_t member, const Operation &operation, const void *operand, void *result);

  /// Waits until every member is done with the others' buffers. False as above.
  bool part(size_t member) { return barrier(member, nullptr); }

  /// Between `meet` and `part`: the buffers of `member`.
  const void *operandOf(size_t member) const { return places[member].operand; }
  void *resultOf(size_t member) const { return places[member].result; }

private:
  /// A member's own place; on its own cache lines, since each writes its own.
  struct alignas(128) Place {
    const Operation *operation = nullptr;
    const void *operand = nullptr;
    void *result = nullptr;
    /// Barriers that the member has come to.
    std::atomic<uint64_t> arrivals = 0;
  };

  /// `operation` is what to compare, or null for `part`.
  bool barrier(size_t member, const Operation *operation);
  bool wait(size_t member, uint32_t before);
  void checkSameOperation();
  /// Whether a member that has not come yet never will.
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
