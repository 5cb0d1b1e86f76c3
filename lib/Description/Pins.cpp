//===- Pins.cpp - short forms of known strategies -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include "Text.h"

#include <array>
#include <charconv>
#include <span>

namespace weft::desc {

namespace {

/// What a pin stands for: an axis of its name that splits these dimensions of every value.
struct Strategy {
  std::string_view name;
  std::span<const std::string_view> dimensions;
};

constexpr std::string_view dataParallel[] = {"batch"};
constexpr std::string_view tensorParallel[] = {"kv_heads", "ffn", "vocab"};

/// In the order of mesh axes, major to minor: tensor parallel ranks talk most, so they are nearest.
constexpr Strategy strategies[] = {{"dp", dataParallel}, {"tp", tensorParallel}};
constexpr size_t strategyCount = std::size(strategies);

constexpr int64_t maximumSize = 1 << 20;

/// Reads pins one after the other; sizes stand in the order of `strategies`, 0 where not given.
class PinReader {
public:
  void read(std::string_view pin);

  std::array<int64_t, strategyCount> sizes = {};
  Diagnostics diagnostics;

private:
  void error(std::string_view field, const char *rule, std::string message) {
    diagnostics.push_back({{"--pin", 0, 0}, std::string(field), rule, std::move(message)});
  }
  void readSize(size_t strategy, std::string_view text);
};

void PinReader::readSize(size_t strategy, std::string_view text) {
  std::string_view name = strategies[strategy].name;
  int64_t size = 0;
  std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), size);
  // pin_r3. A number too large to read is refused by the same words as one that is only too large.
  bool isNumber = read.ptr == text.data() + text.size() && !text.empty() &&
                  read.ec != std::errc::invalid_argument;
  if (!isNumber || read.ec != std::errc() || size < 1 || size > maximumSize) {
    error(name, "pin_r3",
          "expected a number from 1 to " + detail::text(maximumSize) + ", got " +
              detail::quote(text));
    return;
  }
  // pin_r2
  if (sizes[strategy] != 0) {
    error(name, "pin_r2",
          "expected at most once, got " + detail::text(sizes[strategy]) + " and " +
              detail::text(size));
    return;
  }
  sizes[strategy] = size;
}

void PinReader::read(std::string_view pin) {
  // pin_r1
  size_t equals = pin.find('=');
  if (equals == std::string_view::npos) {
    error("", "pin_r1", "expected name=size as in dp=2, got " + detail::quote(pin));
    return;
  }
  std::string_view name = pin.substr(0, equals);
  std::vector<std::string> names;
  for (size_t i = 0; i < strategyCount; ++i) {
    if (strategies[i].name == name) {
      readSize(i, pin.substr(equals + 1));
      return;
    }
    names.emplace_back(strategies[i].name);
  }
  error("", "pin_r1",
        "unknown name " + detail::quote(name) + detail::suggestion(name, names, "names"));
}

} // namespace

Result<PlanSpec> applyPins(const std::vector<std::string> &pins) {
  PinReader reader;
  for (std::string_view list : pins) {
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = std::min(list.find(',', begin), list.size());
      reader.read(list.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  PlanSpec plan;
  int64_t ranks = 1;
  for (size_t i = 0; i < strategyCount; ++i) {
    if (reader.sizes[i] <= 1) {
      continue;
    }
    std::string name(strategies[i].name);
    ranks *= reader.sizes[i];
    plan.mesh.push_back({name, reader.sizes[i], {"--pin", 0, 0}});
    for (std::string_view dimension : strategies[i].dimensions) {
      plan.shardings.push_back({"*", std::string(dimension), {name}, {"--pin", 0, 0}});
    }
  }
  // pin_r4. Two sizes of 20 bits each cannot overflow their product.
  if (ranks > maximumSize) {
    reader.diagnostics.push_back({{"--pin", 0, 0},
                                  "",
                                  "pin_r4",
                                  "expected at most " + detail::text(maximumSize) +
                                      " ranks in all, got " + detail::text(ranks)});
  }
  if (!reader.diagnostics.empty()) {
    return reader.diagnostics;
  }
  return plan;
}

} // namespace weft::desc
