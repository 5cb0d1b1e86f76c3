//===- MetricsFiles.cpp - metrics files that a run continues ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "report/Metrics.h"
#include "tests/TemporaryFolder.h"

using namespace weft::rt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TemporaryFolder folder;
  std::string text(reinterpret_cast<const char *>(data), size);
  folder.write("metrics", text);
  uint64_t before = 0;
  for (int64_t step : {0, 3, 1000}) {
    Result<uint64_t> bytes = metricsBefore(folder.file("metrics"), step);
    if (!bytes) {
      require(!bytes.error().message.empty(), "an error says something");
      continue;
    }
    require(*bytes <= size && (*bytes == 0 || text[*bytes - 1] == '\n'), "whole lines are kept");
    require(*bytes >= before, "a later step keeps what an earlier one does");
    before = *bytes;
  }
  require(folder.read("metrics") == text, "the file is only read");
  return 0;
}
