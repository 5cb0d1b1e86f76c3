//===- SharedTiles.h - parts of matrices that a block of threads turns ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Where a device reads neighbors of one dimension and writes neighbors of another, a block takes a
// tile through memory that its threads share.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_SHAREDTILES_H
#define WEFT_LIB_PIPELINE_LOWER_SHAREDTILES_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Rows and columns of a tile.
inline constexpr int64_t kTileSide = 64;

/// Where something begins in a dimension of `size`.
struct Span {
  Num first;
  int64_t size;
};

/// Runs `body` on the elements of a tile that begins where `outer` and `inner` say; threads take
/// neighbors of `inner`. In a round of `Code::blocks`, for devices.
void overTile(Code &code, Span outer, Span inner, llvm::function_ref<void(Num, Num)> body);

/// Memory of a block for a tile, rows of an odd number of words, so that columns lie in different
/// banks.
Buffer sharedTile(Code &code, mlir::Type type);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_SHAREDTILES_H
