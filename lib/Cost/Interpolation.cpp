//===- Interpolation.cpp - interpolation between measured points ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Interpolation.h"

#include <cmath>

namespace weft::cost {

double interpolate(std::span<const Point> points, double x) {
  const Point *below = nullptr, *above = nullptr;
  for (const Point &point : points) {
    if (point.x <= x && (!below || point.x > below->x)) {
      below = &point;
    }
    if (point.x >= x && (!above || point.x < above->x)) {
      above = &point;
    }
  }
  if (!below || !above || below == above) {
    return (below ? below : above)->y;
  }
  double share = std::log(x / below->x) / std::log(above->x / below->x);
  return below->y * std::pow(above->y / below->y, share);
}

double interpolate(std::span<const ShapePoint> points, const std::array<double, 3> &sides) {
  double weights = 0, sum = 0;
  for (const ShapePoint &point : points) {
    double squared = 0;
    for (size_t side = 0; side < 3; ++side) {
      double step = std::log2(sides[side] / point.sides[side]);
      squared += step * step;
    }
    if (squared == 0) {
      return point.y;
    }
    double weight = 1 / (squared * squared);
    weights += weight;
    sum += weight * std::log(point.y);
  }
  return std::exp(sum / weights);
}

} // namespace weft::cost
