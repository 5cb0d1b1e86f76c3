//===- RunLog.h - prints and records the progress of a run ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Collects the numbers of finished steps, prints them and writes the metrics file.
// Belongs to rank 0's thread while ranks run. A step allocates nothing here, up to
// the first million steps.
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

  /// Whether to overwrite an existing metrics file, or to keep its lines on earlier steps.
  enum class MetricsFile : uint8_t { Anew, Continued };

  /// Opens the metrics file for a run of the steps `firstStep` to `endStep - 1`.
  Status open(int64_t firstStep, int64_t endStep, MetricsFile how);

  void beginStep();
  /// Set the values of the running step.
  void setLoss(double value) { loss = value; }
  void setGradientNorm(double value) { gradientNorm = value; }
  void setLossScale(double value) { lossScale = value; }
  /// Sets the number of dropped tokens of an observation; ignores observations of other values.
  void setDropped(uint32_t observation, double value);
  Status endStep();

  void beginValidation();
  /// Adds the loss of one more batch of the running validation.
  void addValidationLoss(double value);
  /// Reports the validation that precedes the next step. REQUIRES: at least one batch.
  Status endValidation();

  /// Returns the running step, or the next one between steps.
  int64_t currentStep() const { return step; }

  /// Waits until all metrics so far are on disk.
  Status sync() { return metrics.isOpen() ? metrics.sync() : Status(); }

  /// Closes the metrics file.
  Status close() { return metrics.close(); }

  /// Returns the fault of the current step: "loss is nan".
  std::string notFiniteText() const;

  /// Returns the loss curve, speed and memory, for the end of a run.
  std::string summary() const;

  /// Prints `text`, unless the user chose --quiet.
  Status tell(std::span<const char> text) const;

private:
  using Clock = std::chrono::steady_clock;

  struct Drops {
    uint32_t observation;
    std::string_view layer;
    double count;
  };

  /// Writes a line to the metrics file, if there is one.
  Status record(const Line &line);

  const Program &program;
  const ReportOptions &options;
  const double stepPeak;
  StreamFile metrics;
  int64_t first = 0, end = 0, step = 0;
  std::optional<double> loss, gradientNorm, lossScale;
  std::vector<double> losses;
  /// One entry for each layer that counts drops.
  std::vector<Drops> drops;
  Clock::time_point runBegin, firstEnd, stepBegin, lastEnd, validationBegin;
  /// The sum of losses and the number of batches of the running validation.
  double validationSum = 0;
  int64_t validationBatches = 0;
  /// The seconds of all validations, and of those before `lastEnd`: these are no training time.
  double validationSeconds = 0, pausedSeconds = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_REPORT_RUNLOG_H
