//===- Samples.h - sources of training samples ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inputs of a step have one row for each sample of the batch. A SampleSource
// writes these rows, or the part of them that a rank holds:
//
//   tokens, targets, document_starts   of a file of tokens   Dataset.h
//   images, labels                     of a file of images   ImageFile.h
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_SAMPLES_H
#define WEFT_RT_DATA_SAMPLES_H

#include "weft-rt/Program.h"

#include <memory>
#include <optional>
#include <string_view>

namespace weft::rt {

/// The kind of an input that comes from the data.
enum class DataField : uint8_t { Tokens, Targets, DocumentStarts, Images, Labels };

/// Returns the field of the input `name`; none if the input does not come from the data.
std::optional<DataField> dataField(std::string_view name);

/// A rank's part of an input: `shape` elements from `offset` on in each dimension; dimension 0 is
/// the batch. The first `filled` elements of each dimension are data, the rest is padding; padding
/// rows of the batch are copies of its last row. If the batch is divided into micro-batches, the
/// rank holds `run` rows of each, and those of the next lie `stride` rows further on.
struct InputShard {
  DataField field = DataField::Tokens;
  ElementType type = ElementType::I32;
  std::vector<int64_t> shape, offset, filled;
  int64_t run = 0, stride = 0;

  bool operator==(const InputShard &) const = default;
  /// Returns the position in the batch of a row of the shard.
  int64_t sampleOf(int64_t row) const;
  /// Returns the bytes of one row.
  size_t rowBytes() const;
  size_t bytes() const;
};

/// Samples of a file. Immutable once opened; any thread may read.
class SampleSource {
public:
  virtual ~SampleSource() = default;

  virtual uint64_t sampleCount() const = 0;
  /// "bytes", "images", ...
  virtual const char *formatName() const = 0;
  /// Returns the file, its format and the number of its samples, for the user.
  virtual std::string describe() const = 0;

  /// Writes the row of `sample` in `shard` to `out`. Fails if the file's data does not fit the
  /// model. Allocates nothing unless it fails. REQUIRES: the source
  /// has the field, and `sample` is less than `sampleCount`.
  virtual Status readRow(uint64_t sample, const InputShard &shard, char *out) const = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_SAMPLES_H
