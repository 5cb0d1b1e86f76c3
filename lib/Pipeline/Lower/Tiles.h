//===- Tiles.h - cutting a loop into parts of few sizes ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_TILES_H
#define WEFT_LIB_PIPELINE_LOWER_TILES_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Bytes of the vectors that the matmuls work with: two registers of AVX2, one of AVX-512.
inline constexpr int64_t kVectorBytes = 64;
/// Rows of a contraction that share each vector of the other operand.
inline constexpr int64_t kTileRows = 4;

inline int64_t vectorLanes(mlir::Type type) { return kVectorBytes / sizeOf(type); }

/// Runs `body(start, width)` over [0, size) in parts of `width`, and over the remainder in parts of
/// powers of two; widths are known when code is built. At the top of a kernel the whole parts are a
/// parallel loop.
inline void forParts(Code &code, int64_t size, int64_t width,
                     llvm::function_ref<void(Num, int64_t)> body) {
  int64_t done = size / width * width;
  if (done == width) {
    body(code.index(0), width);
  } else if (done != 0) {
    if (code.isAtTop()) {
      code.parallel(done / width, [&](Num i) { body(i * width, width); });
    } else {
      code.loop(code.index(0), code.index(done), width, [&](Num i) { body(i, width); });
    }
  }
  while (done < size) {
    width = llvm::bit_floor(static_cast<uint64_t>(size - done));
    body(code.index(done), width);
    done += width;
  }
}

/// Calls `body` with parts of [0, columns), which threads of a host may share; each part has whole
/// cache lines.
inline void forColumns(Code &code, int64_t columns, llvm::function_ref<void(Num, Num)> body) {
  constexpr int64_t kPart = 64;
  if (columns <= kPart) {
    body(code.index(0), code.index(columns));
    return;
  }
  Num all = code.index(columns);
  code.parallel(llvm::divideCeil(columns, kPart), [&](Num part) {
    Num from = part * kPart, to = from + kPart;
    body(from, columns % kPart == 0 ? to : code.select(to < all, to, all));
  });
}

/// A matmul in registers and nearby memory: for all i < m and j < n, the sum over l < k of
/// a(i, l) * b[l, j], starting from `start`.
struct TileMatmul {
  /// n is a multiple of vectorLanes.
  int64_t m, n, k;
  llvm::function_ref<Num(Num i, Num l)> a;
  Buffer b;
  /// `start` returns the vector that element (i, j…) starts from, or is null for zero; `finish`
  /// takes the result.
  llvm::function_ref<Num(Num i, Num j)> start;
  llvm::function_ref<void(Num i, Num j, Num vector)> finish;
};
void emitTileMatmul(Code &code, const TileMatmul &matmul);

/// Returns the columns of a square matrix from its rows. Each row is a vector with as many lanes as
/// there are rows: a power of two.
Nums transposed(Code &code, llvm::ArrayRef<Num> rows);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_TILES_H
