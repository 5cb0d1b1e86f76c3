//===- AttentionTiles.h - what attention and its derivative share --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both work on blocks of queries and tiles of keys, for one batch element, KV head and query head
// at a time. Blocks and tiles are copied into scratch memory first, where they lie densely and
// are filled up with zeros to whole vectors, so that products need no code for what is left over.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_ATTENTIONTILES_H
#define WEFT_LIB_PIPELINE_LOWER_ATTENTIONTILES_H

#include "Random.h"
#include "Tiles.h"

namespace weft::lower {

/// Sizes of an attention and of its blocks.
struct AttentionSizes {
  /// From the types of the query, the key and the value; `block` is the number of queries, and of
  /// keys, to work on at once, where they are as many and fit in the cache.
  AttentionSizes(mlir::Value query, mlir::Value key, mlir::Value value, int64_t block,
                 std::optional<int64_t> window, bool isBidirectional);

  /// Whether queries see all keys, later ones too.
  bool isBidirectional;
  /// Keys that a query sees at most, that of its own position included; `keys` without a window.
  int64_t window;
  int64_t batch, queries, keys, kvHeads, group, features, valueFeatures;
  /// Queries in a block, and keys in a tile, a multiple of vectorLanes.
  int64_t queryBlock, keyTile;
  /// The feature counts, rounded up to whole vectors.
  int64_t paddedFeatures, paddedValueFeatures;
};

/// Which rows of a tensor [batch, position, KV head, …, feature] are meant: those at these
/// indices, from position `first` on.
struct RowBlock {
  Buffer tensor;
  Nums before; // batch
  Num first;
  Nums after; // KV head, query head if it has one

  Num at(Num row, Num feature) const;
  /// Consecutive features of a row.
  Num vectorAt(int64_t lanes, Num row, Num feature) const;
  void store(Num value, Num row, Num feature) const;
  int64_t getPositionCount() const { return tensor.getSize(1); }
  int64_t getFeatureCount() const { return tensor.getSize(-1); }
  /// The smaller of `rows` and the number of positions from `first` on.
  Num countRows(Code &code, int64_t rows) const;

private:
  Nums indices(Num row, Num feature) const;
};

/// Copies rows, times `scale`, to `to` [rows, features or more], with zeros below the last one.
void packRows(Code &code, const RowBlock &rows, Buffer to, double scale = 1);
/// Copies rows to columns of `to` [features, rows], with zeros right of the last one.
void packColumns(Code &code, const RowBlock &rows, Buffer to);
/// Scratch memory of [rows, columns], zero at first.
Buffer zeroScratch(Code &code, mlir::Type type, int64_t rows, int64_t columns);

/// What scores of keys that a query must not see are set to: its exponential is zero, and
/// differences of it from any score are finite.
inline constexpr double kUnseen = -1e30;

/// Sets to kUnseen the scores in row `row` of keys after the query (where that matters, else of
/// those after the last key), and of keys before its window: all counted in the sequence, the
/// first of the row being key `firstKey`.
void hideKeys(Code &code, const AttentionSizes &sizes, Buffer scores, Num row, Num query,
              Num firstKey);

/// The random choice of attention weights to keep.
class WeightDropout {
public:
  /// `operands` is an adaptor of one of the two ops.
  template <typename OpTy, typename Adaptor>
  static std::optional<WeightDropout> make(Code &code, OpTy op, Adaptor operands,
                                           const AttentionSizes &sizes) {
    double rate = op.getDropout().convertToDouble();
    if (rate == 0) {
      return std::nullopt;
    }
    return WeightDropout(code, sizes, rate, code.buffer(operands.getSeed())(),
                         code.buffer(operands.getStep())(), code.num(operands.getLayer()),
                         operands.getOffsets(), op.getGlobalShape());
  }

  /// What the weight at [batch, KV head, query head, query, key] is multiplied by: zero or
  /// 1 / (1 - rate).
  Num factor(Code &code, mlir::Type type, llvm::ArrayRef<Num> indices) const;

private:
  WeightDropout(Code &code, const AttentionSizes &sizes, double rate, Num seed, Num step, Num layer,
                mlir::ValueRange offsets, std::optional<llvm::ArrayRef<int64_t>> globalShape);

  double rate;
  Generator generator;
  Placement placement;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_ATTENTIONTILES_H
