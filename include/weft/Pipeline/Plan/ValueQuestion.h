//===- ValueQuestion.h - why a value is sharded as it is ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The search of Plan (makeShardingSearch) reads a question and returns an answer: how a value is
// sharded, why, and what a step would take at best if it were sharded in other ways, each of which
// takes a search of its own. Where no value or more than one has the name, the search fails without
// a message, and the answer lists the names that there are.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_PLAN_VALUEQUESTION_H
#define WEFT_PIPELINE_PLAN_VALUEQUESTION_H

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace weft {

/// What a step takes at best where the value lies so: as SearchReport says it.
struct LayoutPrice {
  /// "batch over dp, ffn over tp", or "whole".
  std::string layout;
  double seconds = 0, bytes = 0;
  /// Whether that was found to fit into memory.
  bool fits = false;
};

struct ValueQuestion {
  /// A variable's name, an op's own as plans have it ("mlp.up/contract/1"), or the part of the
  /// model that an op comes from; '*' stands for any run of characters. What a layer has may be
  /// named with the layer, "layers.3.mlp.up".
  std::string name;
  /// Layouts to price beside the chosen one: those that take the least if nothing else moves.
  size_t most = 12;
  /// Is called before each of them with its number, from 1, and how many there are; may be empty.
  std::function<void(size_t, size_t)> progress;
};

struct ValueAnswer {
  /// Of all values that the name fits, if that is none or several; else of all that there are.
  std::vector<std::string> names;
  bool isAmbiguous = false;

  /// What was found, as "parameter mlp.up.weight, tensor<64x32xf32>", and the others
  /// that are decided together with it.
  std::string value;
  size_t together = 0;
  std::string why;
  LayoutPrice chosen;
  /// By time, and what does not fit last.
  std::vector<LayoutPrice> others;
  /// All ways that there are, those included which were not priced, and those that cannot be.
  size_t ways = 0;
};

} // namespace weft

#endif // WEFT_PIPELINE_PLAN_VALUEQUESTION_H
