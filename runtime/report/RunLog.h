//===- RunLog.h - what a run tells about itself -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keeps the numbers of the steps that are done, prints them and writes the
// metrics file. Belongs to rank 0's thread while ranks run. A step allocates
// nothing here, up to the first million steps.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_RUNLOG_H
#define WEFT_RT_REPORT_RUNLOG_H

#include "report/Metrics.h"
#include "report/ReportOptions.h"
#include "support/OutputFile.h"
#include "weft-rt/Program.h"

#include <chrono>
#include <vector>

namespace weft::rt {

class RunLog {
public:
  RunLog(const Program &program, const ReportOptions &options)
      : program(program), options(options), stepPeak(program.stepPeakFlopsPerRank()) {}

  /// Whether a metrics file that is there is begun anew, or keeps what it tells of earlier steps.
  enum class MetricsFile : uint8_t { Anew, Continued };

  /// The run will do the steps from `firstStep` to before `endStep`.
  bool open(int64_t firstStep, int64_t endStep, MetricsFile how, std::string &error);

  void beginStep();
  /// The step that runs now has come to a loss, a gradient norm.
  void setLoss(double value) { loss = value; }
  void setGradientNorm(double value) { gradientNorm = value; }
  void setLossScale(double value) { lossScale = value; }
  /// How often a token was dropped, by the number of an observation; others are passed over.
  void setDropped(uint32_t observation, double value);
  bool endStep(std::string &error);

  void beginValidation();
  /// One more batch of the validation that runs now has come to a loss.
  void addValidationLoss(double value);
  /// Tells about the validation before the step that comes next. REQUIRES: at least one batch.
  bool endValidation(std::string &error);

  /// The step that runs now, or the next one.
  int64_t currentStep() const { return step; }

  /// Waits until the metrics so far are on disk.
  bool sync(std::string &error) { return !metrics.isOpen() || metrics.sync(error); }

  /// Closes the metrics file.
  bool close(std::string &error) { return metrics.close(error); }

  /// What is wrong with the current step: "loss is nan".
  std::string notFiniteText() const;

  /// Loss curve, speed and memory, for the end of a run.
  std::string summary() const;

  /// Prints unless the user wants silence.
  bool tell(std::span<const char> text, std::string &error) const;

private:
  using Clock = std::chrono::steady_clock;

  struct Drops {
    uint32_t observation;
    std::string_view layer;
    double count;
  };

  bool writeDrops(std::string &error);

  const Program &program;
  const ReportOptions &options;
  const double stepPeak;
  StreamFile metrics;
  int64_t first = 0, end = 0, step = 0;
  std::optional<double> loss, gradientNorm, lossScale;
  std::vector<double> losses;
  /// Of each layer that counts them.
  std::vector<Drops> drops;
  Clock::time_point runBegin, firstEnd, stepBegin, lastEnd, validationBegin;
  /// The batches of the validation that runs now.
  double validationSum = 0;
  int64_t validationBatches = 0;
  /// What all validations took, and what those before `lastEnd` did: no time of training.
  double validationSeconds = 0, pausedSeconds = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_REPORT_RUNLOG_H
