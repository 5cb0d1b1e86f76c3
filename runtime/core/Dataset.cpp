//===- Dataset.cpp - training samples from a file of bytes ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Dataset.h"

#include "core/Permutation.h"
#include "core/Text.h"

#include <algorithm>

using namespace weft::rt;

bool Dataset::open(const std::string &path, int64_t sequenceLength, int64_t vocabulary,
                   uint64_t seed, std::string &error) {
  if (!file.open(path, error)) {
    return false;
  }
  std::span<const char> bytes = file.bytes();
  if (bytes.empty()) {
    return fail(error, "the data file '", path, "' is empty");
  }
  uint64_t needed = uint64_t(sequenceLength) + 1;
  if (bytes.size() < needed) {
    return fail(error, "the data file '", path, "' has ", bytes.size(), " bytes, one sample needs ",
                needed, " (the sequence length and one more)");
  }
  if (vocabulary < 256) {
    auto unknown = std::find_if(bytes.begin(), bytes.end(),
                                [&](char byte) { return uint8_t(byte) >= vocabulary; });
    if (unknown != bytes.end()) {
      return fail(error, "the data file '", path, "' has the value ", int(uint8_t(*unknown)),
                  " at offset ", unknown - bytes.begin(), ", the model's vocabulary is 0 to ",
                  vocabulary - 1);
    }
  }
  this->sequenceLength = sequenceLength;
  this->seed = seed;
  samples = (bytes.size() - 1) / uint64_t(sequenceLength);
  return true;
}

uint64_t Dataset::sampleAt(uint64_t index) const {
  constexpr uint64_t stream = streamOf("data order");
  Permutation order(samples, randomBits(seed, stream, index / samples));
  return order(index % samples);
}

void Dataset::fill(int64_t step, int64_t batch, std::span<const int64_t> shape,
                   std::span<const int64_t> offset, int64_t shift, int32_t *out) const {
  for (int64_t row = 0; row < shape[0]; ++row) {
    uint64_t sample = sampleAt(uint64_t(step * batch + offset[0] + row));
    const char *tokens =
        file.bytes().data() + sample * uint64_t(sequenceLength) + offset[1] + shift;
    for (int64_t column = 0; column < shape[1]; ++column) {
      *out++ = uint8_t(tokens[column]);
    }
  }
}
