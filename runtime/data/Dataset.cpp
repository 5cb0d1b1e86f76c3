//===- Dataset.cpp - training samples from files of tokens ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/Dataset.h"

#include "data/Permutation.h"
#include "support/Text.h"

#include <algorithm>
#include <array>

using namespace weft::rt;

/// Tokens that are checked at once, on the stack.
static constexpr size_t kChunk = 1024;

Status Dataset::open(const std::string &path, std::optional<DataFormat> format,
                     int64_t sequenceLength, int64_t vocabulary,
                     std::optional<int64_t> documentEnd) {
  Result<std::unique_ptr<TokenSource>> opened = openTokens(path, format);
  if (!opened) {
    return opened.error();
  }
  tokens = std::move(*opened);
  uint64_t count = tokens->tokenCount(), needed = uint64_t(sequenceLength) + 1;
  if (count < needed) {
    return makeError("the data file '", path, "' has ", count, " tokens, one sample needs ", needed,
                     " (the sequence length and one more)");
  }
  this->path = path;
  this->sequenceLength = sequenceLength;
  this->vocabulary = vocabulary;
  this->documentEnd = documentEnd;
  samples = (count - 1) / uint64_t(sequenceLength);
  if (count <= kCheckedAtOpen) {
    return checkAll();
  }
  return {};
}

Status Dataset::check(uint64_t first, std::span<const int64_t> numbers) const {
  auto unknown = std::find_if(numbers.begin(), numbers.end(),
                              [&](int64_t number) { return number < 0 || number >= vocabulary; });
  if (unknown == numbers.end()) {
    return {};
  }
  return makeError("the data file '", path, "' has the token ", *unknown, " at position ",
                   first + uint64_t(unknown - numbers.begin()), ", the model's vocabulary is 0 to ",
                   vocabulary - 1);
}

Status Dataset::checkAll() const {
  std::array<int64_t, kChunk> chunk;
  for (uint64_t first = 0; first < tokens->tokenCount(); first += kChunk) {
    auto some = std::span(chunk).first(std::min<uint64_t>(kChunk, tokens->tokenCount() - first));
    tokens->read(first, some);
    if (Status status = check(first, some); !status) {
      return status;
    }
  }
  tokens->release(0, tokens->tokenCount());
  return {};
}

Status Dataset::read(uint64_t sample, int64_t first, std::span<int32_t> out) const {
  std::array<int64_t, kChunk> chunk;
  uint64_t place = sample * uint64_t(sequenceLength) + uint64_t(first);
  while (!out.empty()) {
    auto some = std::span(chunk).first(std::min(kChunk, out.size()));
    tokens->read(place, some);
    if (Status status = check(place, some); !status) {
      return status;
    }
    std::transform(some.begin(), some.end(), out.begin(), [](int64_t token) { return token; });
    out = out.subspan(some.size());
    place += some.size();
  }
  return {};
}

void Dataset::readStarts(uint64_t sample, int64_t first, std::span<int32_t> out) const {
  std::array<int64_t, kChunk> chunk;
  int64_t end = first + int64_t(out.size()), start = 0;
  for (int64_t place = 0; place < end; place += int64_t(kChunk)) {
    auto some = std::span(chunk).first(size_t(std::min(end - place, int64_t(kChunk))));
    tokens->read(sample * uint64_t(sequenceLength) + uint64_t(place), some);
    for (size_t i = 0; i < some.size(); ++i) {
      int64_t at = place + int64_t(i);
      if (at >= first) {
        out[size_t(at - first)] = int32_t(start);
      }
      start = some[i] == documentEnd ? at + 1 : start;
    }
  }
}

std::string Dataset::describe() const {
  return concat("'", path, "', ", nameOf(tokens->format()), ": ", tokens->tokenCount(), " tokens, ",
                samples, " samples");
}

uint64_t Sampler::sampleAt(uint64_t index) const {
  if (!seed) {
    return begin + index;
  }
  constexpr uint64_t stream = streamOf("data order");
  Permutation order(count, randomBits(*seed, stream, index / count));
  return begin + order(index % count);
}

Status Dataset::readRow(uint64_t sample, const InputShard &shard, char *out) const {
  Status status = readField(sample, shard, out);
  tokens->release(sample * uint64_t(sequenceLength), uint64_t(sequenceLength) + 1);
  return status;
}

Status Dataset::readField(uint64_t sample, const InputShard &shard, char *out) const {
  auto *ids = reinterpret_cast<int32_t *>(out);
  if (shard.field == DataField::DocumentStarts) {
    std::span<int32_t> row(ids, size_t(shard.shape[1]));
    int64_t last = std::min(shard.offset[1] + shard.shape[1], sequenceLength) - 1;
    int64_t first = std::min(shard.offset[1], last);
    auto read = row.first(size_t(last - first + 1));
    readStarts(sample, first, read);
    std::fill(row.begin() + int64_t(read.size()), row.end(), read.back());
    return {};
  }
  int64_t shift = shard.field == DataField::Targets ? 1 : 0;
  return read(sample, shard.offset[1] + shift, {ids, size_t(shard.filled[1])});
}

Status Sampler::fill(int64_t number, int64_t batch, const InputShard &shard, char *out) const {
  for (int64_t row = 0; row < shard.shape[0]; ++row) {
    // Padding rows are copies of the last sample, so that the model gets valid input.
    uint64_t sample = sampleAt(uint64_t(number * batch + std::min(shard.sampleOf(row), batch - 1)));
    if (Status status = source->readRow(sample, shard, out + size_t(row) * shard.rowBytes());
        !status) {
      return status;
    }
  }
  return {};
}
