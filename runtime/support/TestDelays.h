//===- TestDelays.h - slow links and shaken threads, for tests ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two settings of the environment, for tests and benchmarks alone. Threads sleep, so they cost no
// processor time; bits never depend on them.
//
//   WEFT_TEST_LINK=SECONDS,BYTES_PER_SECOND
//       Every collective of several ranks takes longer, as if its ranks were a ring of links with
//       this latency and bandwidth.
//   WEFT_TEST_SHAKE=SEED,SECONDS
//       Before each instruction and each collective, the thread that runs it sleeps for a random
//       time of less than SECONDS, or in half of all cases not at all. Ranks and threads draw
//       different times.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_TESTDELAYS_H
#define WEFT_RT_SUPPORT_TESTDELAYS_H

#include "weft-rt/Program.h"
#include "weft-rt/Status.h"

#include <chrono>
#include <functional>

namespace weft::rt {

struct TestDelays {
  using Duration = std::chrono::nanoseconds;

  /// Of a link; the bandwidth is 0 if links are as they are.
  double latencySeconds = 0, bytesPerSecond = 0;
  uint64_t seed = 0;
  /// The upper bound of random sleeps; 0 for none.
  double shakeSeconds = 0;

  /// Reads both settings. Fails if one is not as above.
  static Result<TestDelays> read();

  /// Returns the delay of a collective of `members` ranks.
  Duration ofLink(const Collective &collective, size_t members) const;
};

/// Draws the random sleeps of one thread.
class Shaker {
public:
  /// `thread` differs between the threads of a rank.
  Shaker(const TestDelays &delays, int64_t rank, uint64_t thread)
      : delays(delays), stream(uint64_t(rank) << 8 | thread) {}

  /// Returns the next sleep; zero without the setting.
  TestDelays::Duration next();

private:
  const TestDelays delays;
  const uint64_t stream;
  uint64_t drawn = 0;
};

/// Sleeps for `time`, or until `isStopped`, which it asks every 10 ms.
void sleepFor(TestDelays::Duration time, const std::function<bool()> &isStopped);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_TESTDELAYS_H
