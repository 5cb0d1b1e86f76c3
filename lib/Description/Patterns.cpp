//===- Patterns.cpp - patterns for names of values ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Plan.h"

#include <algorithm>
#include <cctype>
#include <tuple>

namespace weft::desc {

bool matchesPattern(std::string_view pattern, std::string_view name) {
  size_t star = pattern.find('*');
  if (star == std::string_view::npos) {
    return pattern == name;
  }
  std::string_view head = pattern.substr(0, star), tail = pattern.substr(pattern.rfind('*') + 1);
  if (name.size() < head.size() + tail.size() || !name.starts_with(head) || !name.ends_with(tail)) {
    return false;
  }
  name = name.substr(head.size(), name.size() - head.size() - tail.size());
  pattern = pattern.substr(star + 1, pattern.size() - star - 1 - tail.size());
  // Matches the text before a star at its first occurrence, which leaves most for the rest.
  while (!pattern.empty()) {
    std::string_view part = pattern.substr(0, pattern.find('*'));
    size_t at = name.find(part);
    if (at == std::string_view::npos) {
      return false;
    }
    name.remove_prefix(at + part.size());
    pattern.remove_prefix(part.size() + 1);
  }
  return true;
}

std::string planNameOf(std::string_view part) {
  std::string name(part.substr(0, 200));
  for (char &c : name) {
    bool isAllowed = std::isalnum(static_cast<unsigned char>(c)) ||
                     std::string_view("._/-").find(c) != std::string_view::npos;
    c = isAllowed ? c : '_';
  }
  return name;
}

/// Returns the least number of characters to insert, delete or change so that `pattern` matches
/// `name`.
static size_t distanceOf(std::string_view pattern, std::string_view name) {
  std::vector<size_t> row(name.size() + 1);
  for (size_t at = 0; at <= name.size(); ++at) {
    row[at] = at;
  }
  for (char c : pattern) {
    // Without a character of the name, a star matches nothing and others are deleted.
    size_t diagonal = row[0];
    row[0] += c != '*';
    for (size_t at = 1; at <= name.size(); ++at) {
      size_t above = row[at];
      row[at] = c == '*' ? std::min(above, row[at - 1])
                         : std::min({above + 1, row[at - 1] + 1, diagonal + (c != name[at - 1])});
      diagonal = above;
    }
  }
  return row.back();
}

std::string nearestName(std::string_view pattern, const std::vector<std::string> &names) {
  const std::string part = "*" + std::string(pattern) + "*";
  std::tuple<size_t, size_t, std::string> best = {size_t(-1), 0, ""};
  for (const std::string &name : names) {
    if (!name.empty()) {
      best = std::min(best, {distanceOf(part, name), distanceOf(pattern, name), name});
    }
  }
  return std::get<std::string>(best);
}

} // namespace weft::desc
