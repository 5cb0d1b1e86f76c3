//===- LossCurve.cpp - the loss over a run, drawn in characters -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "report/LossCurve.h"

#include <algorithm>
#include <cstdio>
#include <vector>

using namespace weft::rt;

static constexpr size_t kColumns = 64;
static constexpr size_t kRows = 10;

/// Returns the means of equal parts of `losses`, one for each column.
static std::vector<double> columnMeans(std::span<const double> losses) {
  size_t columns = std::min(kColumns, losses.size());
  std::vector<double> means(columns);
  for (size_t column = 0; column < columns; ++column) {
    size_t begin = column * losses.size() / columns, end = (column + 1) * losses.size() / columns;
    for (size_t i = begin; i < end; ++i) {
      means[column] += losses[i] / double(end - begin);
    }
  }
  return means;
}

std::string weft::rt::drawLossCurve(std::span<const double> losses, int64_t firstStep) {
  if (losses.size() < 2) {
    return "";
  }
  std::vector<double> means = columnMeans(losses);
  auto [least, most] = std::minmax_element(means.begin(), means.end());
  double low = *least, range = std::max(*most - *least, 1e-12);
  std::string text;
  for (size_t row = kRows; row-- > 0;) {
    char label[32];
    std::snprintf(label, sizeof label, "%10.4g |", low + range * double(row) / (kRows - 1));
    std::string line = label;
    for (double mean : means) {
      line += size_t((mean - low) / range * (kRows - 1) + 0.5) == row ? '*' : ' ';
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  std::string first = std::to_string(firstStep);
  std::string last = std::to_string(firstStep + int64_t(losses.size()) - 1);
  size_t gap =
      means.size() > first.size() + last.size() ? means.size() - first.size() - last.size() : 1;
  text += "      loss +" + std::string(means.size(), '-') + "\n";
  return text + "       step " + first + std::string(gap, ' ') + last + "\n";
}
