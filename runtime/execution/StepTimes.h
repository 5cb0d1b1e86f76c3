//===- StepTimes.h - how long a rank's instructions take --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One clock is read between any two instructions, so that a step's times add up to
// the step. The first step is forgotten once there is a second: its pages, caches and
// threads are cold. Belongs to the rank's thread; others may read when that thread
// does not run. `record` allocates nothing.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_STEPTIMES_H
#define WEFT_RT_EXECUTION_STEPTIMES_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::rt {

class StepTimes {
public:
  /// Of so many of the last steps single times are kept, where they are.
  static constexpr size_t kSamples = 100;

  /// For a step of `instructions`; `keepsSamples` says whether single times are kept, for medians.
  StepTimes(size_t instructions, bool keepsSamples);

  /// The clock runs from here; the rank has waited for `waited` seconds so far.
  void beginStep(double waited = 0);
  /// Instruction `index` has taken the time since the last one or the beginning; the rank has
  /// waited for `waited` seconds so far.
  void lap(size_t index, double waited);
  /// Instruction `index` has taken `seconds`, in `waited` of them it waited for other ranks.
  void record(size_t index, double seconds, double waited);
  /// All instructions have been recorded.
  void endStep() { ++stepCount; }

  /// Steps that the times below are of.
  int64_t steps() const { return stepCount; }
  /// Sums over those steps; and the least time of a step, without waiting.
  double seconds(size_t index) const { return entries[index].sum; }
  double waited(size_t index) const { return entries[index].waited; }
  double least(size_t index) const { return entries[index].least; }
  /// Appends the single times, without waiting, that are kept.
  void appendSamples(size_t index, std::vector<float> &times) const;

  /// The times as bytes, for a rank in another process of the same program.
  std::vector<char> bytes() const;
  /// Takes what `bytes` gave, of as many instructions and as many samples.
  void assign(std::span<const char> bytes);

private:
  struct Entry {
    double sum = 0, waited = 0, least = 0;
  };

  std::chrono::steady_clock::time_point last;
  double waitedBefore = 0;
  std::vector<Entry> entries;
  /// Those of one instruction lie together. Empty if none are kept.
  std::vector<float> samples;
  int64_t stepCount = 0;
  bool isWarm = false;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_STEPTIMES_H
