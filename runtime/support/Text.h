//===- Text.h - putting messages together ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Small helpers for error messages and reports. All allocate; none is called in
// the steady state of training. Safe from any thread.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_TEXT_H
#define WEFT_RT_SUPPORT_TEXT_H

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace weft::rt {

/// All parts one after another, as `<<` prints them.
template <typename... Parts> std::string concat(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// Puts a message into `error` and gives false, for `return fail(error, ...)`.
template <typename... Parts> bool fail(std::string &error, const Parts &...parts) {
  error = concat(parts...);
  return false;
}

/// "[2, 3, 4]".
std::string shapeText(std::span<const int64_t> shape);

/// "1.50 GiB", "312 bytes": at most four digits.
std::string bytesText(uint64_t bytes);

/// What `errno` value `code` means, e.g. "No space left on device".
std::string systemError(int code);

/// Fewest insertions, deletions and changes of one character from `a` to `b`.
size_t editDistance(std::string_view a, std::string_view b);

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_TEXT_H
