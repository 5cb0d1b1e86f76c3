//===- Dataset.h - training samples from files of tokens ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With sequence length S, sample i of a file is its tokens i*S to i*S + S inclusive:
// the first S are its tokens, the last S, one further, its targets. n tokens make
// (n - 1) / S samples. Where documents begin plays no role: a sample may begin in one
// and end in the next. A token that ends documents tells them apart within a sample.
//
// A Sampler takes batches from some of the samples: in the order of the file, or
// shuffled. Shuffled, row b of batch s is the global sample g = s * batch + b. It
// belongs to epoch e = g / count and is the sample P(g mod count) of the sampler,
// P being the permutation of its samples with key randomBits(seed, FNV-1a("data
// order"), e). The order depends on neither ranks nor plan, and nothing needs to be
// kept to resume.
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

/// The samples of a file. That every token is one of the vocabulary is checked when the file is
/// opened if it has no more than `kCheckedAtOpen` tokens, else when a sample is read.
class Dataset : public SampleSource {
public:
  static constexpr uint64_t kCheckedAtOpen = uint64_t(1) << 24;

  /// Fails if the file cannot be read, is not of the format (see `openTokens`), holds no whole
  /// sample, or holds a token beyond the vocabulary, as far as that is checked here.
  bool open(const std::string &path, std::optional<DataFormat> format, int64_t sequenceLength,
            int64_t vocabulary, std::string &error, std::optional<int64_t> documentEnd = {});

  uint64_t sampleCount() const override { return samples; }
  const char *formatName() const override { return nameOf(tokens->format()); }

  /// Writes the tokens of `sample` from position `first` of the sample on, as many as `out` has
  /// room for. Fails at a token beyond the vocabulary, which `error` names. Allocates nothing
  /// unless it fails.
  bool read(uint64_t sample, int64_t first, std::span<int32_t> out, std::string &error) const;

  /// Writes for each place of `sample` from `first` on where its document begins in the sample: at
  /// 0, or behind the last token before it that ends documents. Allocates nothing.
  void readStarts(uint64_t sample, int64_t first, std::span<int32_t> out) const;

  /// "'corpus.txt', bytes: 1000 tokens, 124 samples".
  std::string describe() const override;

  /// Tokens, targets, which are one token further, or starts of documents. Padding of starts goes
  /// on with the last document, so that they never fall along a sequence.
  bool readRow(uint64_t sample, const InputShard &shard, char *out,
               std::string &error) const override;

private:
  bool check(uint64_t first, std::span<const int64_t> tokens, std::string &error) const;
  bool checkAll(std::string &error) const;

  std::string path;
  std::unique_ptr<TokenSource> tokens;
  int64_t sequenceLength = 0, vocabulary = 0;
  /// None where nobody asks for starts of documents.
  std::optional<int64_t> documentEnd;
  uint64_t samples = 0;
};

class Sampler {
public:
  Sampler() = default;
  /// Samples `first` to before `first` + `count` of `source`, which must outlive the sampler:
  /// shuffled by `seed`, or else as they lie. REQUIRES: there are that many, at least one.
  Sampler(const SampleSource &source, uint64_t first, uint64_t count, std::optional<uint64_t> seed)
      : source(&source), begin(first), count(count), seed(seed) {}

  uint64_t sampleCount() const { return count; }

  /// Number in the file of global sample `index`. In the order of the file there is one epoch.
  uint64_t sampleAt(uint64_t index) const;

  /// Writes a rank's shard of batch `number`, which has `batch` rows, to `out`. Rows of padding are
  /// copies of the last row; other padding stays as it is. Fails as `SampleSource::readRow` does.
  /// Allocates nothing unless it fails.
  bool fill(int64_t number, int64_t batch, const InputShard &shard, char *out,
            std::string &error) const;

private:
  const SampleSource *source = nullptr;
  uint64_t begin = 0, count = 0;
  std::optional<uint64_t> seed;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_DATASET_H
