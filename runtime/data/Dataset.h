//===- Dataset.h - training samples from files of tokens ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With sequence length S, sample i of a file is its tokens i*S to i*S + S
// inclusive: the first S are the sample's tokens, the last S, shifted by one, its
// targets. n tokens make (n - 1) / S samples. Samples ignore documents: a sample
// may begin in one document and end in the next; a token that ends documents
// separates them within a sample.
//
// A Sampler takes batches from some of the samples, in the order of the file or
// shuffled. Shuffled, row b of batch s is the global sample g = s * batch + b. It
// belongs to epoch e = g / count and is the sample P(g mod count) of the sampler; P
// is the permutation of its samples with key randomBits(seed, FNV-1a("data order"),
// e). The order depends on neither ranks nor plan, and resuming needs no saved
// state.
//
// Both are immutable once made; any thread may read.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_DATASET_H
#define WEFT_RT_DATA_DATASET_H

#include "data/Samples.h"
#include "data/TokenFile.h"
#include "weft-rt/Program.h"

namespace weft::rt {

/// The samples of a file of tokens. Tokens are checked against the vocabulary when the file is
/// opened if it has at most `kCheckedAtOpen` tokens, else when a sample is read.
class Dataset : public SampleSource {
public:
  static constexpr uint64_t kCheckedAtOpen = uint64_t(1) << 24;

  /// Opens the file. Fails if it cannot be read, is not in the format (see `openTokens`), holds no
  /// whole sample, or holds a token beyond the vocabulary (as far as that is checked here).
  Status open(const std::string &path, std::optional<DataFormat> format, int64_t sequenceLength,
              int64_t vocabulary, std::optional<int64_t> documentEnd = {});

  uint64_t sampleCount() const override { return samples; }
  const char *formatName() const override { return nameOf(tokens->format()); }

  /// Writes the tokens of `sample` from its position `first` on until `out` is full. Fails at a
  /// token beyond the vocabulary. Allocates nothing unless it fails.
  Status read(uint64_t sample, int64_t first, std::span<int32_t> out) const;

  /// Writes, for each position of `sample` from `first` on, where its document begins in the
  /// sample: after the last earlier token that ends documents, or at 0. Allocates nothing.
  void readStarts(uint64_t sample, int64_t first, std::span<int32_t> out) const;

  /// "'corpus.txt', bytes: 1000 tokens, 124 samples".
  std::string describe() const override;

  /// Writes tokens, targets (shifted by one) or document starts. Padding of document starts
  /// continues the last document, so that starts never decrease along a sequence.
  Status readRow(uint64_t sample, const InputShard &shard, char *out) const override;

private:
  Status readField(uint64_t sample, const InputShard &shard, char *out) const;
  Status check(uint64_t first, std::span<const int64_t> tokens) const;
  Status checkAll() const;

  std::string path;
  std::unique_ptr<TokenSource> tokens;
  int64_t sequenceLength = 0, vocabulary = 0;
  /// None if the program has no input of document starts.
  std::optional<int64_t> documentEnd;
  uint64_t samples = 0;
};

class Sampler {
public:
  Sampler() = default;
  /// Takes samples `first` to `first + count - 1` of `source`, which must outlive the sampler,
  /// shuffled by `seed` or in the order of the file. REQUIRES: `source` has these samples, at least
  /// one.
  Sampler(const SampleSource &source, uint64_t first, uint64_t count, std::optional<uint64_t> seed)
      : source(&source), begin(first), count(count), seed(seed) {}

  uint64_t sampleCount() const { return count; }

  /// Returns the number in the file of global sample `index`. Unshuffled samplers have a single
  /// epoch.
  uint64_t sampleAt(uint64_t index) const;

  /// Writes a rank's shard of batch `number`, which has `batch` rows, to `out`. Rows of padding
  /// become copies of the last row; other padding is not written. Fails as `SampleSource::readRow`
  /// does. Allocates nothing unless it fails.
  Status fill(int64_t number, int64_t batch, const InputShard &shard, char *out) const;

private:
  const SampleSource *source = nullptr;
  uint64_t begin = 0, count = 0;
  std::optional<uint64_t> seed;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_DATASET_H
