//===- ParseNumber.h - numbers from texts ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Independent of the locale. Any thread may call these functions.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_SUPPORT_PARSENUMBER_H
#define WEFT_RT_SUPPORT_PARSENUMBER_H

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace weft::rt {

/// Reads a whole text as a number. Returns false if it is none, or too large for the type.
template <typename T> bool parseNumber(std::string_view text, T &number) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc() && end == text.data() + text.size();
}

/// Reads a whole text such as "4" or "4-7" as the first and the last of numbers, 0 or more.
inline std::optional<std::pair<int64_t, int64_t>> parseRange(std::string_view text) {
  const size_t dash = text.find('-');
  const std::string_view behind = dash == std::string_view::npos ? text : text.substr(dash + 1);
  int64_t first = 0, last = 0;
  bool isRange = parseNumber(text.substr(0, dash), first) && parseNumber(behind, last) &&
                 0 <= first && first <= last;
  return isRange ? std::optional(std::pair(first, last)) : std::nullopt;
}

} // namespace weft::rt

#endif // WEFT_RT_SUPPORT_PARSENUMBER_H
