//===- Regions.h - which summands each rank has -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_REGIONS_H
#define WEFT_LIB_MEANING_REGIONS_H

#include "RankNumbers.h"

namespace weft::meaning {

/// A region is a set of index tuples, the summands of a sum over several indices: a list of boxes
/// that are disjoint, in a normal form for all regions that the algebra of shards makes. Its row
/// has the number of indices, then each box as pairs of first and end. Equal regions have one
/// number.
class Regions {
public:
  /// The box of `intervals`, pairs of first and end, one for each index; empty if one of them is.
  uint32_t box(llvm::ArrayRef<std::pair<int64_t, int64_t>> intervals);
  uint32_t empty(int64_t indices);
  /// All pairs of a tuple of `left` and one of `right`.
  uint32_t product(uint32_t left, uint32_t right);
  /// The union, or none if the regions are not disjoint but `mustBeDisjoint`.
  std::optional<uint32_t> join(llvm::ArrayRef<uint32_t> parts, bool mustBeDisjoint);
  int64_t indicesOf(uint32_t region) const { return rows[region].front(); }

private:
  using Box = std::vector<int64_t>;
  std::vector<Box> boxesOf(uint32_t region) const;
  uint32_t numberOf(int64_t indices, std::vector<Box> boxes);

  Rows rows;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> products;
  std::map<std::pair<bool, std::vector<uint32_t>>, std::optional<uint32_t>> joins;
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_REGIONS_H
