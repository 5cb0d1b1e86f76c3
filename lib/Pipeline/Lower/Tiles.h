//===- Tiles.h - cutting a loop into pieces of few sizes -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_TILES_H
#define WEFT_LIB_PIPELINE_LOWER_TILES_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Bytes of the vectors that the products work with: two registers of AVX2, one of AVX-512.
inline constexpr int64_t kVectorBytes = 64;
/// Rows of a product that share each vector of the other operand.
inline constexpr int64_t kTileRows = 4;

inline int64_t vectorLanes(mlir::Type type) { return kVectorBytes / sizeOf(type); }

/// Runs `body(start, width)` over [0, size) in pieces of `width`, and what is left in pieces of
/// powers of two; the width is known when code is built.
inline void forPieces(Code &code, int64_t size, int64_t width,
                      llvm::function_ref<void(Num, int64_t)> body) {
  int64_t done = size / width * width;
  if (done != 0) {
    code.loop(code.index(0), code.index(done), width, [&](Num i) { body(i, width); });
  }
  while (done < size) {
    width = llvm::bit_floor(static_cast<uint64_t>(size - done));
    body(code.index(done), width);
    done += width;
  }
}

/// A product of matrices that lie in registers and nearby memory: for all i < m and j < n,
/// the sum over l < k of a(i, l) * b[l, j], starting from `start`.
struct TileProduct {
  /// m is a multiple of kTileRows, n of vectorLanes.
  int64_t m, n, k;
  llvm::function_ref<Num(Num i, Num l)> a;
  Buffer b;
  /// The vector that element (i, j…) starts from, and what to do with the result. A null
  /// `start` means zero.
  llvm::function_ref<Num(Num i, Num j)> start;
  llvm::function_ref<void(Num i, Num j, Num vector)> finish;
};
void emitTileProduct(Code &code, const TileProduct &product);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_TILES_H
