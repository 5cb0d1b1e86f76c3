//===- StageOrderText.cpp - a pipeline's schedule as text ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StageLists.h"
#include "Text.h"

#include <algorithm>
#include <charconv>

using namespace weft;
using namespace weft::desc;

using Kind = StageAction::Kind;

/// The names of actions, behind the number of the chunk. PyTorch has the same.
constexpr std::pair<std::string_view, Kind> kNames[] = {
    {"F", Kind::Forward},
    {"B", Kind::Backward},
    {"I", Kind::InputGradients},
    {"W", Kind::WeightGradients},
    {"UNSHARD", Kind::Unshard},
    {"RESHARD", Kind::Reshard},
    {"REDUCE_GRAD", Kind::ReduceGrad},
};

std::string weft::desc::printActions(const std::vector<StageAction> &actions) {
  std::string text;
  for (const StageAction &action : actions) {
    text += (text.empty() ? "" : ",") + std::to_string(action.chunk);
    text +=
        std::ranges::find(kNames, action.kind, &std::pair<std::string_view, Kind>::second)->first;
    text += action.isOfMicroBatch() ? std::to_string(action.microBatch) : "";
  }
  return text;
}

/// Takes a number below `limit` from the front of `text`.
static std::optional<int64_t> takeNumber(std::string_view &text, int64_t limit) {
  int64_t number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number >= limit || text.front() == '-') {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

static std::optional<StageAction> parseAction(std::string_view text) {
  std::optional<int64_t> chunk = takeNumber(text, kMostChunks);
  for (const auto &[name, kind] : kNames) {
    if (!chunk || !text.starts_with(name)) {
      continue;
    }
    text.remove_prefix(name.size());
    StageAction action{*chunk, kind};
    if (action.isOfMicroBatch()) {
      std::optional<int64_t> microBatch = takeNumber(text, kMostMicroBatches);
      action.microBatch = microBatch.value_or(0);
      return microBatch && text.empty() ? std::optional(action) : std::nullopt;
    }
    return text.empty() ? std::optional(action) : std::nullopt;
  }
  return std::nullopt;
}

/// Returns the fault of an action that cannot be read.
static std::string faultOf(std::string_view action) {
  constexpr size_t kLongest = 20;
  return "expected actions such as 0F3 or 0B3, forward or backward of micro-batch 3 in chunk 0, "
         "0I3 or 0W3, its gradients of inputs or weights, or 0UNSHARD, 0RESHARD or 0REDUCE_GRAD, "
         "got " +
         detail::quote(action, kLongest);
}

std::variant<StageSchedule, ScheduleFault>
weft::desc::parseSchedule(const std::vector<std::string> &rows) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  StageSchedule schedule;
  for (const std::string &row : rows) {
    std::vector<StageAction> &actions = schedule.emplace_back();
    for (size_t begin = 0; (begin = row.find_first_not_of(kSeparators, begin)) != row.npos;) {
      size_t end = std::min(row.find_first_of(kSeparators, begin), row.size());
      std::string_view text = std::string_view(row).substr(begin, end - begin);
      std::optional<StageAction> action = parseAction(text);
      if (!action) {
        return ScheduleFault{static_cast<int64_t>(schedule.size()) - 1, faultOf(text)};
      }
      actions.push_back(*action);
      begin = end;
    }
    detail::numberGathers(actions);
  }
  return schedule;
}
