//===- Metrics.h - what is told about a step --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_METRICS_H
#define WEFT_RT_REPORT_METRICS_H

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace weft::rt {

struct StepMetrics {
  /// Counted from 0; `steps` is one more than the last.
  int64_t step = 0, steps = 0;
  /// Absent if the program does not observe them.
  std::optional<double> loss, gradientNorm;
  double seconds = 0;
  /// What samples are counted in: "tokens" or "images".
  const char *unit = "tokens";
  double unitsPerSecond = 0;
  /// Useful operations done, of those that the devices could have done in the time; absent if the
  /// program does not know the peak.
  std::optional<double> peakShare;
  /// How often a token was dropped at an expert, in all layers together; absent if the program does
  /// not count.
  std::optional<double> dropped = std::nullopt;
  /// What the loss was multiplied by for the gradients, and whether these were not finite, so that
  /// nothing was updated; absent and false in programs without a scale.
  std::optional<double> lossScale = std::nullopt;
  bool isSkipped = false;
};

/// How often a token was dropped at an expert of one layer.
struct DropMetrics {
  int64_t step = 0;
  std::string_view layer;
  double count = 0;
};

struct ValidationMetrics {
  /// Steps that were done before.
  int64_t step = 0;
  /// Mean over all tokens looked at.
  double loss = 0;
  double seconds = 0;
};

/// One line of text in a fixed place.
class Line {
public:
  std::span<const char> text() const { return {characters.data(), length}; }

  /// As printf does. Longer lines are cut off.
  [[gnu::format(printf, 2, 3)]] void append(const char *format, ...);

private:
  std::array<char, 512> characters;
  size_t length = 0;
};

/// How many bytes at the beginning of a metrics file tell of steps before `step`: 0 if there is no
/// such file, or if it is a device or pipe. Fails if a line is not one of metrics; what stands
/// behind the last line's end is passed over, as a killed run leaves it.
bool metricsBefore(const std::string &path, int64_t step, uint64_t &bytes, std::string &error);

/// For people: "step 3/100  loss 5.4321  ...".
Line humanLine(const StepMetrics &metrics);
/// "validation step 100 loss 4.321".
Line humanLine(const ValidationMetrics &metrics);

/// For programs: a JSON object; numbers read back as the same bits, unknown ones are null.
Line jsonLine(const StepMetrics &metrics);
Line jsonLine(const DropMetrics &metrics);
Line jsonLine(const ValidationMetrics &metrics);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_METRICS_H
