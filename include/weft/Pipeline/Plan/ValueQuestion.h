//===- ValueQuestion.h - why a value is sharded as it is ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search of Plan (makeShardingSearch) reads a question about one value and returns the answer:
// the layout of the value, the reason for it, and the least cost of a step in other layouts, each
// of which takes another search. If the name fits no value or several, the search fails without a
// message, and the answer lists the names to choose from.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_VALUEQUESTION_H
#define WEFT_PIPELINE_PLAN_VALUEQUESTION_H

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weft {

/// The least cost of a step in which the value has a layout, in the units of SearchReport.
struct LayoutPrice {
  /// "batch over dp, ffn over tp", or "whole".
  std::string layout;
  double seconds = 0, bytes = 0;
  /// True if the search found a choice with this layout that fits into memory.
  bool fits = false;
};

struct ValueQuestion {
  /// The name of a variable, an op's own name as in plans ("mlp.up/contract/1"), or an op's part of
  /// the model; '*' stands for any characters. Names in a layer may include the layer,
  /// "layers.3.mlp.up".
  std::string name;
  /// Most layouts to price beside the chosen one: those that cost least if nothing else changes.
  size_t most = 12;
  /// Called before each of these layouts with its number, from 1, and their count; may be empty.
  std::function<void(size_t, size_t)> progress;
};

struct ValueAnswer {
  /// If the name fits several values, their names, and `isAmbiguous` is true; if it fits none, the
  /// names of all values. Empty if it fits one.
  std::vector<std::string> names;
  bool isAmbiguous = false;

  /// The value, as "parameter mlp.up.weight, tensor<64x32xf32>", the number of other values that
  /// are decided together with it, and the reason for its layout.
  std::string value;
  size_t together = 0;
  std::string why;
  LayoutPrice chosen;
  /// The priced layouts, by time; those that do not fit stand last.
  std::vector<LayoutPrice> others;
  /// The number of all layouts, including those that were not priced or are impossible.
  size_t ways = 0;
};

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_VALUEQUESTION_H
