//===- TokenFile.h - tokens from files of several formats -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file of tokens is one long row of numbers, whatever its format:
//
//   bytes     every byte is a token, 0 to 255
//   nanogpt   16-bit numbers, unsigned, nothing else
//   llmc      a header of 256 32-bit numbers (magic, version, number of tokens), then
//             16-bit (magic 20240520, version 1) or 32-bit tokens (20240801, 7)
//   megatron  two files, PREFIX.bin of tokens and PREFIX.idx that says of what type
//             they are and where sequences and documents begin
//
// All numbers are little-endian. Files are mapped, not read: opening takes no
// longer for a large one, except that an index is checked as a whole.
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
/// The format of that name, if there is one.
std::optional<DataFormat> parseDataFormat(std::string_view name);

/// A row of tokens. Immutable; any thread may read.
class TokenSource {
public:
  virtual ~TokenSource() = default;

  virtual DataFormat format() const = 0;
  virtual uint64_t tokenCount() const = 0;

  /// Copies tokens `first`, `first` + 1, ... as they stand in the file, as many as `out` has room
  /// for; no vocabulary is looked at. REQUIRES: all of them are below `tokenCount`. Allocates
  /// nothing.
  virtual void read(uint64_t first, std::span<int64_t> out) const = 0;
};

/// Opens a file in `format`, or in the one that its name and first bytes tell. Gives null with an
/// error if it cannot be read, is not of that format, lies about its length, or if it is not clear
/// what it is.
std::unique_ptr<TokenSource> openTokens(const std::string &path, std::optional<DataFormat> format,
                                        std::string &error);

/// The files that `openTokens` would read: two for Megatron's format, else `path`.
std::vector<std::string> filesOf(const std::string &path, std::optional<DataFormat> format);

} // namespace weft::rt

#endif // WEFT_RT_DATA_TOKENFILE_H
