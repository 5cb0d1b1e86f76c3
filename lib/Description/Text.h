//===- Text.h - small functions on text that diagnostics need -------------===//
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

/// The shortest decimal text that reads back as `value`.
std::string text(double value);
std::string text(int64_t value);

/// "a, b, c".
std::string join(const std::vector<std::string> &words);

/// The word in single quotes; bytes that are not printable ASCII become a question mark, and only
/// the first 64 are kept, so that a diagnostic stays one readable line whatever the input was.
std::string quote(std::string_view word);

/// The candidate that `word` most likely stands for: the one it begins, or the nearest by single
/// letters put in, left out or replaced, where that is at most 1 + a quarter of the length of
/// `word`. Empty where none is near. The first of equally near candidates wins.
std::string nearest(std::string_view word, const std::vector<std::string> &candidates);

/// ", did you mean 'x'?" where a candidate is near, else "; <what> are a, b, c".
std::string suggestion(std::string_view word, const std::vector<std::string> &candidates,
                       std::string_view what);

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_TEXT_H
