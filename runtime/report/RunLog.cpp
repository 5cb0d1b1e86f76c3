//===- RunLog.cpp - prints and records the progress of a run --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/RunLog.h"

#include "report/LossCurve.h"
#include "report/MemoryReport.h"
#include "support/Text.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <unistd.h>

using namespace weft::rt;

static double secondsBetween(std::chrono::steady_clock::time_point begin,
                             std::chrono::steady_clock::time_point end) {
  // Never 0, so that rates are finite.
  return std::max(std::chrono::duration<double>(end - begin).count(), 1e-9);
}

static const char *unitOf(const Program &program) {
  return program.sequenceLength > 0 ? "tokens" : "images";
}

static double unitsPerStep(const Program &program) {
  return double(program.globalBatch) * double(std::max<int64_t>(program.sequenceLength, 1));
}

Status RunLog::open(int64_t firstStep, int64_t endStep, MetricsFile how) {
  first = step = firstStep;
  end = endStep;
  losses.reserve(size_t(std::min<int64_t>(end - first, 1 << 20)));
  constexpr std::string_view prefix = "dropped/";
  for (uint32_t i = 0; i < program.observations.size(); ++i) {
    std::string_view name = program.observations[i].name;
    if (name.starts_with(prefix)) {
      drops.push_back({i, name.substr(prefix.size()), 0});
    }
  }
  if (options.metrics.empty()) {
    return {};
  }
  Result<uint64_t> keep =
      how == MetricsFile::Anew ? Result<uint64_t>(0) : metricsBefore(options.metrics, first);
  return keep ? metrics.open(options.metrics, *keep) : keep.error();
}

void RunLog::beginStep() {
  loss.reset();
  gradientNorm.reset();
  lossScale.reset();
  stepBegin = Clock::now();
  if (step == first) {
    runBegin = stepBegin;
  }
}

void RunLog::setDropped(uint32_t observation, double value) {
  for (Drops &layer : drops) {
    if (layer.observation == observation) {
      layer.count = value;
    }
  }
}

Status RunLog::record(const Line &line) {
  return metrics.isOpen() ? metrics.write(line.text()) : Status();
}

Status RunLog::endStep() {
  lastEnd = Clock::now();
  if (step == first) {
    firstEnd = lastEnd;
  }
  StepMetrics line;
  line.step = step;
  line.steps = end;
  line.loss = loss;
  line.isSkipped = gradientNorm && *gradientNorm < 0;
  line.gradientNorm = line.isSkipped ? std::nullopt : gradientNorm;
  line.lossScale = lossScale;
  line.seconds = secondsBetween(stepBegin, lastEnd);
  line.unit = unitOf(program);
  line.unitsPerSecond = unitsPerStep(program) / line.seconds;
  if (stepPeak > 0) {
    line.peakShare = program.stepFlops / (line.seconds * stepPeak * double(program.rankCount()));
  }
  for (const Drops &layer : drops) {
    line.dropped = line.dropped.value_or(0) + layer.count;
  }
  if (loss) {
    losses.push_back(*loss);
  }
  for (const Drops &layer : drops) {
    if (Status status = record(jsonLine(DropMetrics{step, layer.layer, layer.count})); !status) {
      return status;
    }
  }
  pausedSeconds = validationSeconds;
  ++step;
  if (!options.noProgress) {
    if (Status status = tell(humanLine(line).text()); !status) {
      return status;
    }
  }
  return record(jsonLine(line));
}

void RunLog::beginValidation() {
  validationBegin = Clock::now();
  validationSum = 0;
  validationBatches = 0;
}

void RunLog::addValidationLoss(double value) {
  validationSum += value;
  ++validationBatches;
}

Status RunLog::endValidation() {
  // All batches have the same number of tokens.
  ValidationMetrics line = {step, validationSum / double(validationBatches),
                            secondsBetween(validationBegin, Clock::now())};
  validationSeconds += line.seconds;
  if (Status status = tell(humanLine(line).text()); !status) {
    return status;
  }
  return record(jsonLine(line));
}

std::string RunLog::notFiniteText() const {
  std::string text;
  if (loss && !std::isfinite(*loss)) {
    text = concat("loss is ", *loss);
  }
  if (gradientNorm && !std::isfinite(*gradientNorm)) {
    text += concat(text.empty() ? "" : ", ", "gradient norm is ", *gradientNorm);
  }
  return text.empty() ? "loss or gradient norm is not finite on a rank other than 0" : text;
}

std::string RunLog::summary() const {
  std::string text;
  if (options.curve || isatty(STDOUT_FILENO)) {
    text += drawLossCurve(losses, first);
  }
  int64_t steps = step - first;
  if (steps > 0) {
    Line line;
    line.append("%lld steps in %.2f s", static_cast<long long>(steps),
                std::max(secondsBetween(runBegin, lastEnd) - pausedSeconds, 1e-9));
    if (steps > 1) {
      line.append(", %.0f %s/s without the first",
                  unitsPerStep(program) * double(steps - 1) /
                      std::max(secondsBetween(firstEnd, lastEnd) - pausedSeconds, 1e-9),
                  unitOf(program));
    }
    line.append("\n");
    text.append(line.text().data(), line.text().size());
  }
  return text + memoryReport(program);
}

Status RunLog::tell(std::span<const char> text) const {
  if (options.quiet || text.empty() ||
      (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
       std::fflush(stdout) == 0)) {
    return {};
  }
  return makeError("cannot write to standard output: ", systemError(errno));
}
