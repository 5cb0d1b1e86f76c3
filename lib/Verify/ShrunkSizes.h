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
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::verify {

/// Chooses sizes of dimensions, no two alike. For one thread.
class ShrunkSizes {
public:
  /// The axes before and after; as many of both.
  ShrunkSizes(const std::vector<desc::AxisSpec> &large, const std::vector<desc::AxisSpec> &small);

  /// A size for what has `size` elements: a multiple of `multipleOf`, at least `least`, which
  /// products of axes divide that divide `size`, and the others do not, as far as there is such a
  /// size. Never above `size`.
  /// With `halves`, the same holds of twice each product: pieces have halves where they had.
  int64_t choose(int64_t size, int64_t least, int64_t multipleOf = 1, bool halves = false);

  /// Whether the products of axes that divide `size` are those that divide `chosen`.
  bool dividesAlike(int64_t size, int64_t chosen) const;

private:
  int64_t chooseBy(int64_t size, int64_t least, int64_t multipleOf);
  /// The first such size that is not taken; 0 if none is.
  int64_t find(int64_t size, int64_t least, int64_t step, bool exactly) const;
  bool fits(int64_t size, int64_t chosen, bool exactly) const;

  using Products = std::set<std::pair<int64_t, int64_t>>;
  /// The products of axes, before and after.
  Products products;
  std::set<int64_t> taken;
};

} // namespace weft::verify

#endif // WEFT_LIB_VERIFY_SHRUNKSIZES_H
