//===- Pins.cpp - short forms of known strategies -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include "Text.h"

#include <charconv>
#include <map>
#include <span>

namespace weft::desc {

namespace {

constexpr int64_t maximumSize = 1 << 20;

/// A pin's value as written, "4" or "true"; sizes and levels are numbers, switches 0 and 1.
using Values = std::map<std::string_view, int64_t>;

int64_t sizeOf(const Values &values, std::string_view name) {
  auto found = values.find(name);
  return found == values.end() ? 1 : found->second;
}

struct PinKind {
  std::string_view name;
  /// The numbers that it takes; a switch takes false and true.
  int64_t least, most;
  bool isSwitch = false;
  /// The pin that it goes together with, or none.
  std::string_view needs = {};
  /// Writes what it stands for.
  void (*apply)(PlanSpec &plan, int64_t value) = nullptr;
};

const Location pinned = {"--pin", 0, 0};

void addAxis(PlanSpec &plan, std::string name, int64_t size,
             std::initializer_list<const char *> dimensions) {
  plan.mesh.push_back({name, size, pinned});
  for (const char *dimension : dimensions) {
    plan.shardings.push_back({"*", dimension, {name}, pinned});
  }
}

void applyDataParallel(PlanSpec &plan, int64_t size) { addAxis(plan, "dp", size, {"batch"}); }

void applyTensorParallel(PlanSpec &plan, int64_t size) {
  addAxis(plan, "tp", size, {"kv_heads", "ffn", "vocab"});
}

/// Korthikanti et al., Reducing activation recomputation in large transformer models, arXiv
/// 2205.05198: what lies between the products that tp cuts is cut by tokens, or else whole.
void applySequenceParallel(PlanSpec &plan, int64_t on) {
  for (const char *between : {"*norm", "*residual"}) {
    if (on) {
      plan.shardings.push_back({between, "sequence", {"tp"}, pinned});
    } else {
      plan.shardings.push_back({between, "sequence", {}, pinned});
      plan.shardings.push_back({between, "hidden", {}, pinned});
    }
  }
}

/// Rajbhandari et al., ZeRO: memory optimizations toward training trillion parameter models, arXiv
/// 1910.02054, by cutting every matrix along the dimension that all of them have. Gradients need no
/// entry: they lie where the states that they change do.
void applyZero(PlanSpec &plan, int64_t stage) {
  for (std::string_view dimension : dimensionNames()) {
    // A parameter that products cut lies cut, and inputs are no matter of this.
    bool isCut = axesFor(plan.shardings, "", dimension).has_value();
    bool isOfInputs = dimension == "batch" || dimension == "sequence";
    if (!isCut && !isOfInputs && !(stage == 3 && dimension == "hidden")) {
      plan.homes.push_back({"*", std::string(dimension), {}, pinned});
    }
  }
  if (stage > 0) {
    plan.homes.push_back({stage == 3 ? "*" : "*/*", "hidden", {"dp"}, pinned});
  }
}

/// In the order of mesh axes, major to minor: tensor parallel ranks talk most, so they are nearest.
constexpr PinKind kinds[] = {
    {"dp", 1, maximumSize, false, {}, applyDataParallel},
    {"tp", 1, maximumSize, false, {}, applyTensorParallel},
    {"sp", 0, 1, true, "tp", applySequenceParallel},
    {"zero", 0, 3, false, "dp", applyZero},
};

/// Reads pins one after the other.
class PinReader {
public:
  void read(std::string_view pin);
  void checkTogether();

  Values values;
  Diagnostics diagnostics;

private:
  void error(std::string_view field, const char *rule, std::string message) {
    diagnostics.push_back({pinned, std::string(field), rule, std::move(message)});
  }
  void readValue(const PinKind &kind, std::string_view text);
};

void PinReader::readValue(const PinKind &kind, std::string_view text) {
  // pin_r3. A number too large to read is refused by the same words as one that is only too large.
  int64_t value = 0;
  bool valid = true;
  if (kind.isSwitch) {
    valid = text == "true" || text == "false";
    value = text == "true";
  } else {
    std::from_chars_result read = std::from_chars(text.data(), text.data() + text.size(), value);
    valid = read.ptr == text.data() + text.size() && !text.empty() && read.ec == std::errc() &&
            value >= kind.least && value <= kind.most;
  }
  if (!valid) {
    std::string range = kind.isSwitch ? "true or false"
                                      : "a number from " + detail::text(kind.least) + " to " +
                                            detail::text(kind.most);
    error(kind.name, "pin_r3", "expected " + range + ", got " + detail::quote(text));
    return;
  }
  // pin_r2
  if (auto [known, isNew] = values.try_emplace(kind.name, value); !isNew) {
    error(kind.name, "pin_r2",
          "expected at most once, got " + detail::text(known->second) + " and " +
              detail::text(value));
  }
}

void PinReader::read(std::string_view pin) {
  // pin_r1
  size_t equals = pin.find('=');
  if (equals == std::string_view::npos) {
    error("", "pin_r1", "expected name=value as in dp=2, got " + detail::quote(pin));
    return;
  }
  std::string_view name = pin.substr(0, equals);
  std::vector<std::string> names;
  for (const PinKind &kind : kinds) {
    if (kind.name == name) {
      readValue(kind, pin.substr(equals + 1));
      return;
    }
    names.emplace_back(kind.name);
  }
  error("", "pin_r1",
        "unknown name " + detail::quote(name) + detail::suggestion(name, names, "names"));
}

void PinReader::checkTogether() {
  // pin_r4. Two sizes of 20 bits each cannot overflow their product.
  int64_t ranks = sizeOf(values, "dp") * sizeOf(values, "tp");
  if (ranks > maximumSize) {
    error("", "pin_r4",
          "expected at most " + detail::text(maximumSize) + " ranks in all, got " +
              detail::text(ranks));
  }
  // pin_r5
  for (const PinKind &kind : kinds) {
    bool asks = values.contains(kind.name) && values[kind.name] > 0;
    if (asks && !kind.needs.empty() && sizeOf(values, kind.needs) == 1) {
      std::string needs(kind.needs);
      error(kind.name, "pin_r5", "expected " + needs + " of at least 2 beside it, got none");
    }
  }
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
  reader.checkTogether();
  if (!reader.diagnostics.empty()) {
    return reader.diagnostics;
  }
  PlanSpec plan;
  if (sizeOf(reader.values, "dp") == 1 && sizeOf(reader.values, "tp") > 1) {
    plan.shardings.push_back({"*", "batch", {}, pinned}); // Nothing but dp splits it.
  }
  for (const PinKind &kind : kinds) {
    auto value = reader.values.find(kind.name);
    bool isAxisOfOne = kind.most == maximumSize && sizeOf(reader.values, kind.name) == 1;
    if (value != reader.values.end() && !isAxisOfOne) {
      kind.apply(plan, value->second);
    }
  }
  return plan;
}

} // namespace weft::desc
