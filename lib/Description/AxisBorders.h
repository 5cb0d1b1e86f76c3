//===- AxisBorders.h - where a plan splits an axis of its mesh ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_DESCRIPTION_AXISBORDERS_H
#define WEFT_LIB_DESCRIPTION_AXISBORDERS_H

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace weft::desc::detail {

/// The borders between the parts of one axis: 1, 2 and 8 for an axis of 8 that is split into 2 and
/// 4. Each border divides the next.
class AxisBorders {
public:
  /// An axis of `size` ranks, at least 1, that is not split.
  explicit AxisBorders(int64_t size) : size(size), borders({1, size}) {}

  /// Splits the axis where the sub-axis of `length` ranks behind `before` begins and ends. Returns
  /// why that is not possible; empty on success. REQUIRES: both are from 1 to 2^20.
  std::string add(int64_t before, int64_t length);

  /// Returns the sizes of the parts, major to minor.
  std::vector<int64_t> parts() const;

private:
  int64_t size;
  std::set<int64_t> borders;
};

} // namespace weft::desc::detail

#endif // WEFT_LIB_DESCRIPTION_AXISBORDERS_H
