//===- Patch.h - one damaged place in a good file -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Random bytes hardly ever form a valid file, so targets damage good files instead. An
// input is a letter that stands for a file, an offset and a number of bytes to remove,
// both of 16 bits in little-endian order, and the bytes to insert at the offset.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_FUZZ_PATCH_H
#define WEFT_FUZZ_PATCH_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

/// Contents by their names in a folder.
using Files = std::map<std::string, std::string>;

struct Patch {
  char file = 0;
  size_t place = 0, removed = 0;
  std::string_view inserted;

  /// Returns nothing if the input is too short. The patch refers to `data`.
  static std::optional<Patch> read(const uint8_t *data, size_t size) {
    constexpr size_t header = 5;
    if (size < header) {
      return std::nullopt;
    }
    return Patch{char(data[0]), size_t(data[1] | data[2] << 8), size_t(data[3] | data[4] << 8),
                 std::string_view(reinterpret_cast<const char *>(data) + header, size - header)};
  }

  void apply(std::string &content) const {
    size_t begin = std::min(place, content.size());
    content.replace(begin, std::min(removed, content.size() - begin), inserted);
  }
};

#endif // WEFT_FUZZ_PATCH_H
