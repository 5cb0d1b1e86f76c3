//===- Dataset.h - training samples from a file of bytes --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every byte of the file is one token, 0 to 255. With sequence length S, sample i
// is bytes i*S to i*S + S inclusive: the first S are its tokens, the last S, one
// further, its targets. A file of n bytes has (n - 1) / S samples.
//
// Row b of the batch at step s is the global sample g = s * batch + b. It belongs
// to epoch e = g / samples and is sample P(g mod samples) of the file, P being the
// permutation of the samples with key randomBits(seed, FNV-1a("data order"), e).
// The order depends on neither ranks nor plan, and nothing needs to be kept to
// resume.
//
// Immutable after `open`; any thread may read.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CORE_DATASET_H
#define WEFT_RT_CORE_DATASET_H

#include "core/MappedFile.h"
#include "weft-rt/Program.h"

namespace weft::rt {

class Dataset {
public:
  /// Fails if the file cannot be read, holds no whole sample, or holds a byte that is no token of
  /// the vocabulary.
  bool open(const std::string &path, int64_t sequenceLength, int64_t vocabulary, uint64_t seed,
            std::string &error);

  /// How the file's tokens are stored, and its size: what a checkpoint keeps of the data.
  const char *format() const { return "bytes"; }
  uint64_t fileBytes() const { return file.bytes().size(); }

  uint64_t sampleCount() const { return samples; }

  /// Number in the file of global sample `index`.
  uint64_t sampleAt(uint64_t index) const;

  /// Writes a rank's piece of "tokens" (shift 0) or "targets" (shift 1) of `step` into `out`.
  /// `shape` and `offset` are the piece's place in [batch, sequence]. Allocates nothing.
  void fill(int64_t step, int64_t batch, std::span<const int64_t> shape,
            std::span<const int64_t> offset, int64_t shift, int32_t *out) const;

private:
  MappedFile file;
  int64_t sequenceLength = 0;
  uint64_t samples = 0, seed = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_CORE_DATASET_H
