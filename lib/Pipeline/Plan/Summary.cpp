//===- Summary.cpp - many facts in few entries of a plan ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Summary.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft {
namespace {

using Axes = std::vector<std::string>;

class Summary {
public:
  explicit Summary(const std::vector<Fact> &facts) : facts(facts) {
    for (size_t i = 0; i < facts.size(); ++i) {
      said.push_back(facts[i].byDefault);
      ofDimension[facts[i].dimension].push_back(i);
    }
  }

  std::vector<desc::ShardingSpec> run() {
    size_t levels = 0;
    for (const Fact &fact : facts) {
      levels = std::max(levels, fact.patterns.size());
    }
    for (size_t level = 0; level + 1 < levels; ++level) {
      addLevel(level);
    }
    for (size_t i = 0; i < facts.size(); ++i) {
      if (said[i] != facts[i].axes) {
        add(facts[i].patterns.back(), facts[i].dimension, facts[i].axes);
      }
    }
    return std::move(entries);
  }

private:
  void addLevel(size_t level) {
    std::set<std::pair<std::string, std::string>> tried;
    for (size_t i = 0; i < facts.size(); ++i) {
      const Fact &fact = facts[i];
      // The last pattern is for that fact alone.
      if (said[i] != fact.axes && level + 1 < fact.patterns.size() &&
          tried.insert({fact.patterns[level], fact.dimension}).second) {
        consider(fact.patterns[level], fact.dimension);
      }
    }
  }

  /// Adds an entry if it saves at least one.
  void consider(const std::string &pattern, const std::string &dimension) {
    std::map<Axes, size_t> count;
    size_t matched = 0, wrong = 0;
    for (size_t i : ofDimension[dimension]) {
      if (matches(pattern, facts[i])) {
        ++matched;
        ++count[facts[i].axes];
        wrong += said[i] != facts[i].axes;
      }
    }
    auto most = std::max_element(count.begin(), count.end(),
                                 [](const auto &a, const auto &b) { return a.second < b.second; });
    if (wrong > matched - most->second + 1) {
      add(pattern, dimension, most->first);
    }
  }

  void add(const std::string &pattern, const std::string &dimension, const Axes &axes) {
    entries.push_back({pattern, dimension, axes, {}});
    for (size_t i : ofDimension[dimension]) {
      if (matches(pattern, facts[i])) {
        said[i] = axes;
      }
    }
  }

  static bool matches(const std::string &pattern, const Fact &fact) {
    return std::any_of(fact.names.begin(), fact.names.end(), [&](const std::string &name) {
      return desc::matchesPattern(pattern, name);
    });
  }

  const std::vector<Fact> &facts;
  /// For each fact, what the entries so far say of it.
  std::vector<std::optional<Axes>> said;
  std::map<std::string, std::vector<size_t>> ofDimension;
  std::vector<desc::ShardingSpec> entries;
};

} // namespace

std::vector<desc::ShardingSpec> summarize(const std::vector<Fact> &facts) {
  return Summary(facts).run();
}

/// With every number that stands for itself between dots as '*'.
static std::string withoutNumbers(const std::string &name) {
  std::string general;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find('.', begin), name.size());
    std::string word = name.substr(begin, end - begin);
    bool isNumber = !word.empty() && word.find_first_not_of("0123456789") == std::string::npos;
    general += (begin == 0 ? "" : ".") + (isNumber ? "*" : word);
    begin = end + 1;
  }
  return general;
}

std::vector<std::string> patternsOf(const std::string &name) {
  std::string general = withoutNumbers(name);
  size_t slash = general.find('/');
  if (slash == std::string::npos) {
    return {"*", general, name};
  }
  return {"*", "*/*", "*" + general.substr(slash), general, name};
}

} // namespace weft
