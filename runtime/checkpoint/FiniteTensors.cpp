//===- FiniteTensors.cpp - no file keeps numbers that are not finite ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "checkpoint/FiniteTensors.h"

#include "support/Elements.h"
#include "support/Text.h"

#include <cmath>

using namespace weft::rt;

std::optional<std::string> weft::rt::notFiniteText(const std::string &name, ElementType type,
                                                   const Region &region,
                                                   std::span<const char> bytes, uint64_t first,
                                                   int64_t step) {
  std::optional<uint64_t> found = firstNotFinite(type, bytes);
  if (!found) {
    return std::nullopt;
  }
  double value = elementAt(type, bytes.data(), *found);
  std::vector<int64_t> index(region.shape.size());
  uint64_t place = first + *found;
  for (size_t i = index.size(); i-- > 0;) {
    auto length = uint64_t(region.shape[i]);
    index[i] = region.offset[i] + int64_t(place % length);
    place /= length;
  }
  return concat("after ", step, " steps '", name, "' has ",
                std::isnan(value) ? "nan"
                : value > 0       ? "inf"
                                  : "-inf",
                " at ", shapeText(index), ", expected finite numbers");
}
