//===- Profile.h - the profile of a run -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the measured times of all ranks with the costs and times that the
// program predicts. Instructions that run the same kernel, matmul or collective
// form one entry; entries of one kind (see `classOf`) form one class. Made after a
// run, by one thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_PROFILE_H
#define WEFT_RT_REPORT_PROFILE_H

#include "execution/StepTimes.h"
#include "weft-rt/Program.h"

#include <span>
#include <string>

namespace weft::rt {

/// Times and costs of a part of a step, for one rank and one step: the mean over all.
struct ProfileTimes {
  /// The number of instructions.
  int64_t calls = 0;
  double flops = 0, bytes = 0;
  /// The predicted seconds; 0 if unknown.
  double predicted = 0;
  /// The measured seconds without waiting for other ranks, and the seconds of waiting.
  double busy = 0, waited = 0;

  void add(const ProfileTimes &other);
};

/// One kernel, matmul or collective.
struct ProfileEntry {
  std::string kind, name, detail;
  /// The labels of its instructions, with '*' for layer numbers, each once.
  std::vector<std::string> places;
  ProfileTimes times;
  /// The peak operations per second of a rank's device for the multiplied type.
  double peakFlops = 0;
  /// The least and the median seconds of a single call without waiting, over ranks, instructions
  /// and steps; the median is 0 if single times were not kept.
  double least = 0, median = 0;
};

class Profile {
public:
  /// The version of the object that `json` returns; changes when readers must know.
  static constexpr int64_t kVersion = 2;

  /// `ranks` has the times of each rank, of at least one step. `peakBytes` is the sum of the peak
  /// memory of all processes.
  Profile(const Program &program, std::span<const StepTimes> ranks, int64_t threads,
          uint64_t peakBytes);

  /// Returns all entries, the slowest first.
  const std::vector<ProfileEntry> &entries() const { return sorted; }

  /// Returns a line for each class, the slowest first, and the memory; for the end of a run. `note`
  /// is a remark on the times that begins with a comma, or empty.
  std::string table(const std::string &note = "") const;

  /// Returns one JSON object; docs/Calibration.md describes it.
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

/// Returns the peak memory of this process so far, in bytes.
uint64_t peakProcessBytes();

} // namespace weft::rt

#endif // WEFT_RT_REPORT_PROFILE_H
