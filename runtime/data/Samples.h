//===- Samples.h - what a program is trained on -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The inputs of a step have one row for each sample of the batch. A source of
// samples writes such rows, or the part of them that a rank has:
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

/// An input that the data gives.
enum class DataField : uint8_t { Tokens, Targets, DocumentStarts, Images, Labels };

/// The field of the input `name`; none where the input is no data.
std::optional<DataField> dataField(std::string_view name);

/// A rank's part of an input: `shape` elements from `offset` on in each dimension, the first of
/// which is the batch. Only the first `filled` of them in each dimension are data; others are
/// padding: of the batch copies of its last row. Of a batch in micro-batches a rank has `run` rows
/// of each, and those of the next lie `stride` rows on.
struct InputShard {
  DataField field = DataField::Tokens;
  ElementType type = ElementType::I32;
  std::vector<int64_t> shape, offset, filled;
  int64_t run = 0, stride = 0;

  bool operator==(const InputShard &) const = default;
  /// Where in the batch a row of the shard stands.
  int64_t sampleOf(int64_t row) const;
  /// Bytes of one row.
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
  /// For the user: the file, its format, and how many samples there are.
  virtual std::string describe() const = 0;

  /// Writes the row of `sample` in `shard` to `out`. Fails where the file holds what the model
  /// cannot take, which `error` says. Allocates nothing unless it fails.
  /// REQUIRES: the source has the field, and `sample` is less than `sampleCount`.
  virtual bool readRow(uint64_t sample, const InputShard &shard, char *out,
                       std::string &error) const = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_DATA_SAMPLES_H
