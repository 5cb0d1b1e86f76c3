//===- Summary.h - many facts in few entries of a plan --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SUMMARY_H
#define WEFT_LIB_PIPELINE_PLAN_SUMMARY_H

#include "weft/Description/Plan.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// That a dimension of something is cut by axes.
struct Fact {
  /// What an entry may name it by.
  std::vector<std::string> names;
  /// Patterns that match one of the names, the widest first; the last matches nothing else.
  std::vector<std::string> patterns;
  std::string dimension;
  std::vector<std::string> axes;
  /// What holds without any entry.
  std::optional<std::vector<std::string>> byDefault;
};

/// Entries of which the last that matches a fact says it: wide ones that are right mostly, then
/// exceptions.
std::vector<desc::ShardingSpec> summarize(const std::vector<Fact> &facts);

/// `name` with every number that stands for itself between dots as '*': "layers.*.norm.weight".
std::string withoutNumbers(const std::string &name);

/// Patterns of `name`, the widest first: of "adam_m/layers.0.norm.weight" these are "*", "*/*",
/// "*/layers.*.norm.weight", "adam_m/layers.*.norm.weight" and itself.
std::vector<std::string> patternsOf(const std::string &name);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SUMMARY_H
