//===- TokenArray.h - whole numbers of one type in a mapped file ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_DATA_TOKENARRAY_H
#define WEFT_RT_DATA_TOKENARRAY_H

#include "data/TokenFile.h"

#include <bit>
#include <cstring>

namespace weft::rt {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

/// The tokens of a file in any format: `count` numbers of type T from byte `begin` on.
template <typename T> class TokenArray : public TokenSource {
public:
  /// REQUIRES: the file is open and holds all of the numbers.
  TokenArray(DataFormat kind, std::unique_ptr<MappedFile> source, uint64_t begin, uint64_t count)
      : kind(kind), file(std::move(source)),
        numbers(file->bytes().subspan(size_t(begin), size_t(count * sizeof(T)))) {}

  DataFormat format() const override { return kind; }
  uint64_t tokenCount() const override { return numbers.size() / sizeof(T); }

  void read(uint64_t first, std::span<int64_t> out) const override {
    const char *place = numbers.data() + first * sizeof(T);
    for (int64_t &token : out) {
      T number; // Headers leave numbers at any address.
      std::memcpy(&number, place, sizeof(T));
      token = int64_t(number);
      place += sizeof(T);
    }
  }

  void release(uint64_t first, uint64_t count) const override {
    file->release(numbers.subspan(size_t(first * sizeof(T)), size_t(count * sizeof(T))));
  }

private:
  DataFormat kind;
  std::unique_ptr<MappedFile> file;
  std::span<const char> numbers;
};

/// Returns the number at byte `offset`. REQUIRES: it lies inside `bytes`.
template <typename T> T numberAt(std::span<const char> bytes, uint64_t offset) {
  T number;
  std::memcpy(&number, bytes.data() + offset, sizeof(T));
  return number;
}

} // namespace weft::rt

#endif // WEFT_RT_DATA_TOKENARRAY_H
