//===- BlockMatmul.h - matmuls of tiles by a block of threads -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For devices only, inside of `Code::blocks` of kBlockThreads threads, all of which make each call.
// The block copies the factors into its shared memory part by part; the sums of a tile of
// `getSide()` rows and columns are in registers, where each thread has `getEach()` neighboring rows
// and columns.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_BLOCKMATMUL_H
#define WEFT_LIB_PIPELINE_LOWER_BLOCKMATMUL_H

#include "AttentionTiles.h"
#include "weft-rt/DeviceImage.h"

namespace weft::lower {

/// Rows of a tensor, times `scale`, as a factor. Rows after the last one are zero.
struct Factor {
  RowBlock rows;
  double scale = 1;
};

class BlockMatmul {
public:
  /// For sums of `type`.
  BlockMatmul(Code &code, mlir::Type type);

  /// Rows and columns of the sums of a block, and of a thread.
  static int64_t getSide(mlir::Type type) { return kAcross * eachOf(type); }
  int64_t getSide() const { return kAcross * each; }
  int64_t getEach() const { return each; }
  /// The place of a thread's sum, for i and j in [0, getEach()).
  Num row(int64_t i) const { return firstRow + i; }
  Num column(int64_t j) const { return firstColumn + j; }
  /// True for the thread that writes the results of its rows.
  Num isFirstOfRow() const { return firstColumn == int64_t(0); }
  /// As many zeros as a thread has sums, row by row.
  Nums zeros() const;

  /// Returns memory for a tile that `addTimes` takes; only `put` and `addTimes` know its layout.
  Buffer makeTile() const;
  /// tile[row(i), column(j)] = number(i, j), or transposed.
  using NumberAt = llvm::function_ref<Num(int64_t, int64_t)>;
  void put(Buffer tile, NumberAt number) const;
  void putTransposed(Buffer tile, NumberAt number) const;

  /// sums[r, c] = a[r]·b[c], over all features.
  Nums timesTransposed(const Factor &a, const Factor &b) const;
  /// sums[r, c] += sum over k of tile[k, r] b[k, firstFeature + c]. Waits for the threads that
  /// `put` into `tile`; they may `put` again after the next call on this object.
  Nums addTimes(Buffer tile, const Factor &b, int64_t firstFeature, llvm::ArrayRef<Num> sums) const;
  /// Combines the values of the threads of the same rows, by `combine` or by addition.
  Num combineRow(Num value, llvm::function_ref<Num(Num, Num)> combine) const;
  Num sumOfRow(Num value) const;
  /// Returns the sum of `term(i)` over [0, size), which threads of the same rows share.
  Num sumRow(int64_t size, llvm::function_ref<Num(Num)> term) const;

private:
  /// Threads along each side of a tile.
  static constexpr int64_t kAcross = 16;
  static_assert(kAcross * kAcross == rt::kBlockThreads);

  static int64_t eachOf(mlir::Type type) { return sizeOf(type) == 8 ? 2 : 4; }
  /// The number of a sum's terms that are in shared memory at once.
  int64_t getDepth() const { return getSide() / 2; }
  Buffer makeMemory(int64_t rows) const;
  /// Copies the features from `first` on of all rows to columns of `to` [depth, side].
  void bringColumns(const Factor &factor, Num first, Buffer to) const;
  /// Copies the rows from `first` on, of features from `firstFeature` on, to `to` [depth, side].
  void bringRows(const Factor &factor, Num first, int64_t firstFeature, Buffer to) const;
  void bring(const Factor &factor, Num row, Num feature, bool isInside, Buffer to,
             llvm::ArrayRef<Num> at) const;
  /// Returns the place in row `k` of a tile of the neighbors from `place` on.
  Num swizzled(Num k, Num place) const { return place ^ (k & code.index(7 * each)); }
  void putRows(Buffer tile, NumberAt number, Num firstRow, Num firstPlace) const;
  /// sums[r, c] += sum over k of a[first + k, r] b[k, c]; `place(k)` is the place of row(0) in row
  /// k of `a`.
  Nums multiply(Buffer a, Num first, Buffer b, llvm::ArrayRef<Num> sums,
                llvm::function_ref<Num(Num)> place) const;

  Code &code;
  mlir::Type type;
  int64_t each;
  Num firstRow, firstColumn;
  Buffer left, right;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_BLOCKMATMUL_H
