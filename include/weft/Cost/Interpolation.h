//===- Interpolation.h - interpolation between measured points ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both functions return a measured value at its own point, and never a value above the largest or
// below the smallest measured value: they do not extrapolate. They keep no state; any number of
// threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COST_INTERPOLATION_H
#define WEFT_COST_INTERPOLATION_H

#include <array>
#include <span>

namespace weft::cost {

/// A value `y` measured at `x`. Both are above 0.
struct Point {
  double x = 0, y = 0;
};

/// Interpolates linearly in log x and log y between neighbouring points; returns the end's value
/// beyond the ends. The points may have any order. REQUIRES: at least one point, no x twice.
double interpolate(std::span<const Point> points, double x);

/// A value `y` measured for a matmul of sides `sides`, or for attention. All are above 0.
struct ShapePoint {
  std::array<double, 3> sides = {};
  double y = 0;
};

/// Inverse-distance weighting (D. Shepard, A two-dimensional interpolation function for
/// irregularly-spaced data, 1968) of log y over the logarithms of the sides, with weights 1 / d^4.
/// With 1 / d^2, many far points would outweigh the few near ones in three dimensions.
/// REQUIRES: at least one point.
double interpolate(std::span<const ShapePoint> points, const std::array<double, 3> &sides);

} // namespace weft::cost

#endif // WEFT_COST_INTERPOLATION_H
