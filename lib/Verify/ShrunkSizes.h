//===- ShrunkSizes.h - small sizes that divide as the large ones do -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_VERIFY_SHRUNKSIZES_H
#define WEFT_LIB_VERIFY_SHRUNKSIZES_H

#include "weft/Description/Plan.h"

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::verify {

/// A dimension that is to become smaller.
struct LargeDimension {
  /// What a plan calls it.
  std::string name;
  int64_t size = 0;
  /// What the small size must be at least and, if it can be, at most, and what it is a multiple of.
  int64_t least = 1, most = std::numeric_limits<int64_t>::max(), multipleOf = 1;
  /// Whether the shards of ranks have halves where they had.
  bool halves = false;
  /// Parts that it is dealt into, one after the other, which are cut as the whole is: before and
  /// after.
  int64_t largeParts = 1, smallParts = 1;
};

/// Chooses sizes of dimensions, no two alike where they may differ. For one thread.
///
/// A small size is divided by a product of axes where the large one is. A size that the plan cuts
/// and its axes do not divide is padded; then so is the small one, and what is said of the large
/// size holds of both with their padding.
class ShrunkSizes {
public:
  /// The plan before and after; only sizes of axes differ.
  ShrunkSizes(const desc::PlanSpec &large, const desc::PlanSpec &small);

  /// A size for `dimension`, never above what it has: as near as there is one to what is said
  /// above.
  int64_t choose(const LargeDimension &dimension);

  /// A sentence on what is not the same of `chosen`; empty if all is.
  std::string difference(const LargeDimension &dimension, int64_t chosen) const;

private:
  /// A product of axes, before and after.
  using Product = std::pair<int64_t, int64_t>;
  /// How a plan cuts a dimension.
  struct Cuts {
    /// Numbers of shards.
    std::set<Product> shards;
    /// The least common multiple of all of them, which padded sizes are multiples of.
    Product unit = {1, 1};

    int64_t padLarge(int64_t size) const {
      return (size + unit.first - 1) / unit.first * unit.first;
    }
    int64_t padSmall(int64_t size) const {
      return (size + unit.second - 1) / unit.second * unit.second;
    }
  };
  Cuts cutsOf(const std::string &name) const;

  bool dividesAlike(const LargeDimension &dimension, const Cuts &cuts, int64_t chosen,
                    bool exactly) const;
  static bool isPaddedAlike(const LargeDimension &dimension, const Cuts &cuts, int64_t chosen,
                            bool exactly);
  /// The first such size of at least `least` that is not taken, or may be; 0 if none is.
  int64_t find(const LargeDimension &dimension, const Cuts &cuts, int64_t least, bool exactly,
               bool mayBeTaken = false) const;

  const desc::PlanSpec &large, &small;
  std::set<Product> products;
  std::set<int64_t> taken;
};

} // namespace weft::verify

#endif // WEFT_LIB_VERIFY_SHRUNKSIZES_H
