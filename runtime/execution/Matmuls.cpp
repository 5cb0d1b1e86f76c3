//===- Matmuls.cpp - divides matmuls among threads ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Matmuls.h"

#include <algorithm>

using namespace weft::rt;

namespace {

/// Parts with fewer multiplications are not worth a thread.
constexpr int64_t kSmallestPart = 1 << 21;
/// The most rows and columns of a part, and elements of a narrow C: oneDNN's GEMM packs rows and
/// columns, and keeps the sums of a narrow C in float32. A thread so needs at most a few megabytes.
constexpr int64_t kLongest = 2048;
constexpr int64_t kMostSums = 1 << 20;
/// Parts begin at multiples of this many rows or columns, as the blocks of libraries do.
constexpr int64_t kBlock = 64;

/// Returns the beginning of part `i` of `count` of a dimension of `size`.
int64_t cutAt(int64_t size, int64_t i, int64_t count) {
  return i == count ? size : size * i / count / kBlock * kBlock;
}

/// Returns the number of parts of `length` that a dimension of `size` takes.
int64_t countOf(int64_t size, int64_t length) { return (size + length - 1) / length; }

struct Grid {
  int64_t rows = 1, columns = 1;
};

/// Returns the grid of `parts` parts with the smallest sum of rows and columns.
Grid squarest(int64_t m, int64_t n, int64_t parts) {
  Grid best{1, parts};
  for (int64_t rows = 1; rows <= parts; ++rows) {
    auto edge = [&](Grid grid) { return double(m) / grid.rows + double(n) / grid.columns; };
    Grid grid{rows, parts / rows};
    if (parts % rows == 0 && edge(grid) < edge(best)) {
      best = grid;
    }
  }
  return best;
}

int64_t countParts(const Matmul &matmul, int64_t cores) {
  double work = double(matmul.batch) * matmul.m * matmul.n * matmul.k;
  return cores == 1 ? 1 : int64_t(std::min(2.0 * cores, work / kSmallestPart));
}

} // namespace

std::vector<MatmulPart> weft::rt::cutMatmul(const Matmul &matmul, int64_t cores) {
  int64_t parts = countParts(matmul, cores);
  if (parts <= 1) {
    return {{matmul, 0, 0, 0}};
  }
  std::vector<MatmulPart> cut;
  bool isSum = matmul.batch > 1 && matmul.strideC == 0;
  if (matmul.batch >= parts && !isSum) {
    for (int64_t i = 0; i < parts; ++i) {
      int64_t from = matmul.batch * i / parts, to = matmul.batch * (i + 1) / parts;
      cut.push_back({matmul, from * matmul.strideA, from * matmul.strideB, from * matmul.strideC});
      cut.back().matmul.batch = to - from;
    }
    return cut;
  }
  Grid grid = squarest(matmul.m, matmul.n, parts);
  grid.rows = std::max(grid.rows, countOf(matmul.m, kLongest));
  grid.columns = std::max(grid.columns, countOf(matmul.n, kLongest));
  if (isNarrow(matmul.resultType())) {
    int64_t rows = countOf(matmul.m, grid.rows);
    grid.columns = std::max(grid.columns, countOf(matmul.n, kMostSums / rows));
  }
  for (int64_t i = 0; i < grid.rows; ++i) {
    for (int64_t j = 0; j < grid.columns; ++j) {
      int64_t row = cutAt(matmul.m, i, grid.rows), rowEnd = cutAt(matmul.m, i + 1, grid.rows);
      int64_t column = cutAt(matmul.n, j, grid.columns);
      int64_t columnEnd = cutAt(matmul.n, j + 1, grid.columns);
      if (row == rowEnd || column == columnEnd) {
        continue;
      }
      cut.push_back({matmul, matmul.transposeA ? row : row * matmul.lda,
                     matmul.transposeB ? column * matmul.ldb : column, row * matmul.ldc + column});
      cut.back().matmul.m = rowEnd - row;
      cut.back().matmul.n = columnEnd - column;
    }
  }
  return cut;
}
