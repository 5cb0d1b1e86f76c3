//===- TimeLineRecorder.h - the time line of a run --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For --timeline: records when the ranks of this process run the instructions of some steps, and
// lets rank 0 write the times of all chosen ranks, on its clock, to a file. Without the option, no
// function does anything.
//
// While ranks run, each thread calls it for its own rank only.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TRAINING_TIMELINERECORDER_H
#define WEFT_RT_TRAINING_TIMELINERECORDER_H

#include "execution/StepTimes.h"
#include "report/TimeLine.h"
#include "training/ClockBarriers.h"
#include "training/Options.h"

namespace weft::rt {

class TimeLineRecorder {
public:
  /// The programs are those of all classes; both outlive this object.
  TimeLineRecorder(std::span<const Program> programs, const Options &options);

  /// Chooses steps and ranks, for a run of steps `firstStep` to `endStep - 1` whose ranks `here`
  /// run in this process. Fails if the run has no such step or rank, or if the file cannot be
  /// written.
  Status open(int64_t firstStep, int64_t endStep, RankRange here);
  /// Returns the bytes that `allocate` takes. REQUIRES, as all below: `open` succeeded.
  uint64_t bytes() const;
  void allocate();

  /// Prepares a rank, before its first collective runs. All ranks call it at the same point.
  void prepareRank(Communicator &communicator);
  /// Called before each step of a rank, whose `times` go into the time line.
  void beginStep(int64_t rank, int64_t step, StepTimes &times);
  /// Called after each step of a rank. Returns false if the run has stopped.
  bool endStep(int64_t step, Communicator &communicator);
  /// Brings the times of all ranks to rank 0, which writes the file and appends a line to `told`.
  /// All ranks call it at the same point. Returns false if the run has stopped.
  bool write(Communicator &communicator, std::string &told);

private:
  /// Of one rank here.
  struct alignas(64) Recording {
    ClockBarriers clocks;
    /// Of all steps; empty if the rank is not chosen.
    std::vector<InstructionTime> times;
  };
  /// What rank 0 has got from the others.
  struct Collected;

  bool isOn() const { return !options.timeLine.empty(); }
  Recording &of(int64_t rank) { return recordings[size_t(rank - here.first)]; }
  size_t countOf(int64_t rank) const;
  bool collect(Communicator &communicator, Collected &collected);

  const std::span<const Program> programs;
  const Options &options;
  StepRange steps;
  TimeLineScope scope;
  RankRange here;
  std::vector<Recording> recordings;
};

} // namespace weft::rt

#endif // WEFT_RT_TRAINING_TIMELINERECORDER_H
