//===- Text.h - small text functions for diagnostics ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_TEXT_H
#define WEFT_LIB_DESCRIPTION_TEXT_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::desc::detail {

/// Returns the shortest decimal text that reads back as `value`.
std::string text(double value);
std::string text(int64_t value);

/// "a, b, c".
std::string join(const std::vector<std::string> &words);

/// Returns the word in single quotes, at most `longest` bytes of it, with a question mark for each
/// byte that is not printable ASCII, so that a diagnostic is one readable line for any input.
std::string quote(std::string_view word, size_t longest = 64);

/// Returns the candidate that `word` most likely means: one that begins with it, or the nearest by
/// insertions, deletions and replacements of letters, if these are at most 1 + a quarter of the
/// length of `word`. Empty if none is near. The first of equally near candidates wins.
std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

/// Returns ", did you mean 'x'?" if a candidate is near, else "; <what> are a, b, c".
std::string suggestion(std::string_view word, const std::vector<std::string> &candidates,
                       std::string_view what);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_TEXT_H
