//===- AttentionTiles.h - what attention and its derivative share --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Both work on blocks of queries and tiles of keys, for one batch element, KV head and query head
// at a time. Blocks and tiles are copied into scratch memory first, where they lie densely and
// are filled up with zeros to whole vectors, so that matmuls need no code for what is left over.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_LOWER_ATTENTIONTILES_H
#define WEFT_LIB_PIPELINE_LOWER_ATTENTIONTILES_H

#include "Order.h"
#include "Random.h"
#include "Tiles.h"

namespace weft::lower {

/// Sizes of an attention and of its blocks.
struct AttentionSizes {
  /// Of one of the two ops; `block` is the number of queries, and of keys, to work on at once,
  /// where they are as many and fit in the cache.
  template <typename OpTy, typename Adaptor>
  AttentionSizes(OpTy op, Adaptor operands, int64_t block)
      : AttentionSizes(operands.getQuery(), operands.getKey(), operands.getValue()) {
    isBidirectional = op.getBidirectional();
    wholeShape.assign({batch, kvHeads, group, queries, keys});
    if (auto given = op.getGlobalShape()) {
      // Without dropout only queries and keys need to know of the whole.
      llvm::copy(*given, wholeShape.end() - given->size());
    }
    keysOfTurns = op.getTurns() ? static_cast<int64_t>(*op.getTurns()) * keys : wholeShape.back();
    window = op.getWindow().value_or(0);
    window = window < wholeShape.back() ? window : 0;
    setSegments(op.getOrderAttr(), block);
  }

  /// Whether queries see all keys, later ones too.
  bool isBidirectional;
  /// Keys that a query sees at most, that of its own position included; 0 without a window.
  int64_t window;
  /// [batch, KV heads, query heads, queries, keys] of the whole.
  llvm::SmallVector<int64_t> wholeShape;
  /// Keys of all shards that come round: those of the whole, and its padding if it has any.
  int64_t keysOfTurns;
  int64_t batch, queries, keys, kvHeads, group, features, valueFeatures;
  /// Null where positions are stored in their own order.
  ZigzagAttr order;
  /// Queries, and keys, that are stored together and whose positions follow each other: all of
  /// them, unless there is an order.
  int64_t querySegment, keySegment;
  /// Queries in a block, and keys in a tile, a multiple of vectorLanes.
  int64_t queryBlock, keyTile;
  /// Takes others; for devices.
  void setBlocks(int64_t block) { queryBlock = keyTile = block; }
  /// The feature counts, rounded up to whole vectors.
  int64_t paddedFeatures, paddedValueFeatures;

private:
  AttentionSizes(mlir::Value query, mlir::Value key, mlir::Value value);
  void setSegments(ZigzagAttr order, int64_t block);

  mlir::Type type;
};

/// Queries, or keys, whose positions follow each other.
struct Segment {
  Num begin;
  int64_t length;
  Num end() const { return begin + length; }
};

/// Runs `body` for each segment of `length` of `size` queries or keys.
void forEachSegment(Code &code, int64_t size, int64_t length,
                    llvm::function_ref<void(Segment)> body);

/// Where a shard lies in the whole.
class AttentionPlace {
public:
  /// `operands` is an adaptor of one of the two ops.
  template <typename Adaptor>
  AttentionPlace(Code &code, Adaptor operands, const AttentionSizes &sizes)
      : AttentionPlace(code, operands.getOffsets(), operands.getTurn(), sizes) {}

  /// Says which queries, and which keys, code is being built for.
  void enterQueries(Num begin);
  void enterKeys(Num begin);

  /// Whether a query may see none of the keys.
  bool isShard() const { return bool(distance); }
  /// The number that a key at the position of query number `query` would have.
  Num keyAt(Num query) const { return distance ? query + distance : query; }
  /// The number that a query at the position of key number `key` would have.
  Num queryAt(Num key) const { return distance ? key - distance : key; }
  /// The positions of a query and a key.
  Num positionOfQuery(Num query) const { return queryShift ? query + queryShift : query; }
  Num positionOfKey(Num key) const { return keyShift ? key + keyShift : key; }
  /// Of the shard in `AttentionSizes::wholeShape`, but for queries and keys.
  mlir::ValueRange getOffsets() const {
    return mlir::ValueRange(offsets).drop_back(offsets.empty() ? 0 : 2);
  }

private:
  AttentionPlace(Code &code, mlir::ValueRange given, mlir::Value turn, const AttentionSizes &sizes);
  Num shiftFrom(Num begin, Num offset) const;
  void updateDistance();

  Code &code;
  ZigzagAttr order;
  /// In `AttentionSizes::wholeShape`.
  llvm::SmallVector<mlir::Value> offsets;
  /// From numbers of queries, and of keys, to their positions; null if they are the same.
  Num queryShift, keyShift;
  /// From the number of a query to that of the key at its position.
  Num distance;
};

/// How far back queries see, where something keeps them from seeing all keys before them.
class AttentionReach {
public:
  /// `operands` is an adaptor of one of the two ops.
  template <typename Adaptor>
  AttentionReach(Code &code, Adaptor operands, const AttentionSizes &sizes)
      : code(code), starts(code.buffer(operands.getStarts())), window(sizes.window) {}

  bool hasDocuments() const { return bool(starts); }
  /// How many keys up to its own position query `query` of `queries` in sequence `b` sees; null
  /// where nothing limits it. Rows after the last of `queries` count as of its document.
  Num of(const AttentionPlace &place, Segment queries, Num b, Num query) const;
  /// The end of the blocks from `begin` on whose queries may see key `lastKey` or one before it, as
  /// far as documents say. REQUIRES: there are documents.
  Num endOfSeeing(const AttentionPlace &place, Segment queries, Num b, Num begin, int64_t block,
                  Num lastKey) const;

private:
  Num startOf(Num b, Num query) const;

  Code &code;
  /// Of documents, [batch, query]; null where there are none.
  Buffer starts;
  int64_t window;
};

/// Which rows of a tensor [batch, position, KV head, …, feature] are meant: those at these
/// indices, from position `first` on.
struct RowBlock {
  Buffer tensor;
  Nums before; // batch
  Num first;
  Nums after;      // KV head, query head if it has one
  Segment segment; // that they are of

  Num at(Num row, Num feature) const;
  /// Consecutive features of a row.
  Num vectorAt(int64_t lanes, Num row, Num feature) const;
  void store(Num value, Num row, Num feature) const;
  int64_t getFeatureCount() const { return tensor.getSize(-1); }
  /// The smaller of `rows` and the number of the segment's rows from `first` on.
  Num countRows(Code &code, int64_t rows) const;

private:
  Nums indices(Num row, Num feature) const;
};

/// Where tiles of keys begin and end that queries of a block see, and blocks of queries that see
/// keys of a tile.
/// `reach` is that of the first query; `b` is the sequence.
std::pair<Num, Num> keysSeen(Code &code, const AttentionSizes &sizes, const AttentionPlace &place,
                             Segment keys, Num firstQuery, Num reach);
std::pair<Num, Num> queriesSeeing(Code &code, const AttentionSizes &sizes,
                                  const AttentionPlace &place, const AttentionReach &reach,
                                  Segment queries, Num b, Num firstKey);

/// Copies rows, times `scale`, to `to` [rows, features or more], with zeros below the last one.
void packRows(Code &code, const RowBlock &rows, Buffer to, double scale = 1);
/// Copies rows to columns of `to` [features, rows], with zeros right of the last one.
void packColumns(Code &code, const RowBlock &rows, Buffer to);
/// Scratch memory of [rows, columns], zero at first.
Buffer zeroScratch(Code &code, mlir::Type type, int64_t rows, int64_t columns);

/// What scores of keys that a query must not see are set to: its exponential is zero, and
/// differences of it from any score are finite.
inline constexpr double kUnseen = -1e30;

/// Sets to kUnseen the scores in row `row`, which is that of query `query` with keys from
/// `firstKey` of `keys` on, of keys after the query (where that matters), of those after the last
/// of `keys`, and of those further back than `reach`, if there is one.
void hideKeys(Code &code, const AttentionSizes &sizes, const AttentionPlace &place, Segment keys,
              Buffer scores, Num row, Num query, Num firstKey, Num reach);

/// The random choice of attention weights to keep.
class WeightDropout {
public:
  /// `operands` is an adaptor of one of the two ops.
  template <typename OpTy, typename Adaptor>
  static std::optional<WeightDropout> make(Code &code, OpTy op, Adaptor operands,
                                           const AttentionSizes &sizes,
                                           const AttentionPlace &place) {
    double rate = op.getDropout().convertToDouble();
    if (rate == 0) {
      return std::nullopt;
    }
    Generator generator = Generator::forDropout(
        code, code.buffer(operands.getSeed())(), code.buffer(operands.getStep())(),
        code.toInteger(code.num(operands.getLayer())), kWeightSite);
    return WeightDropout(
        rate, generator,
        Placement(code, {}, place.getOffsets(), llvm::ArrayRef<int64_t>(sizes.wholeShape)));
  }

  /// What the weight at [batch, KV head, query head, position of the query, of the key] is
  /// multiplied by: zero or 1 / (1 - rate).
  Num factor(Code &code, mlir::Type type, llvm::ArrayRef<Num> indices) const;

private:
  /// Site number of attention weights, see docs/Numerics.md.
  static constexpr int64_t kWeightSite = 3;

  WeightDropout(double rate, Generator generator, Placement placement)
      : rate(rate), generator(generator), placement(std::move(placement)) {}

  double rate;
  Generator generator;
  Placement placement;
};

} // namespace weft::lower

#endif // WEFT_LIB_PIPELINE_LOWER_ATTENTIONTILES_H
