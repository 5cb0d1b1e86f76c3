//===- StepTimes.h - times of a rank's instructions -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The clock is read once between any two instructions, so the times of instructions
// add up to that of the step. The first step is dropped once there is a second,
// because its pages, caches and threads are cold. Belongs to the rank's thread;
// other threads may read while that thread does not run. `record` allocates
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_STEPTIMES_H
#define WEFT_RT_EXECUTION_STEPTIMES_H

#include "execution/InstructionTime.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::rt {

class StepTimes {
public:
  /// The number of last steps whose single times are kept, if any are.
  static constexpr size_t kSamples = 100;

  /// For steps of `instructions` instructions. If `keepsSamples`, keeps single times, for medians.
  StepTimes(size_t instructions, bool keepsSamples);

  /// Starts the clock. The rank has waited for `waited` seconds so far.
  void beginStep(double waited = 0);
  /// Assigns the time since the last call of `lap` or `beginStep` to instruction `index`. The rank
  /// has waited for `waited` seconds so far.
  void lap(size_t index, double waited);
  /// Records that instruction `index` took `seconds`, of which it waited for other ranks for
  /// `waited`.
  void record(size_t index, double seconds, double waited);
  /// From the next step on, also records when each instruction runs, in nanoseconds of the steady
  /// clock, until `course` is empty. REQUIRES: it has an element for each instruction.
  void keepCourse(std::span<InstructionTime> course) { this->course = course; }
  /// For times that are recorded at the end of a step, from another clock: the step's instructions
  /// began `seconds` ago.
  void beginBefore(double seconds);
  /// Ends a step; all its instructions must have been recorded.
  void endStep() { ++stepCount; }

  /// Returns the number of steps that the times below cover.
  int64_t steps() const { return stepCount; }
  /// Return the sums over these steps, and the least time in one step without waiting.
  double seconds(size_t index) const { return entries[index].sum; }
  double waited(size_t index) const { return entries[index].waited; }
  double least(size_t index) const { return entries[index].least; }
  /// Appends the single times that are kept, without waiting.
  void appendSamples(size_t index, std::vector<float> &times) const;

  /// Returns the times as bytes, for a process that runs other ranks of the same program.
  std::vector<char> bytes() const;
  /// Reads the result of `bytes` of an object with as many instructions and samples.
  void assign(std::span<const char> bytes);

private:
  struct Entry {
    double sum = 0, waited = 0, least = 0;
  };

  std::chrono::steady_clock::time_point last;
  double waitedBefore = 0;
  std::vector<Entry> entries;
  std::span<InstructionTime> course;
  /// The end of the instruction that was recorded last, if a course is kept.
  int64_t recordedUntil = 0;
  /// The samples of one instruction are contiguous. Empty if none are kept.
  std::vector<float> samples;
  int64_t stepCount = 0;
  bool isWarm = false;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_STEPTIMES_H
