//===- TextMutator.cpp - changes texts word by word ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Most changes of single bytes only cause another syntax error. This mutator also moves
// words from one text to another, so that its results pass the parser more often.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

/// libFuzzer's own mutator.
extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

/// A word, a number, or a single other character.
using Tokens = std::vector<std::string>;

bool isWord(char c) { return std::isalnum(uint8_t(c)) || c == '_' || c == '.'; }

Tokens tokensOf(std::string_view text) {
  Tokens tokens;
  for (size_t begin = 0, end; begin < text.size(); begin = end) {
    end = begin + 1;
    while (isWord(text[begin]) && end < text.size() && isWord(text[end])) {
      ++end;
    }
    tokens.emplace_back(text.substr(begin, end - begin));
  }
  return tokens;
}

class Mutator {
public:
  explicit Mutator(unsigned seed) : random(seed) {}

  void mutate(Tokens &tokens) {
    remember(tokens);
    switch (below(6)) {
    case 0:
      tokens[below(tokens.size())] = known();
      break;
    case 1:
      tokens[below(tokens.size())] = kNumbers[below(std::size(kNumbers))];
      break;
    case 2:
      tokens.insert(tokens.begin() + below(tokens.size() + 1), known());
      break;
    case 3:
      std::swap(tokens[below(tokens.size())], tokens[below(tokens.size())]);
      break;
    case 4: {
      auto [begin, end] = range(tokens);
      tokens.erase(tokens.begin() + begin, tokens.begin() + end);
      break;
    }
    case 5: {
      auto [begin, end] = range(tokens);
      Tokens copy(tokens.begin() + begin, tokens.begin() + end);
      tokens.insert(tokens.begin() + below(tokens.size() + 1), copy.begin(), copy.end());
      break;
    }
    }
  }

  size_t below(size_t limit) { return std::uniform_int_distribution<size_t>(0, limit - 1)(random); }

private:
  static constexpr const char *kNumbers[] = {"0",
                                             "1",
                                             "-1",
                                             "2",
                                             "3",
                                             "127",
                                             "65536",
                                             "2147483647",
                                             "1e9",
                                             "-0.0",
                                             "4294967296",
                                             "4611686018427387904",
                                             "9223372036854775807",
                                             "18446744073709551615",
                                             "18446744073709551616",
                                             "1e-400",
                                             "1e400",
                                             "inf",
                                             "nan"};
  static constexpr size_t kMostKnown = 20000;

  /// Some neighbours, or the rest of a line.
  std::pair<size_t, size_t> range(const Tokens &tokens) {
    size_t begin = below(tokens.size());
    size_t end = std::min(tokens.size(), begin + 1 + below(8));
    if (below(3) == 0) {
      end = size_t(std::find(tokens.begin() + begin, tokens.end(), "\n") - tokens.begin());
      end = std::min(tokens.size(), end + 1);
    }
    return {begin, end};
  }

  /// Words of all texts so far.
  static Tokens &pool() {
    static Tokens words;
    return words;
  }

  void remember(const Tokens &tokens) {
    const std::string &word = tokens[below(tokens.size())];
    if (pool().size() < kMostKnown) {
      pool().push_back(word);
    } else {
      pool()[below(kMostKnown)] = word;
    }
  }

  const std::string &known() { return pool()[below(pool().size())]; }

  std::minstd_rand random;
};

} // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize,
                                          unsigned seed) {
  Mutator mutator(seed);
  Tokens tokens = tokensOf({reinterpret_cast<const char *>(data), size});
  if (tokens.empty() || mutator.below(4) == 0) {
    return LLVMFuzzerMutate(data, size, maxSize);
  }
  for (size_t changes = 1 + mutator.below(3); changes > 0 && !tokens.empty(); --changes) {
    mutator.mutate(tokens);
  }
  std::string text;
  for (const std::string &token : tokens) {
    text += token;
  }
  size = std::min(text.size(), maxSize);
  std::memcpy(data, text.data(), size);
  return size;
}
