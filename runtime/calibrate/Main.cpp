//===- Main.cpp - measures this host, for weft calibrate -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "calibrate/DeviceMeasurements.h"
#include "support/ParseNumber.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

using namespace weft::rt::calibrate;

/// Reads a number, 0 or more; `weft calibrate` has checked what users type.
template <typename T> static bool readNumber(std::string_view text, T &number) {
  return weft::rt::parseNumber(text, number) && number >= 0;
}

/// weft-rt-calibrate RANKS SECONDS [cuda]: prints measurements as JSON on standard output, progress
/// on standard error. The ranks share the processors, or with cuda have a device each. With RANKS 0
/// there is one rank for each processor or device.
int main(int argc, char **argv) {
  Plan plan;
  bool isOnDevices = argc == 4 && std::string_view(argv[3]) == "cuda";
  if ((argc != 3 && !isOnDevices) || !readNumber(argv[1], plan.ranks) ||
      !readNumber(argv[2], plan.seconds) || plan.ranks > 1024) {
    std::fprintf(stderr, "usage: weft-rt-calibrate RANKS SECONDS [cuda]; see weft calibrate\n");
    return 1;
  }
  int64_t processors = weft::rt::countProcessors();
  if (!isOnDevices) {
    plan.ranks = plan.ranks ? plan.ranks : std::min<int64_t>(processors, 1024);
    plan.threads = std::max<int64_t>(1, processors / plan.ranks);
  }
  auto tell = [](const std::string &text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  weft::rt::Result<Measurements> measurements =
      isOnDevices ? measureDevices(plan, tell) : measure(plan, tell);
  if (!measurements) {
    std::fprintf(stderr, "error: %s\n", measurements.error().message.c_str());
    return 1;
  }
  std::string text = toJson(plan, *measurements);
  bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) {
    std::fprintf(stderr, "error: cannot write to standard output\n");
  }
  return written ? 0 : 1;
}
