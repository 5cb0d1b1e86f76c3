//===- Interpolation.h - between measured points --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both functions give back a measured value at its own point, and nothing above the
// largest or below the smallest measured value: what was never measured is never
// invented. They keep no state; any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COST_INTERPOLATION_H
#define WEFT_COST_INTERPOLATION_H

#include <array>
#include <span>

namespace weft::cost {

/// `y` was measured at `x`. Both are above 0.
struct Point {
  double x = 0, y = 0;
};

/// The value at `x`, on straight lines between neighbours in log x and log y; beyond the ends the
/// end's value. The points may come in any order. REQUIRES: at least one point, no x twice.
double interpolate(std::span<const Point> points, double x);

/// `y` was measured for a matmul of sides `sides`. All are above 0.
struct ShapePoint {
  std::array<double, 3> sides = {};
  double y = 0;
};

/// Inverse-distance weighting (D. Shepard, A two-dimensional interpolation function for
/// irregularly-spaced data, 1968) of log y over the logarithms of the sides, with weights 1 / d^4:
/// with the square, many points far off would outweigh the few near ones in three dimensions.
/// REQUIRES: at least one point.
double interpolate(std::span<const ShapePoint> points, const std::array<double, 3> &sides);

} // namespace weft::cost

#endif // WEFT_COST_INTERPOLATION_H
