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
#include <string_view>

namespace weft {
namespace {

using Axes = std::vector<std::string>;

class Summary {
public:
  Summary(const std::vector<Fact> &facts, MayCutAll mayCutAll)
      : facts(facts), mayCutAll(mayCutAll) {
    for (size_t i = 0; i < facts.size(); ++i) {
      said.push_back(facts[i].byDefault);
      std::vector<Named> &named = ofDimension[facts[i].dimension];
      for (const std::string &name : facts[i].names) {
        named.emplace_back(name, i);
      }
    }
    for (auto &[dimension, named] : ofDimension) {
      std::sort(named.begin(), named.end());
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
        const std::string &pattern = facts[i].patterns.back(), &dimension = facts[i].dimension;
        add(pattern, dimension, facts[i].axes, matching(pattern, ofDimension[dimension]));
      }
    }
    return std::move(entries);
  }

private:
  void addLevel(size_t level) {
    std::set<std::pair<std::string, std::string>> tried;
    for (size_t i = 0; i < facts.size(); ++i) {
      const Fact &fact = facts[i];
      // The last pattern matches only this fact.
      if (said[i] != fact.axes && level + 1 < fact.patterns.size() &&
          tried.insert({fact.patterns[level], fact.dimension}).second) {
        consider(fact.patterns[level], fact.dimension);
      }
    }
  }

  /// Adds an entry if it saves at least one other.
  void consider(const std::string &pattern, const std::string &dimension) {
    std::map<Axes, size_t> count;
    std::vector<size_t> matched = matching(pattern, ofDimension[dimension]);
    size_t wrong = 0;
    for (size_t i : matched) {
      ++count[facts[i].axes];
      wrong += said[i] != facts[i].axes;
    }
    auto most = std::max_element(count.begin(), count.end(),
                                 [](const auto &a, const auto &b) { return a.second < b.second; });
    bool mayBe = pattern != "*" || mayCutAll(dimension, most->first);
    if (mayBe && wrong > matched.size() - most->second + 1) {
      add(pattern, dimension, most->first, matched);
    }
  }

  void add(const std::string &pattern, const std::string &dimension, const Axes &axes,
           const std::vector<size_t> &matched) {
    entries.push_back({pattern, dimension, axes, {}});
    for (size_t i : matched) {
      said[i] = axes;
    }
  }

  /// A name of a fact, and the number of the fact.
  using Named = std::pair<std::string_view, size_t>;

  /// Returns the facts with a name that matches, ascending. `named` is sorted, so that only names
  /// with the pattern's prefix are compared.
  static std::vector<size_t> matching(std::string_view pattern, const std::vector<Named> &named) {
    std::string_view begin = pattern.substr(0, pattern.find('*'));
    std::vector<size_t> found;
    for (auto at = std::lower_bound(named.begin(), named.end(), Named(begin, 0));
         at != named.end() && at->first.starts_with(begin); ++at) {
      if (desc::matchesPattern(pattern, at->first)) {
        found.push_back(at->second);
      }
    }
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }

  const std::vector<Fact> &facts;
  MayCutAll mayCutAll;
  /// The axes of each fact by the entries so far.
  std::vector<std::optional<Axes>> said;
  std::map<std::string, std::vector<Named>> ofDimension;
  std::vector<desc::ShardingSpec> entries;
};

} // namespace

std::vector<desc::ShardingSpec> summarize(const std::vector<Fact> &facts, MayCutAll mayCutAll) {
  return Summary(facts, mayCutAll).run();
}

std::string withoutNumbers(const std::string &name) {
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
