//===- TokenFile.h - tokens from files of several formats -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of tokens is one long sequence of numbers in one of these formats:
//
//   bytes     every byte is a token, 0 to 255
//   nanogpt   unsigned 16-bit numbers, nothing else
//   llmc      a header of 256 32-bit numbers (magic, version, number of tokens), then
//             16-bit (magic 20240520, version 1) or 32-bit tokens (20240801, 7)
//   megatron  two files, PREFIX.bin of tokens and PREFIX.idx with their type
//             and the beginnings of sequences and documents
//
// All numbers are little-endian. Files are mapped, not read: opening a large file
// takes no longer than a small one, except that an index is checked completely.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_TOKENFILE_H
#define WEFT_RT_DATA_TOKENFILE_H

#include "support/MappedFile.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace weft::rt {

enum class DataFormat : uint8_t { Bytes, NanoGpt, Llmc, Megatron };

/// "bytes", "nanogpt", "llmc" or "megatron".
const char *nameOf(DataFormat format);
/// Returns the format of that name, if there is one.
std::optional<DataFormat> parseDataFormat(std::string_view name);

/// A sequence of tokens. Immutable; any thread may read.
class TokenSource {
public:
  virtual ~TokenSource() = default;

  virtual DataFormat format() const = 0;
  virtual uint64_t tokenCount() const = 0;

  /// Copies the tokens from number `first` on until `out` is full, without checking them against a
  /// vocabulary. REQUIRES: `tokenCount` is not exceeded. Allocates nothing.
  virtual void read(uint64_t first, std::span<int64_t> out) const = 0;

  /// Takes tokens that were read out of this process's memory, as otherwise all of a large file
  /// would be in it in the end. Allocates nothing.
  virtual void release(uint64_t first, uint64_t count) const = 0;
};

/// Opens a file in `format`, or in the format that its name and first bytes show. Fails if the file
/// cannot be read, is not in that format, has another length than its header says, or if its format
/// is unclear.
Result<std::unique_ptr<TokenSource>> openTokens(const std::string &path,
                                                std::optional<DataFormat> format);

/// Returns the files that `openTokens` would read: two for Megatron's format, else `path`.
std::vector<std::string> filesOf(const std::string &path, std::optional<DataFormat> format);

} // namespace weft::rt

#endif // WEFT_RT_DATA_TOKENFILE_H
