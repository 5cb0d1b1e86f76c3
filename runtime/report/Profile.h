//===- Profile.h - where the time of a step went ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The measured times of all ranks beside what the program says its instructions
// cost and take. Instructions that run the same kernel, matmul or collective are
// one entry; entries of one kind (see `classOf`) are one class. Made after a run, by
// one thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_PROFILE_H
#define WEFT_RT_REPORT_PROFILE_H

#include "execution/StepTimes.h"
#include "weft-rt/Program.h"

#include <span>
#include <string>

namespace weft::rt {

/// Part of a step. Amounts and times are of one rank and one step, the mean of all.
struct ProfileTimes {
  /// Instructions.
  int64_t calls = 0;
  double flops = 0, bytes = 0;
  /// Seconds that the program was predicted to take; 0 if nobody has said.
  double predicted = 0;
  /// Seconds measured without waiting for other ranks, and that waiting.
  double busy = 0, waited = 0;

  void add(const ProfileTimes &other);
};

/// One kernel, matmul or collective.
struct ProfileEntry {
  std::string kind, name, detail;
  /// Labels of its instructions with '*' for numbers of layers, each once.
  std::vector<std::string> places;
  ProfileTimes times;
  /// Of a rank's device, per second, in what it multiplies.
  double peakFlops = 0;
  /// Seconds of a single call without waiting, over ranks, instructions and steps; the median is 0
  /// where single times were not kept.
  double least = 0, median = 0;
};

class Profile {
public:
  /// Of the object that `json` gives: another one where a reader of it would have to know.
  static constexpr int64_t kVersion = 2;

  /// `ranks` are the times of all ranks, by rank, each of at least one step; `peakBytes` is the
  /// most memory that their processes have had, together.
  Profile(const Program &program, std::span<const StepTimes> ranks, int64_t threads,
          uint64_t peakBytes);

  /// The one that took longest first.
  const std::vector<ProfileEntry> &entries() const { return sorted; }

  /// A line for each class, the slowest first, and the memory; for the end of a run.
  /// `note` is what is to be known of the times, with a comma before it, or empty.
  std::string table(const std::string &note = "") const;

  /// One JSON object, described in docs/Calibration.md.
  std::string json() const;

private:
  struct Class {
    std::string kind;
    ProfileTimes times;
  };
  std::vector<Class> classes() const;
  ProfileTimes whole() const;

  const Program &program;
  const int64_t ranks, threads;
  const uint64_t peakBytes;
  int64_t steps = 0;
  std::vector<ProfileEntry> sorted;
};

/// The most memory that this process has had so far, in bytes.
uint64_t peakProcessBytes();

} // namespace weft::rt

#endif // WEFT_RT_REPORT_PROFILE_H
