//===- AttentionTiles.h - shared code of attention and its derivative -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention and its derivative work on blocks of queries and tiles of keys, for one batch element,
// KV head and query head at a time. They first copy blocks and tiles into scratch memory, densely
// and padded with zeros to whole vectors, so that matmuls need no code for remainders.
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
  /// Sizes of one of the two ops; `block` is the number of queries, and of keys, to work on at
  /// once, if there are that many and they fit in the cache.
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

  /// True if queries see all keys, later ones too.
  bool isBidirectional;
  /// The most keys that a query sees, including the one at its own position; 0 without a window.
  int64_t window;
  /// [batch, KV heads, query heads, queries, keys] of the unsharded attention.
  llvm::SmallVector<int64_t> wholeShape;
  /// Keys of all shards that come in turn: those of the whole, with padding.
  int64_t keysOfTurns;
  int64_t batch, queries, keys, kvHeads, group, features, valueFeatures;
  /// Null if positions are stored in order.
  ZigzagAttr order;
  /// The number of queries, and of keys, that are stored together and have consecutive positions:
  /// all, unless there is an order.
  int64_t querySegment, keySegment;
  /// Queries in a block, and keys in a tile, a multiple of vectorLanes.
  int64_t queryBlock, keyTile;
  /// Sets both sizes; for devices.
  void setBlocks(int64_t block) { queryBlock = keyTile = block; }
  /// The feature counts, rounded up to whole vectors.
  int64_t paddedFeatures, paddedValueFeatures;

private:
  AttentionSizes(mlir::Value query, mlir::Value key, mlir::Value value);
  void setSegments(ZigzagAttr order, int64_t block);

  mlir::Type type;
};

/// Queries, or keys, with consecutive positions.
struct Segment {
  Num begin;
  int64_t length;
  Num end() const { return begin + length; }
};

/// Runs `body` for each segment of length `length` of `size` queries or keys.
void forEachSegment(Code &code, int64_t size, int64_t length,
                    llvm::function_ref<void(Segment)> body);

/// The place of a shard in the whole.
class AttentionPlace {
public:
  /// `operands` is an adaptor of one of the two ops.
  template <typename Adaptor>
  AttentionPlace(Code &code, Adaptor operands, const AttentionSizes &sizes)
      : AttentionPlace(code, operands.getOffsets(), operands.getTurn(), sizes) {}

  /// Sets the queries, and keys, that the following code is for.
  void enterQueries(Num begin);
  void enterKeys(Num begin);

  /// Returns true if some query may see no key.
  bool isShard() const { return bool(distance); }
  /// The number that a key at the position of query number `query` would have.
  Num keyAt(Num query) const { return distance ? query + distance : query; }
  /// The number that a query at the position of key number `key` would have.
  Num queryAt(Num key) const { return distance ? key - distance : key; }
  /// The positions of a query and a key.
  Num positionOfQuery(Num query) const { return queryShift ? query + queryShift : query; }
  Num positionOfKey(Num key) const { return keyShift ? key + keyShift : key; }
  /// The offsets of the shard in `AttentionSizes::wholeShape`, except those of queries and keys.
  mlir::ValueRange getOffsets() const {
    return mlir::ValueRange(offsets).drop_back(offsets.empty() ? 0 : 2);
  }

private:
  AttentionPlace(Code &code, mlir::ValueRange given, mlir::Value turn, const AttentionSizes &sizes);
  Num shiftFrom(Num begin, Num offset) const;
  void updateDistance();

  Code &code;
  ZigzagAttr order;
  /// The shard's offsets in `AttentionSizes::wholeShape`.
  llvm::SmallVector<mlir::Value> offsets;
  /// Differences between positions and numbers of queries, and of keys; null if zero.
  Num queryShift, keyShift;
  /// Difference between the number of the key at a query's position and the query's number.
  Num distance;
};

/// The limits of how far back queries see, by windows and documents.
class AttentionReach {
public:
  /// `operands` is an adaptor of one of the two ops.
  template <typename Adaptor>
  AttentionReach(Code &code, Adaptor operands, const AttentionSizes &sizes)
      : code(code), starts(code.buffer(operands.getStarts())), window(sizes.window) {}

  bool hasDocuments() const { return bool(starts); }
  /// Returns how many keys up to its own position query `query` of `queries` in sequence `b` sees;
  /// null if nothing limits it. Rows after the last of `queries` count as part of its document.
  Num of(const AttentionPlace &place, Segment queries, Num b, Num query) const;
  /// Returns the end of the blocks from `begin` on whose queries may see key `lastKey` or an
  /// earlier one, by documents alone. REQUIRES: there are documents.
  Num endOfSeeing(const AttentionPlace &place, Segment queries, Num b, Num begin, int64_t block,
                  Num lastKey) const;

private:
  Num startOf(Num b, Num query) const;

  Code &code;
  /// Starts of documents, [batch, query]; null without documents.
  Buffer starts;
  int64_t window;
};

/// Rows of a tensor [batch, position, KV head, …, feature]: those at these indices, from position
/// `first` on.
struct RowBlock {
  Buffer tensor;
  Nums before; // batch
  Num first;
  Nums after;      // KV head, query head if it has one
  Segment segment; // of the rows

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

/// Returns the begin and the end of the tiles of keys that the queries of a block see, and of the
/// blocks of queries that see keys of a tile. `reach` is that of the first query; `b` is the
/// sequence.
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

/// The score of keys that a query must not see: its exponential is zero, and its difference from
/// any score is finite.
inline constexpr double kUnseen = -1e30;

/// Sets to kUnseen some scores of row `row`, which holds those of query `query` with the keys from
/// `firstKey` of `keys` on: keys after the query (unless attention is bidirectional), keys after
/// the last of `keys`, and keys further back than `reach`, if there is one.
void hideKeys(Code &code, const AttentionSizes &sizes, const AttentionPlace &place, Segment keys,
              Buffer scores, Num row, Num query, Num firstKey, Num reach);

/// Returns the total of a query's weights, and the factor that makes its output of its sum of
/// values. A query whose `greatest` score is hidden sees none of these keys: its factor is zero,
/// whichever hidden keys were in the tiles.
std::pair<Num, Num> normalizerOf(Code &code, const AttentionPlace &place, Num greatest, Num total);

/// The random choice of the attention weights that dropout keeps.
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

  /// Returns the factor for the weight at [batch, KV head, query head, position of the query, of
  /// the key]: zero or 1 / (1 - rate).
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
