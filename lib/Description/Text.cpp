//===- Text.cpp - small text functions for diagnostics --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Text.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace weft::desc::detail {

std::string text(double value) {
  char buffer[64];
  std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, end.ptr);
}

std::string text(int64_t value) { return std::to_string(value); }

std::string join(const std::vector<std::string> &words) {
  std::string all;
  for (const std::string &word : words) {
    all += (all.empty() ? "" : ", ") + word;
  }
  return all;
}

std::string quote(std::string_view word, size_t longest) {
  std::string quoted = "'";
  for (char c : word.substr(0, longest)) {
    quoted += c >= ' ' && c <= '~' ? c : '?';
  }
  return quoted + (word.size() > longest ? "...'" : "'");
}

/// Levenshtein's distance, one row of the table at a time.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::string_view word, const std::vector<std::string> &candidates) {
  if (word.empty() || word.size() > 64) {
    return "";
  }
  std::string best;
  size_t bestDistance = 1 + word.size() / 4;
  for (const std::string &candidate : candidates) {
    if (word.size() >= 3 && candidate.starts_with(word)) {
      return candidate;
    }
    size_t distance = editDistance(word, candidate);
    if (distance < bestDistance || (best.empty() && distance == bestDistance)) {
      best = candidate;
      bestDistance = distance;
    }
  }
  // A word whose letters were all replaced is not similar.
  return bestDistance < word.size() ? best : "";
}

std::string suggestion(std::string_view word, const std::vector<std::string> &candidates,
                       std::string_view what) {
  // Some come from the same file, and are refused as well.
  auto isShown = [](const std::string &name) { return quote(name) == "'" + name + "'"; };
  std::vector<std::string> names;
  std::copy_if(candidates.begin(), candidates.end(), std::back_inserter(names), isShown);
  std::string near = nearest(word, names);
  if (!near.empty()) {
    return ", did you mean '" + near + "'?";
  }
  return "; " + std::string(what) + " are " + join(names);
}

} // namespace weft::desc::detail
