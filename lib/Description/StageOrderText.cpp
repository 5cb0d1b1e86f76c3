//===- StageOrderText.cpp - a pipeline's schedule as text ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/StageOrder.h"

#include "Text.h"

#include <charconv>

using namespace weft;
using namespace weft::desc;

using Direction = StageAction::Direction;

std::string weft::desc::printActions(const std::vector<StageAction> &actions) {
  std::string text;
  for (const StageAction &action : actions) {
    text += (text.empty() ? "" : ",") + std::to_string(action.chunk) +
            (action.direction == Direction::Forward ? "F" : "B") +
            std::to_string(action.microBatch);
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
  if (!chunk || text.empty() || (text.front() != 'F' && text.front() != 'B')) {
    return std::nullopt;
  }
  auto direction = text.front() == 'F' ? Direction::Forward : Direction::Backward;
  text.remove_prefix(1);
  std::optional<int64_t> microBatch = takeNumber(text, kMostMicroBatches);
  return microBatch && text.empty() ? std::optional(StageAction{*chunk, direction, *microBatch})
                                    : std::nullopt;
}

/// Returns the fault of an action that cannot be read.
static std::string faultOf(std::string_view action) {
  constexpr size_t kLongest = 20;
  return "expected actions such as 0F3 or 0B3, forward or backward of micro-batch 3 in chunk 0, "
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
  }
  return schedule;
}
