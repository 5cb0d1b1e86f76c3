//===- Tiles.cpp - matmuls in registers ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tiles.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace weft::lower {

/// Rows of a matmul that share each vector of the other operand: with AVX2 the rows' sums, the
/// vector and one element of a row take 15 of 16 registers.
static constexpr int64_t kMatmulRows = 6;

void emitTileMatmul(Code &code, const TileMatmul &matmul) {
  mlir::Type type = matmul.b.getElementType();
  int64_t lanes = vectorLanes(type);
  Num zero = code.spread(code.real(type, 0), lanes);
  Num none = code.index(0);
  code.loop(none, code.index(matmul.n), lanes, [&](Num j) {
    forParts(code, matmul.m, kMatmulRows, [&](Num i, int64_t rows) {
      Nums start;
      for (int64_t row = 0; row < rows; ++row) {
        start.push_back(matmul.start ? matmul.start(i + row, j) : zero);
      }
      Nums sums =
          code.carry(none, code.index(matmul.k), 1, start, [&](Num l, mlir::ArrayRef<Num> carried) {
            Num b = matmul.b.loadVector(lanes, {l, j});
            Nums next;
            for (int64_t row = 0; row < rows; ++row) {
              Num a = code.spread(matmul.a(i + row, l), lanes);
              next.push_back(code.multiplyAdd(a, b, carried[row]));
            }
            return next;
          });
      for (int64_t row = 0; row < rows; ++row) {
        matmul.finish(i + row, j, sums[row]);
      }
    });
  });
}

/// Swaps off-diagonal blocks, of two by two blocks that grow from single elements.
Nums transposed(Code &code, mlir::ArrayRef<Num> rows) {
  auto lanes = static_cast<int64_t>(rows.size());
  Nums columns(rows);
  for (int64_t block = 1; block < lanes; block *= 2) {
    llvm::SmallVector<int64_t> upper, lower; // Lanes of the first vector, then of the second.
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool isSecond = lane & block;
      upper.push_back(isSecond ? lanes + lane - block : lane);
      lower.push_back(isSecond ? lanes + lane : lane + block);
    }
    for (int64_t row = 0; row < lanes; ++row) {
      if (row & block) {
        continue;
      }
      mlir::Value first = columns[row], second = columns[row + block];
      auto shuffle = [&](mlir::ArrayRef<int64_t> mask) {
        return code.num(
            mlir::vector::ShuffleOp::create(code.getBuilder(), code.getLoc(), first, second, mask));
      };
      columns[row] = shuffle(upper);
      columns[row + block] = shuffle(lower);
    }
  }
  return columns;
}

} // namespace weft::lower
