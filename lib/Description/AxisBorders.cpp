//===- AxisBorders.cpp - where a plan splits an axis of its mesh ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AxisBorders.h"

#include "Text.h"

#include <algorithm>

namespace weft::desc::detail {

std::string AxisBorders::add(int64_t before, int64_t length) {
  if (length < 2) {
    return "expected a size of at least 2, got " + text(length);
  }
  if (size % (before * length) != 0) {
    return text(before) + " * " + text(length) + " does not divide the axis's size " + text(size);
  }
  for (int64_t border : {before, before * length}) {
    auto crossed = std::find_if(borders.begin(), borders.end(), [&](int64_t other) {
      return std::max(other, border) % std::min(other, border) != 0;
    });
    if (crossed != borders.end()) {
      return "the axis is also split into " + text(*crossed) + " * " + text(size / *crossed) +
             ", which " + text(border) + " * " + text(size / border) + " crosses";
    }
    borders.insert(border);
  }
  return "";
}

std::vector<int64_t> AxisBorders::parts() const {
  std::vector<int64_t> sizes;
  for (auto border = borders.begin(); std::next(border) != borders.end(); ++border) {
    sizes.push_back(*std::next(border) / *border);
  }
  return sizes;
}

} // namespace weft::desc::detail
