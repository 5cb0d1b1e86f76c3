//===- Arena.cpp - packing, the bound, and the text form ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Arena.h"

#include "HoleTree.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

using namespace weft::schedule;

namespace {

uint64_t alignUp(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Numbers of the buffers that are needed at all.
std::vector<uint32_t> neededBuffers(const ArenaProblem &problem) {
  std::vector<uint32_t> numbers;
  numbers.reserve(problem.buffers.size());
  for (uint32_t i = 0; i < problem.buffers.size(); ++i) {
    if (problem.buffers[i].isNeeded()) {
      numbers.push_back(i);
    }
  }
  return numbers;
}

/// The same numbers twice: by first instant (then longer life, then larger size first), and by
/// last instant.
struct TimeOrder {
  explicit TimeOrder(const ArenaProblem &problem) : births(neededBuffers(problem)), deaths(births) {
    const std::vector<ArenaBuffer> &buffers = problem.buffers;
    std::sort(births.begin(), births.end(), [&](uint32_t a, uint32_t b) {
      const ArenaBuffer &x = buffers[a], &y = buffers[b];
      if (x.first != y.first) {
        return x.first < y.first;
      }
      if (x.last != y.last) {
        return x.last > y.last;
      }
      return x.bytes != y.bytes ? x.bytes > y.bytes : a < b;
    });
    std::sort(deaths.begin(), deaths.end(), [&](uint32_t a, uint32_t b) {
      return buffers[a].last != buffers[b].last ? buffers[a].last < buffers[b].last : a < b;
    });
  }
  std::vector<uint32_t> births, deaths;
};

} // namespace

namespace {

/// One walk through time.
class FirstFit {
public:
  FirstFit(const ArenaProblem &problem, const FirstFitOptions &options)
      : problem(problem), options(options), low(0, options.ceiling),
        high(options.ceiling, uint64_t(1) << 63) {}

  ArenaPlan run(const TimeOrder &order) {
    plan.offsets.assign(problem.buffers.size(), 0);
    auto death = order.deaths.begin();
    for (uint32_t number : order.births) {
      for (; problem.buffers[*death].last < problem.buffers[number].first; ++death) {
        give(*death);
      }
      take(number);
    }
    return std::move(plan);
  }

private:
  void take(uint32_t number) {
    const ArenaBuffer &buffer = problem.buffers[number];
    uint64_t bytes = alignUp(buffer.bytes, problem.alignment);
    bool isShort = buffer.last - buffer.first <= options.shortLife;
    std::optional<uint64_t> offset = isShort ? low.takeHighest(bytes) : low.takeLowest(bytes);
    plan.offsets[number] = offset ? *offset : *high.takeLowest(bytes);
    plan.bytes = std::max(plan.bytes, plan.offsets[number] + bytes);
  }

  void give(uint32_t number) {
    uint64_t offset = plan.offsets[number];
    (offset < options.ceiling ? low : high)
        .give(offset, alignUp(problem.buffers[number].bytes, problem.alignment));
  }

  const ArenaProblem &problem;
  const FirstFitOptions &options;
  /// Below and above the ceiling; no hole crosses it.
  HoleTree low, high;
  ArenaPlan plan;
};

} // namespace

ArenaPlan weft::schedule::packFirstFit(const ArenaProblem &problem,
                                       const FirstFitOptions &options) {
  return FirstFit(problem, options).run(TimeOrder(problem));
}

/// Repairs of `packBySize` that are worth their time: most problems need none, few more than this.
static constexpr double kMaxRepairs = 32;

ArenaPlan weft::schedule::packArena(const ArenaProblem &problem) {
  TimeOrder order(problem);
  uint64_t bound = arenaLowerBound(problem);
  ArenaPlan best = FirstFit(problem, {}).run(order);
  FirstFitOptions bestOptions;
  size_t placed = order.births.size();
  auto tryOptions = [&](const FirstFitOptions &options) {
    placed += order.births.size();
    if (placed > kMaxPlaced || best.bytes <= bound + bound / 1000) {
      return;
    }
    ArenaPlan plan = FirstFit(problem, options).run(order);
    if (plan.bytes < best.bytes) {
      best = std::move(plan);
      bestOptions = options;
    }
  };
  for (int64_t shortLife = 1; shortLife <= 512; shortLife *= 4) {
    tryOptions({shortLife, bound});
  }
  for (uint64_t part : {200, 100, 67}) {
    tryOptions({bestOptions.shortLife, alignUp(bound + bound / part, problem.alignment)});
  }
  double pairs = std::max(double(order.births.size()) * double(order.births.size()) / 2, 1.0);
  if (best.bytes > bound + bound / 1000 && pairs <= kMaxCompared) {
    ArenaPlan plan =
        packBySize(problem, bound, int64_t(std::min(kMaxRepairs, kMaxCompared / pairs - 1)));
    if (plan.bytes < best.bytes) {
      best = std::move(plan);
    }
  }
  return best;
}

uint64_t weft::schedule::arenaLowerBound(const ArenaProblem &problem) {
  TimeOrder order(problem);
  auto death = order.deaths.begin();
  uint64_t live = 0, bound = 0;
  for (uint32_t number : order.births) {
    const ArenaBuffer &buffer = problem.buffers[number];
    for (; problem.buffers[*death].last < buffer.first; ++death) {
      live -= alignUp(problem.buffers[*death].bytes, problem.alignment);
    }
    live += alignUp(buffer.bytes, problem.alignment);
    bound = std::max(bound, live);
  }
  return bound;
}

std::string weft::schedule::toText(const ArenaProblem &problem) {
  std::string text = "alignment " + std::to_string(problem.alignment) + "\n";
  for (const ArenaBuffer &buffer : problem.buffers) {
    text += "buffer " + std::to_string(buffer.bytes) + " " + std::to_string(buffer.first) + " " +
            std::to_string(buffer.last) + "\n";
  }
  return text;
}

namespace {

/// The words of one line, without its comment.
std::vector<std::string_view> splitWords(std::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<std::string_view> words;
  constexpr std::string_view kSpace = " \t\r";
  size_t begin = line.find_first_not_of(kSpace);
  while (begin != std::string_view::npos) {
    size_t end = line.find_first_of(kSpace, begin);
    words.push_back(line.substr(begin, end - begin));
    begin = end == std::string_view::npos ? end : line.find_first_not_of(kSpace, end);
  }
  return words;
}

template <typename Integer> bool parseInteger(std::string_view word, Integer &value) {
  auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  return code == std::errc() && end == word.data() + word.size();
}

/// Adds what one line says; returns false if it says nothing known.
bool parseLine(const std::vector<std::string_view> &words, ArenaProblem &problem) {
  if (words[0] == "alignment") {
    return words.size() == 2 && parseInteger(words[1], problem.alignment) &&
           std::has_single_bit(problem.alignment);
  }
  ArenaBuffer buffer;
  if (words[0] != "buffer" || words.size() != 4 || !parseInteger(words[1], buffer.bytes) ||
      !parseInteger(words[2], buffer.first) || !parseInteger(words[3], buffer.last)) {
    return false;
  }
  problem.buffers.push_back(buffer);
  return true;
}

} // namespace

weft::rt::Result<ArenaProblem> weft::schedule::parseArenaProblem(std::string_view text) {
  ArenaProblem problem;
  for (int64_t number = 1; !text.empty(); ++number) {
    size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    std::vector<std::string_view> words = splitWords(line);
    if (!words.empty() && !parseLine(words, problem)) {
      return rt::Error{
          "line " + std::to_string(number) +
          ": expected 'buffer BYTES FIRST LAST' or 'alignment' and a power of two, got '" +
          std::string(line) + "'"};
    }
  }
  return problem;
}
