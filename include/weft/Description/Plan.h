//===- Plan.h - how a program is split over a mesh of ranks ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A plan is a mesh of ranks with named axes, and for logical dimensions of
// values the axes that split them, as far as it does not leave that to the search. It names no
// strategy: data or tensor parallelism is what a reader sees in it. Its text form is short, can be
// edited by hand, and has a hash that is equal exactly where the text is.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_PLAN_H
#define WEFT_DESCRIPTION_PLAN_H

#include "weft/Description/Diagnostic.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::desc {

/// One mesh axis; its size is at least 2.
struct AxisSpec {
  std::string name;
  int64_t size = 0;
  /// Where it was written; not part of the plan's identity.
  Location location;
};

/// Splits one logical dimension of some values.
struct ShardingSpec {
  /// Names of values; `*` stands for any run of characters, also for none.
  std::string value = "*";
  /// What isDimensionName or isOpDimension knows.
  std::string dimension;
  /// Axes that split the dimension, major to minor. None: it is whole.
  std::vector<std::string> axes;
  /// Where it was written; not part of the plan's identity.
  Location location;
  /// Which of two holds that cannot both: the lower. At least 0.
  int64_t priority = 0;
};

/// Mesh axes are major to minor: ranks are numbered row-major, the last axis varies fastest. No
/// axis means one rank. Where several shardings match a value and dimension, that of the lowest
/// priority holds, of equal ones the last, and the same of homes, which go before shardings.
struct PlanSpec {
  std::vector<AxisSpec> mesh;
  /// Of operations, and of the variables that they are named for.
  std::vector<ShardingSpec> shardings;
  /// Of variables between steps.
  std::vector<ShardingSpec> homes;
  /// Whether dimensions that axes do not divide are padded; else they are refused.
  bool mayPad = true;
  /// Micro-batches in a step, at least 1.
  int64_t accumulation = 1;
  /// Where that was written; not part of the plan's identity.
  Location accumulationLocation;

  /// Number of ranks: the product of the axis sizes.
  int64_t ranks() const;
  /// The axis of that name, or null.
  const AxisSpec *axis(std::string_view name) const;
};

/// Equal in everything but locations.
bool operator==(const PlanSpec &a, const PlanSpec &b);

/// The logical dimensions a plan may split: batch, sequence, kv_heads, group, head, ffn, vocab,
/// hidden, positions, experts, and keys, the sequence as attention sees it.
std::span<const std::string_view> dimensionNames();

/// Whether `name` is one of dimensionNames(), or d0 to d99, which the dimensions of a graph's
/// variables are called by their place where they have no other name.
bool isDimensionName(std::string_view name);

/// Whether `name` is what a plan says of operations alone: factorN, what the operation's rule calls
/// number N, for what has no other name; or terms and termsN, the axes over which all operands, or
/// operand N, are sums that are still pending.
bool isOpDimension(std::string_view name);

/// Whether `name` matches `pattern`, in which `*` stands for any run of characters. Linear in the
/// product of the lengths.
bool matchesPattern(std::string_view pattern, std::string_view name);

/// That of `shardings` which holds for `dimension` of `value`; null where none matches.
const ShardingSpec *entryFor(const std::vector<ShardingSpec> &shardings, std::string_view value,
                             std::string_view dimension);

/// The axes of that entry; nothing where there is none.
std::optional<std::vector<std::string>> axesFor(const std::vector<ShardingSpec> &shardings,
                                                std::string_view value, std::string_view dimension);

/// Reads a text file of proto/weft/plan.proto. Fails where the file cannot be read, does not parse
/// or violates a rule; then lists everything that is wrong.
Result<PlanSpec> loadPlan(const std::string &path);

/// As loadPlan, from text; `file` is only for diagnostics.
Result<PlanSpec> parsePlan(std::string_view text, const std::string &file = "plan");

/// The plan of a mesh alone, written as "dp=2,tp=4", of which nothing is pinned. Fails as loadPlan
/// does.
Result<PlanSpec> parseMesh(std::string_view text);

/// What an entry says, as messages quote it: its place, if it is known, and its text.
std::string describeEntry(const ShardingSpec &entry);

/// The canonical text: fixed order of fields, defaults written out, one sharding per line. Parsing
/// it gives an equal plan.
std::string printPlan(const PlanSpec &plan);

/// 16 hexadecimal digits: 64-bit FNV-1a of the canonical text. A name for a plan, not a protection
/// against forgery.
std::string hashPlan(const PlanSpec &plan);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_PLAN_H
