//===- TimeLineRecorder.cpp - the time line of a run ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "training/TimeLineRecorder.h"

#include "execution/CollectedBytes.h"
#include "support/OutputFile.h"
#include "support/Text.h"
#include "weft-rt/Expansion.h"

#include <algorithm>
#include <cstdio>
#include <limits>

using namespace weft::rt;

TimeLineRecorder::TimeLineRecorder(std::span<const Program> programs, const Options &options)
    : programs(programs), options(options) {}

/// Returns the number of times that a rank records.
size_t TimeLineRecorder::countOf(int64_t rank) const {
  const Program &program = programOf(programs, rank);
  return std::ranges::binary_search(scope.ranks, rank)
             ? size_t(steps.count()) * Expansion(program, program.step).size()
             : 0;
}

uint64_t TimeLineRecorder::bytes() const {
  uint64_t count = 0;
  for (int64_t rank = here.first; isOn() && here.has(rank); ++rank) {
    count += countOf(rank);
  }
  return count * sizeof(InstructionTime);
}

Status TimeLineRecorder::open(int64_t firstStep, int64_t endStep, RankRange ranksHere) {
  if (!isOn()) {
    return {};
  }
  here = ranksHere;
  steps = options.timeLineSteps.value_or(StepRange{endStep - 1, endStep - 1});
  if (firstStep == endStep) {
    return makeError("--timeline has nothing to show, since this run does no step");
  }
  if (steps.first < firstStep || steps.last >= endStep) {
    return makeError("--timeline-steps is ", steps.first, "-", steps.last,
                     ", expected steps of this run, from ", firstStep, " to before ", endStep);
  }
  Result<std::vector<int64_t>> ranks = parseRanks(options.timeLineRanks, programs);
  if (!ranks) {
    return makeError("--timeline-ranks: ", ranks.error().message);
  }
  scope = {*ranks, options.timeLineHasInstructions};
  return here.has(0) ? checkWritable(options.timeLine) : Status();
}

void TimeLineRecorder::allocate() {
  recordings.resize(isOn() ? size_t(here.count) : 0);
  for (size_t i = 0; i < recordings.size(); ++i) {
    recordings[i].times.resize(countOf(here.first + int64_t(i)));
  }
}

void TimeLineRecorder::prepareRank(Communicator &communicator) {
  if (isOn()) {
    of(communicator.rank()).clocks.prepare(communicator, programs.front().rankCount());
  }
}

void TimeLineRecorder::beginStep(int64_t rank, int64_t step, StepTimes &times) {
  if (!isOn()) {
    return;
  }
  std::span<InstructionTime> own = of(rank).times;
  const size_t count = own.size() / size_t(steps.count());
  times.keepCourse(steps.has(step) ? own.subspan(size_t(step - steps.first) * count, count)
                                   : std::span<InstructionTime>());
}

/// Clocks are compared once, right behind the steps that are shown.
bool TimeLineRecorder::endStep(int64_t step, Communicator &communicator) {
  return !isOn() || step != steps.last || of(communicator.rank()).clocks.pass(communicator);
}

/// The times that the ranks of a trace have, on the clock of rank 0.
struct TimeLineRecorder::Collected {
  ClockBarriers::Barriers first;
  std::vector<std::vector<InstructionTime>> times;
  int64_t error = 0;

  void add(int64_t rank, const ClockBarriers::Barriers &barriers,
           std::vector<InstructionTime> own) {
    if (rank == 0) {
      first = barriers;
    }
    if (own.empty()) {
      return;
    }
    const ClockDifference clock = compareClocks(first, barriers);
    for (InstructionTime &time : own) {
      time.begin -= clock.ahead;
      time.end -= clock.ahead;
    }
    error = std::max(error, clock.error);
    times.push_back(std::move(own));
  }

  /// Lets the first time of all be 0.
  void startAtZero() {
    int64_t earliest = std::numeric_limits<int64_t>::max();
    for (const std::vector<InstructionTime> &own : times) {
      for (const InstructionTime &time : own) {
        earliest = std::min(earliest, time.begin);
      }
    }
    for (std::vector<InstructionTime> &own : times) {
      for (InstructionTime &time : own) {
        time.begin -= earliest;
        time.end -= earliest;
      }
    }
  }
};

bool TimeLineRecorder::collect(Communicator &communicator, Collected &collected) {
  const Recording &own = of(communicator.rank());
  const ClockBarriers::Barriers &barriers = own.clocks.all();
  const size_t head = sizeof barriers, tail = own.times.size() * sizeof(InstructionTime);
  std::vector<char> bytes(head + tail);
  std::memcpy(bytes.data(), barriers.data(), head);
  std::copy_n(reinterpret_cast<const char *>(own.times.data()), tail, bytes.data() + head);
  return communicator.collect(bytes, [&](int64_t rank, std::span<const char> other) {
    std::vector<InstructionTime> times(countOf(rank));
    const size_t expected = head + times.size() * sizeof(InstructionTime);
    if (!hasSize(communicator, rank, other, expected)) {
      return;
    }
    ClockBarriers::Barriers read;
    std::memcpy(read.data(), other.data(), head);
    std::copy_n(other.data() + head, expected - head, reinterpret_cast<char *>(times.data()));
    collected.add(rank, read, std::move(times));
  });
}

bool TimeLineRecorder::write(Communicator &communicator, std::string &told) {
  if (!isOn()) {
    return true;
  }
  Collected collected;
  if (!collect(communicator, collected)) {
    return false;
  }
  if (communicator.rank() != 0) {
    return true;
  }
  collected.startAtZero();
  std::vector<RankTimes> ranks;
  ranks.reserve(scope.ranks.size());
  for (size_t i = 0; i < scope.ranks.size(); ++i) {
    ranks.push_back({scope.ranks[i], collected.times[i]});
  }
  const std::string trace =
      drawTimeLine(programs, TraceWriter::Source::Measured, scope, ranks, steps.first);
  told += concat("the time line of ", steps.count() == 1 ? "step " : "steps ", steps.first);
  told += steps.count() == 1 ? "" : concat(" to ", steps.last);
  told += concat(" is in '", options.timeLine, "'");
  if (here.count < programs.front().rankCount()) {
    char error[64];
    std::snprintf(error, sizeof error, ", clocks of ranks agree within %.3f ms",
                  1e-6 * double(collected.error));
    told += error;
  }
  told += "\n";
  return communicator.check(writeFile(options.timeLine, trace));
}
