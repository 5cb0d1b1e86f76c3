//===- Metrics.h - formats a step's metrics -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_METRICS_H
#define WEFT_RT_REPORT_METRICS_H

#include "weft-rt/Status.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::rt {

struct StepMetrics {
  /// The step, counted from 0, and the total number of steps.
  int64_t step = 0, steps = 0;
  /// Absent if the program does not observe them.
  std::optional<double> loss, gradientNorm;
  double seconds = 0;
  /// The unit of throughput: "tokens" or "images".
  const char *unit = "tokens";
  double unitsPerSecond = 0;
  /// The useful operations divided by those that the devices could have done in the same time;
  /// absent if the program does not know the peak.
  std::optional<double> peakShare;
  /// The number of tokens dropped at experts, over all layers; absent if the program does not count
  /// them.
  std::optional<double> dropped = std::nullopt;
  /// The loss scale, and whether the gradients were not finite, so that the step updated nothing;
  /// absent and false in programs without a loss scale.
  std::optional<double> lossScale = std::nullopt;
  bool isSkipped = false;
};

/// The number of tokens dropped at experts of one layer.
struct DropMetrics {
  int64_t step = 0;
  std::string_view layer;
  double count = 0;
};

struct ValidationMetrics {
  /// The number of steps done before.
  int64_t step = 0;
  /// The mean over all validation tokens.
  double loss = 0;
  double seconds = 0;
};

/// A line of text in a fixed buffer; allocates nothing.
class Line {
public:
  std::span<const char> text() const { return {characters.data(), length}; }

  /// Appends text as printf does. Cuts lines that exceed the buffer.
  [[gnu::format(printf, 2, 3)]] void append(const char *format, ...);

private:
  std::array<char, 512> characters;
  size_t length = 0;
};

/// Returns the bytes of the part of a metrics file that precedes step `step`; 0 if there is no such
/// file, or for a device or pipe. Fails if a line is not a line of metrics. Ignores an unfinished
/// last line, as a killed run leaves it.
Result<uint64_t> metricsBefore(const std::string &path, int64_t step);

/// Returns a line for people: "step 3/100  loss 5.4321  ...".
Line humanLine(const StepMetrics &metrics);
/// Returns "validation step 100 loss 4.321".
Line humanLine(const ValidationMetrics &metrics);

/// Return a JSON object, for programs; numbers are exact, unknown ones null.
Line jsonLine(const StepMetrics &metrics);
Line jsonLine(const DropMetrics &metrics);
Line jsonLine(const ValidationMetrics &metrics);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_METRICS_H
