//===- ShrunkSizes.h - small sizes with the divisibilities of large ones --===//
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

/// A dimension to make smaller.
struct LargeDimension {
  /// Its name in plans.
  std::string name;
  int64_t size = 0;
  /// The small size is at least `least`, a multiple of `multipleOf` and, if possible, at most
  /// `most`.
  int64_t least = 1, most = std::numeric_limits<int64_t>::max(), multipleOf = 1;
  /// True if shards of the small model must be divisible by 2 if and only if large ones are.
  bool halves = false;
  /// Number of parts of the dimension that are computed one after the other, each cut like the
  /// whole: in the large and in the small model.
  int64_t largeParts = 1, smallParts = 1;
};

/// Chooses sizes of dimensions, no two alike where they may differ. For one thread.
///
/// A product of axes divides a small size if and only if it divides the large size. If the plan
/// pads the large size, it pads the small one too, and the rule applies to both sizes with their
/// padding. Homes that pad variables alone follow from the first rule.
class ShrunkSizes {
public:
  /// The plans of the large and of the small model; only sizes of axes differ.
  ShrunkSizes(const desc::PlanSpec &large, const desc::PlanSpec &small);

  /// Returns a size for `dimension`, at most its large size, that fulfils the rules above as far as
  /// possible.
  int64_t choose(const LargeDimension &dimension);

  /// Returns the size nearest to `wanted` that the same products of axes divide as divide
  /// `dimension`: a greater one if there is one up to `most`, or one less by at most a third;
  /// `wanted` if there is none.
  int64_t nearest(const LargeDimension &dimension, int64_t wanted, int64_t most) const;

  /// Returns the least number that all small products of axes divide whose large ones divide
  /// `size`.
  int64_t unitOf(int64_t size) const;

  /// Returns a sentence on the rules that `chosen` violates; empty if it violates none.
  std::string difference(const LargeDimension &dimension, int64_t chosen) const;

private:
  /// A product of axes, in the large and in the small plan.
  using Product = std::pair<int64_t, int64_t>;
  /// How a plan cuts a dimension.
  struct Cuts {
    /// Numbers of shards.
    std::set<Product> shards;
    /// The least common multiple of `shards`; padded sizes are multiples of it.
    Product unit = {1, 1};

    int64_t padLarge(int64_t size) const {
      return (size + unit.first - 1) / unit.first * unit.first;
    }
    int64_t padSmall(int64_t size) const {
      return (size + unit.second - 1) / unit.second * unit.second;
    }
  };
  Cuts cutsOf(const LargeDimension &dimension) const;

  bool dividesAlike(const LargeDimension &dimension, const Cuts &cuts, int64_t chosen,
                    bool exactly) const;
  static bool isPaddedAlike(const LargeDimension &dimension, const Cuts &cuts, int64_t chosen,
                            bool exactly);
  /// Returns the first suitable size of at least `least` that is not taken yet, or, with
  /// `mayBeTaken`, any; 0 if there is none.
  int64_t find(const LargeDimension &dimension, const Cuts &cuts, int64_t least, bool exactly,
               bool mayBeTaken = false) const;

  const desc::PlanSpec &large, &small;
  std::set<Product> products;
  std::set<int64_t> taken;
};

} // namespace weft::verify

#endif // WEFT_LIB_VERIFY_SHRUNKSIZES_H
