//===- Summary.h - many facts in few entries of a plan --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_SUMMARY_H
#define WEFT_LIB_PIPELINE_PLAN_SUMMARY_H

#include "weft/Description/Plan.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// The axes that cut one dimension of an op or a variable.
struct Fact {
  /// The names that an entry may use for the op or variable.
  std::vector<std::string> names;
  /// Patterns that match one of the names, the widest first; the last matches nothing else.
  std::vector<std::string> patterns;
  std::string dimension;
  std::vector<std::string> axes;
  /// The axes that cut the dimension without any entry.
  std::optional<std::vector<std::string>> byDefault;
};

/// Says whether an entry for all values, "*", may cut a dimension by these axes.
using MayCutAll =
    llvm::function_ref<bool(const std::string &dimension, const std::vector<std::string> &axes)>;

/// Returns entries that state all facts: wide patterns that hold for most, then exceptions. The
/// last entry that matches a fact holds for it.
std::vector<desc::ShardingSpec> summarize(const std::vector<Fact> &facts, MayCutAll mayCutAll);

/// Returns `name` with '*' for each number between dots: "layers.*.norm.weight".
std::string withoutNumbers(const std::string &name);

/// Returns the patterns of `name`, the widest first: for "adam_m/layers.0.norm.weight" these are
/// "*",
/// "*/*", "*/layers.*.norm.weight", "adam_m/layers.*.norm.weight" and the name itself.
std::vector<std::string> patternsOf(const std::string &name);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_SUMMARY_H
