//===- Programs.cpp - programs as an executable carries them --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are the part after the header, which gets the right checksum, since readers
// refuse all other files. MakePrograms.cpp writes the first inputs.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "report/MemoryReport.h"
#include "support/Random.h"
#include "weft-rt/Program.h"

#include <cstring>
#include <string_view>

using namespace weft::rt;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view payload(reinterpret_cast<const char *>(data), size);
  std::vector<char> bytes = {'W', 'E', 'F', 'T', 'P', 'R', 'O', 'G'};
  auto append = [&](auto number) {
    bytes.resize(bytes.size() + sizeof number);
    std::memcpy(bytes.data() + bytes.size() - sizeof number, &number, sizeof number);
  };
  append(uint32_t(Program::kVersion));
  append(uint64_t(size));
  append(streamOf(payload)); // The same hash.
  bytes.insert(bytes.end(), payload.begin(), payload.end());

  Result<Programs> programs = deserialize(bytes);
  if (!programs) {
    require(!programs.error().message.empty(), "an error says something");
    return 0;
  }
  require(serialize(*programs) == bytes, "programs that were read are written as they were");
  for (const Program &program : *programs) {
    toText(program);
    memoryReport(program);
  }
  return 0;
}
