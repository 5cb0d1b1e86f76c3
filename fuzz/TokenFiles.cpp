//===- TokenFiles.cpp - files of tokens, of every format ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte chooses how the rest is opened: 0 as text.txt, 1 as tokens.bin, 2 to 4
// with the format bytes, nanogpt or llmc; else as Megatron's two files, where the next two
// bytes are the index's size.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "data/Dataset.h"
#include "tests/TemporaryFolder.h"

#include <algorithm>
#include <string_view>

using namespace weft::rt;

static constexpr int64_t kSequence = 4, kVocabulary = 60000;

/// Reads all samples, or the first thousand.
static void readSamples(const Dataset &data) {
  int32_t tokens[kSequence + 1];
  for (uint64_t sample = 0; sample < std::min<uint64_t>(data.sampleCount(), 1000); ++sample) {
    // Small files were checked as a whole.
    require(bool(data.read(sample, 0, tokens)), "samples of an open file can be read");
    for (int32_t token : tokens) {
      require(token >= 0 && token < kVocabulary, "tokens lie in the vocabulary");
    }
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const TemporaryFolder folder;
  if (size < 3) {
    return 0;
  }
  std::string_view rest(reinterpret_cast<const char *>(data) + 1, size - 1);
  std::string path = folder.file("text.txt");
  std::optional<DataFormat> format;
  if (data[0] <= 4) {
    path = data[0] == 1 ? folder.file("tokens.bin") : path;
    format = data[0] >= 2 ? std::optional(DataFormat(data[0] - 2)) : std::nullopt;
    folder.write(std::filesystem::path(path).filename(), std::string(rest));
  } else {
    size_t length = std::min<size_t>(data[1] | data[2] << 8, size - 3);
    folder.write("m.idx", std::string(rest.substr(2, length)));
    folder.write("m.bin", std::string(rest.substr(2 + length)));
    path = folder.file("m");
  }
  Dataset dataset;
  if (Status status = dataset.open(path, format, kSequence, kVocabulary); !status) {
    const std::string &message = status.error().message;
    require(!message.empty() && message.find('\n') == std::string::npos, "an error is one line");
  } else {
    readSamples(dataset);
  }
  return 0;
}
