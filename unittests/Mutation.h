//===- Mutation.h - changes texts for tests of readers --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_MUTATION_H
#define WEFT_UNITTESTS_MUTATION_H

#include <algorithm>
#include <random>
#include <span>
#include <string>

namespace weft::test {

/// Changes a text in a few places: replaces bytes, inserts words of the format, replaces words and
/// values by them, and removes, repeats or moves parts. Equal generators give equal texts, so a
/// failure can be repeated.
inline std::string mutate(std::string text, std::span<const std::string> words,
                          std::mt19937_64 &random) {
  auto below = [&](size_t n) { return size_t(random() % std::max<size_t>(n, 1)); };
  auto word = [&] { return words[below(words.size())]; };
  for (size_t i = 0, changes = 1 + below(4); i < changes; ++i) {
    size_t at = below(text.size());
    size_t length = std::min(below(24), text.size() - at);
    switch (below(6)) {
    case 0:
      if (!text.empty()) {
        text[at] = char(random());
      }
      break;
    case 1:
      text.insert(at, word());
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(below(text.size()), text.substr(at, length));
      break;
    case 4:
      text.replace(at, length, word());
      break;
    case 5:
      // Values are where most is decided.
      if (size_t colon = text.find(": ", at); colon != text.npos) {
        size_t end = text.find_first_of(",}\n", colon);
        text.replace(colon + 2, end - colon - 2, word());
      }
      break;
    }
  }
  return text;
}

} // namespace weft::test

#endif // WEFT_UNITTESTS_MUTATION_H
