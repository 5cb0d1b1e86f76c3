//===- Metrics.cpp - formats a step's metrics -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/Metrics.h"

#include "support/Json.h"
#include "support/MappedFile.h"
#include "support/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <sys/stat.h>

using namespace weft::rt;

void Line::append(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int written =
      std::vsnprintf(characters.data() + length, characters.size() - length, format, arguments);
  va_end(arguments);
  length = std::min(length + size_t(std::max(written, 0)), characters.size() - 1);
}

Line weft::rt::humanLine(const StepMetrics &metrics) {
  Line line;
  int digits = std::snprintf(nullptr, 0, "%lld", static_cast<long long>(metrics.steps));
  line.append("step %*lld/%lld", digits, static_cast<long long>(metrics.step),
              static_cast<long long>(metrics.steps));
  if (metrics.loss) {
    line.append("  loss %.6f", *metrics.loss);
  }
  if (metrics.gradientNorm) {
    line.append("  gradient norm %.4g", *metrics.gradientNorm);
  }
  if (metrics.isSkipped) {
    line.append("  skipped at loss scale %.0f", metrics.lossScale.value_or(0));
  }
  line.append("  %.1f ms  %.0f %s/s", metrics.seconds * 1e3, metrics.unitsPerSecond, metrics.unit);
  if (metrics.peakShare) {
    line.append("  %.1f%% of peak", *metrics.peakShare * 100);
  }
  if (metrics.dropped) {
    line.append("  %.0f dropped", *metrics.dropped);
  }
  line.append("\n");
  return line;
}

Line weft::rt::humanLine(const ValidationMetrics &metrics) {
  Line line;
  line.append("validation step %lld loss %.6f\n", static_cast<long long>(metrics.step),
              metrics.loss);
  return line;
}

/// The key is `key` and `rest`.
static void appendNumber(Line &line, const char *key, const std::optional<double> &value,
                         const char *rest = "") {
  if (value && std::isfinite(*value)) {
    line.append(", \"%s%s\": %.17g", key, rest, *value);
  } else {
    line.append(", \"%s%s\": null", key, rest);
  }
}

Line weft::rt::jsonLine(const StepMetrics &metrics) {
  Line line;
  line.append("{\"step\": %lld", static_cast<long long>(metrics.step));
  appendNumber(line, "loss", metrics.loss);
  appendNumber(line, "gradient_norm", metrics.gradientNorm);
  appendNumber(line, "ms", metrics.seconds * 1e3);
  appendNumber(line, metrics.unit, metrics.unitsPerSecond, "_per_second");
  appendNumber(line, "peak_share", metrics.peakShare);
  if (metrics.lossScale) {
    appendNumber(line, "loss_scale", metrics.lossScale);
  }
  if (metrics.dropped) {
    appendNumber(line, "dropped", metrics.dropped);
  }
  line.append("}\n");
  return line;
}

Line weft::rt::jsonLine(const DropMetrics &metrics) {
  Line line;
  line.append("{\"step\": %lld, \"layer\": \"%.*s\"", static_cast<long long>(metrics.step),
              static_cast<int>(metrics.layer.size()), metrics.layer.data());
  appendNumber(line, "dropped", metrics.count);
  line.append("}\n");
  return line;
}

Line weft::rt::jsonLine(const ValidationMetrics &metrics) {
  Line line;
  line.append("{\"step\": %lld", static_cast<long long>(metrics.step));
  appendNumber(line, "validation_loss", metrics.loss);
  appendNumber(line, "ms", metrics.seconds * 1e3);
  line.append("}\n");
  return line;
}

/// Returns the step of a line of metrics; nothing for other lines.
static std::optional<int64_t> stepOf(std::string_view line) {
  Result<nlohmann::json> fields = parseObject(line, "a line");
  return fields && fields->contains("step") ? readCount(fields->at("step")) : std::nullopt;
}

Result<uint64_t> weft::rt::metricsBefore(const std::string &path, int64_t step) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return uint64_t(0);
  }
  MappedFile file;
  if (Status status = file.open(path); !status) {
    return status.error();
  }
  std::string_view text(file.bytes().data(), file.bytes().size());
  uint64_t bytes = 0;
  int64_t number = 1;
  for (size_t end; (end = text.find('\n', bytes)) != std::string_view::npos; bytes = end + 1) {
    std::optional<int64_t> told = stepOf(text.substr(bytes, end - bytes));
    if (!told) {
      return makeError("'", path, "' is not a metrics file to continue: line ", number,
                       " is not a line of metrics");
    }
    if (*told >= step) {
      return bytes;
    }
    ++number;
  }
  return bytes;
}
