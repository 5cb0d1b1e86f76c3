//===- TimeLineReport.cpp - writes the predicted course of a step ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/TimeLineReport.h"

#include "report/TimeLine.h"
#include "support/Text.h"
#include "weft/Driver/CommandLine.h"
#include "weft/Driver/OutputFile.h"
#include "weft/Driver/Report.h"
#include "weft/Schedule/Timeline.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace weft;

namespace {

/// The predicted course of a step: its seconds, and when the ranks of each class run each
/// instruction.
struct PredictedStep {
  double seconds = 0;
  std::vector<std::vector<rt::InstructionTime>> classes;
};

int64_t nanosecondsOf(double seconds) { return std::llround(seconds * 1e9); }

PredictedStep predictStep(std::span<const rt::Program> programs) {
  PredictedStep step;
  step.classes.resize(programs.size());
  auto courses = schedule::predictCourse(
      programs, &rt::Program::step,
      [&](uint32_t rankClass, size_t, std::span<const schedule::InstructionSpan> instructions) {
        for (const schedule::InstructionSpan &span : instructions) {
          const int64_t arrival = nanosecondsOf(span.arrival);
          step.classes[rankClass].push_back(
              {arrival, nanosecondsOf(span.end), nanosecondsOf(span.begin) - arrival});
        }
      });
  for (const schedule::ClassCourse &course : courses) {
    step.seconds = std::max(step.seconds, course.end());
  }
  return step;
}

/// Returns "rank 0" or "ranks 0, 2".
std::string namesOf(const std::vector<int64_t> &ranks) {
  std::string names = ranks.size() == 1 ? "rank" : "ranks";
  for (int64_t rank : ranks) {
    names += rt::concat(rank == ranks.front() ? " " : ", ", rank);
  }
  return names;
}

} // namespace

llvm::Error weft::writeTimeLine(llvm::raw_ostream &os, std::span<const rt::Program> programs,
                                const TimeLineRequest &request) {
  rt::Result<std::vector<int64_t>> ranks = rt::parseRanks(request.ranks, programs);
  if (!ranks) {
    return makeError("--timeline-ranks: " + ranks.error().message);
  }
  llvm::Expected<OutputFile> file = OutputFile::create(request.file);
  if (!file) {
    return file.takeError();
  }
  const rt::TimeLineScope scope = {*ranks, request.detail == "instructions"};
  const PredictedStep step = predictStep(programs);
  std::vector<rt::RankTimes> times;
  times.reserve(scope.ranks.size());
  for (int64_t rank : scope.ranks) {
    times.push_back({rank, step.classes[rt::programOf(programs, rank).rankClass]});
  }
  const std::string trace =
      rt::drawTimeLine(programs, rt::TraceWriter::Source::Predicted, scope, times, 0);
  if (llvm::Error error = file->write(trace)) {
    return error;
  }
  if (llvm::Error error = file->commit()) {
    return error;
  }
  os << programs.front().modelName << ", a step of " << secondsText(step.seconds)
     << " as predicted, on " << namesOf(scope.ranks) << ": " << rt::bytesText(trace.size())
     << " in '" << request.file << "', for ui.perfetto.dev\n";
  return llvm::Error::success();
}
