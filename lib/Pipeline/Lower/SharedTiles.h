//===- SharedTiles.h - tiles in the shared memory of a block --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// If a device reads neighbors along one dimension and writes neighbors along another, a block moves
// tiles through its shared memory.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_SHAREDTILES_H
#define WEFT_LIB_PIPELINE_LOWER_SHAREDTILES_H

#include "weft/Pipeline/Lower/Code.h"

namespace weft::lower {

/// Rows and columns of a tile.
inline constexpr int64_t kTileSide = 64;

/// A range that begins at `first` in a dimension of `size`.
struct Span {
  Num first;
  int64_t size;
};

/// Runs `body` on the elements of a tile that begins at `outer` and `inner`; threads take neighbors
/// of `inner`. In a round of `Code::blocks`, for devices.
void overTile(Code &code, Span outer, Span inner, llvm::function_ref<void(Num, Num)> body);

/// Returns shared memory for a tile, whose rows have an odd number of words, so that columns lie in
/// different banks.
Buffer sharedTile(Code &code, mlir::Type type);

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_SHAREDTILES_H
