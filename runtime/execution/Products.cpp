//===- Products.cpp - how matrix products are cut for threads ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Products.h"

#include <algorithm>

using namespace weft::rt;

namespace {

/// Below this many multiplications a piece is not worth a thread.
constexpr int64_t kSmallestPiece = 1 << 21;
/// Pieces begin at multiples of this many rows or columns, as libraries' blocks do.
constexpr int64_t kBlock = 64;

/// Where piece `i` of `count` begins, of a dimension of `size`.
int64_t cutAt(int64_t size, int64_t i, int64_t count) {
  return i == count ? size : size * i / count / kBlock * kBlock;
}

struct Grid {
  int64_t rows = 1, columns = 1;
};

/// Of all grids of `pieces`, the one whose pieces have the smallest sum of rows and columns.
Grid squarest(int64_t m, int64_t n, int64_t pieces) {
  Grid best{1, pieces};
  for (int64_t rows = 1; rows <= pieces; ++rows) {
    auto edge = [&](Grid grid) { return double(m) / grid.rows + double(n) / grid.columns; };
    Grid grid{rows, pieces / rows};
    if (pieces % rows == 0 && edge(grid) < edge(best)) {
      best = grid;
    }
  }
  return best;
}

int64_t countPieces(const Product &product, int64_t cores) {
  double work = double(product.batch) * product.m * product.n * product.k;
  return cores == 1 ? 1 : int64_t(std::min(2.0 * cores, work / kSmallestPiece));
}

} // namespace

std::vector<ProductPiece> weft::rt::cutProduct(const Product &product, int64_t cores) {
  int64_t pieces = countPieces(product, cores);
  if (pieces <= 1) {
    return {{product, 0, 0, 0}};
  }
  std::vector<ProductPiece> cut;
  bool isSum = product.batch > 1 && product.strideC == 0;
  if (product.batch >= pieces && !isSum) {
    for (int64_t i = 0; i < pieces; ++i) {
      int64_t from = product.batch * i / pieces, to = product.batch * (i + 1) / pieces;
      cut.push_back(
          {product, from * product.strideA, from * product.strideB, from * product.strideC});
      cut.back().product.batch = to - from;
    }
    return cut;
  }
  Grid grid = squarest(product.m, product.n, pieces);
  for (int64_t i = 0; i < grid.rows; ++i) {
    for (int64_t j = 0; j < grid.columns; ++j) {
      int64_t row = cutAt(product.m, i, grid.rows), rowEnd = cutAt(product.m, i + 1, grid.rows);
      int64_t column = cutAt(product.n, j, grid.columns);
      int64_t columnEnd = cutAt(product.n, j + 1, grid.columns);
      if (row == rowEnd || column == columnEnd) {
        continue;
      }
      cut.push_back({product, product.transposeA ? row : row * product.lda,
                     product.transposeB ? column * product.ldb : column,
                     row * product.ldc + column});
      cut.back().product.m = rowEnd - row;
      cut.back().product.n = columnEnd - column;
    }
  }
  return cut;
}
