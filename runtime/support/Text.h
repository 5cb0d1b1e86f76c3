//===- Text.h - text of messages ------------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Helpers for error messages and reports. All allocate; none runs in steady-state
// training. Any thread may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_TEXT_H
#define WEFT_RT_SUPPORT_TEXT_H

#include "weft-rt/Status.h"

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace weft::rt {

/// Returns all parts concatenated, as `<<` prints them.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// Returns the error whose message is the parts concatenated: `return makeError("cannot ", verb)`.
template <typename... Parts> Error makeError(const Parts &...parts) { return {concat(parts...)}; }

/// "[2, 3, 4]".
std::string shapeText(std::span<const int64_t> shape);

/// "1.50 GiB", "312 bytes": at most four digits.
std::string bytesText(uint64_t bytes);

/// Returns the meaning of the `errno` value `code`, as "No space left on device".
std::string systemError(int code);

/// Returns the Levenshtein distance: the fewest insertions, deletions and substitutions of
/// characters that turn `a` into `b`.
size_t editDistance(std::string_view a, std::string_view b);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_TEXT_H
