//===- LowerAttention.cpp - causal attention -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBlocks.h"
#include "AttentionTiles.h"
#include "Models.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// The number of queries, and of keys, in a block.
constexpr int64_t kBlock = 64;

/// Builds softmax(scale q kᵀ) v without ever holding more than a tile of scores. For each query
/// it keeps the greatest score m so far, the sum of exp(score - m), and the sum of
/// exp(score - m) * value; when a tile has a greater score, both sums are multiplied by
/// exp(old m - new m) (the "online softmax" of Milakov and Gimelshein, 2018).
class AttentionEmitter {
public:
  AttentionEmitter(Code &code, AttentionOp op, AttentionOp::Adaptor operands, ValueRange results)
      : code(code), sizes(op, operands, kBlock), place(code, operands, sizes),
        reach(code, operands, sizes), type(code.buffer(operands.getQuery()).getElementType()),
        scale(op.getScale().convertToDouble()), query(code.buffer(operands.getQuery())),
        key(code.buffer(operands.getKey())), value(code.buffer(operands.getValue())),
        output(code.buffer(results[0])), lse(code.buffer(results[1])),
        dropout(WeightDropout::make(code, op, operands, sizes, place)) {
    queries = code.scratch(type, {sizes.queryBlock, sizes.features});
    keys = code.scratch(type, {sizes.features, sizes.keyTile});
    values = zeroScratch(code, type, sizes.keyTile, sizes.paddedValueFeatures);
    scores = code.scratch(type, {sizes.queryBlock, sizes.keyTile});
    sums = code.scratch(type, {sizes.queryBlock, sizes.paddedValueFeatures});
    greatest = code.scratch(type, {sizes.queryBlock});
    totals = code.scratch(type, {sizes.queryBlock});
    rescale = code.scratch(type, {sizes.queryBlock});
    tileTotals = code.scratch(type, {sizes.queryBlock});
  }

  void emit() {
    int64_t segments = sizes.queries / sizes.querySegment;
    int64_t blocks = llvm::divideCeil(sizes.querySegment, sizes.queryBlock);
    code.parallelAll({sizes.batch, sizes.kvHeads, sizes.group, segments * blocks},
                     [&](ArrayRef<Num> indices) {
                       b = indices[0], h = indices[1], g = indices[2];
                       enterBlock(indices[3], segments, blocks);
                       emitBlock();
                     });
  }

private:
  void enterBlock(Num number, int64_t segments, int64_t blocks);
  void emitBlock();
  void emitKeys();
  void emitScores();
  void emitSoftmax();
  void emitDropout();
  void emitWeightedSums();
  void emitResults();

  Code &code;
  AttentionSizes sizes;
  AttentionPlace place;
  AttentionReach reach;
  Type type;
  double scale;
  Buffer query, key, value, output, lse;
  std::optional<WeightDropout> dropout;
  /// A block of queries times scale; a tile of keys, transposed, and of values; the block's scores
  /// for the tile, later its weights.
  Buffer queries, keys, values, scores;
  /// For each query of the block: the sums over keys so far, see above, and those of the tile
  /// alone.
  Buffer sums, greatest, totals, rescale, tileTotals;
  /// The sequence and the heads of the current code.
  Num b, h, g, firstQuery, firstKey;
  Segment querySegment, keySegment;
};

/// Sets block number `number` of all `segments`, which have `blocks` each.
void AttentionEmitter::enterBlock(Num number, int64_t segments, int64_t blocks) {
  querySegment = {code.index(0), sizes.querySegment};
  firstQuery = number * sizes.queryBlock;
  if (segments > 1) {
    Num segment = number / blocks;
    querySegment.begin = segment * sizes.querySegment;
    firstQuery = querySegment.begin + (number - segment * blocks) * sizes.queryBlock;
    place.enterQueries(querySegment.begin);
  }
}

void AttentionEmitter::emitBlock() {
  packRows(code, {query, {b}, firstQuery, {h, g}, querySegment}, queries, scale);
  code.fill(sums, 0);
  code.fill(totals, 0);
  code.fill(greatest, kUnseen);
  forEachSegment(code, sizes.keys, sizes.keySegment, [&](Segment segment) {
    keySegment = segment;
    if (sizes.order) {
      place.enterKeys(segment.begin);
    }
    emitKeys();
  });
  emitResults();
}

/// Runs over the tiles of a segment that the block's queries see.
void AttentionEmitter::emitKeys() {
  auto [first, last] = keysSeen(code, sizes, place, keySegment, firstQuery,
                                reach.of(place, querySegment, b, firstQuery));
  code.loop(first, last, sizes.keyTile, [&](Num start) {
    firstKey = start;
    packColumns(code, {key, {b}, firstKey, {h}, keySegment}, keys);
    packRows(code, {value, {b}, firstKey, {h}, keySegment}, values);
    emitScores();
    emitSoftmax();
    if (dropout) {
      emitDropout();
    }
    emitWeightedSums();
  });
}

void AttentionEmitter::emitScores() {
  emitTileMatmul(code, {.m = sizes.queryBlock,
                        .n = sizes.keyTile,
                        .k = sizes.features,
                        .a = [&](Num i, Num l) { return queries(i, l); },
                        .b = keys,
                        .start = {},
                        .finish = [&](Num i, Num j, Num sum) { scores.storeVector(sum, {i, j}); }});
}

/// Converts scores to exp(score - greatest).
void AttentionEmitter::emitSoftmax() {
  code.loop(0, sizes.queryBlock, [&](Num r) {
    hideKeys(code, sizes, place, keySegment, scores, r, firstQuery + r, firstKey,
             reach.of(place, querySegment, b, firstQuery + r));
    Num none = code.index(0), columns = code.index(sizes.keyTile);
    Num before = greatest(r);
    Num now = code.maximum(before, none, columns, [&](Num j) { return scores(r, j); });
    Num total = code.sum(type, none, columns, [&](Num j) {
      Num weight = code.exp(scores(r, j) - now);
      scores.store(weight, r, j);
      return weight;
    });
    greatest.store(now, r);
    rescale.store(before - now, r);
    tileTotals.store(total, r);
  });
  // Separate, to run for many rows at once.
  code.loop(0, sizes.queryBlock, [&](Num r) {
    Num factor = code.exp(rescale(r));
    rescale.store(factor, r);
    totals.store(totals(r) * factor + tileTotals(r), r);
  });
}

void AttentionEmitter::emitDropout() {
  code.nest({sizes.queryBlock, sizes.keyTile}, [&](ArrayRef<Num> at) {
    Num r = at[0], j = at[1];
    Num factor = dropout->factor(
        code, type,
        {b, h, g, place.positionOfQuery(firstQuery + r), place.positionOfKey(firstKey + j)});
    scores.store(scores(r, j) * factor, r, j);
  });
}

void AttentionEmitter::emitWeightedSums() {
  int64_t lanes = vectorLanes(type);
  emitTileMatmul(code, {.m = sizes.queryBlock,
                        .n = sizes.paddedValueFeatures,
                        .k = sizes.keyTile,
                        .a = [&](Num i, Num l) { return scores(i, l); },
                        .b = values,
                        .start =
                            [&](Num i, Num j) {
                              return sums.loadVector(lanes, {i, j}) *
                                     code.spread(rescale(i), lanes);
                            },
                        .finish = [&](Num i, Num j, Num sum) { sums.storeVector(sum, {i, j}); }});
}

void AttentionEmitter::emitResults() {
  RowBlock rows{output, {b}, firstQuery, {h, g}, querySegment};
  code.loop(code.index(0), rows.countRows(code, sizes.queryBlock), [&](Num r) {
    auto [total, factor] = normalizerOf(code, place, greatest(r), totals(r));
    lse.store(greatest(r) + code.log(total), b, h, g, firstQuery + r);
    code.loop(0, sizes.valueFeatures, [&](Num f) { rows.store(sums(r, f) * factor, r, f); });
  });
}

struct LowerAttention : HostModel<LowerAttention, AttentionOp> {
  static void lower(Code &code, AttentionOp op, AttentionOp::Adaptor operands, ValueRange results) {
    if (code.isForDevice()) {
      lowerAttentionForDevice(code, op, operands, results);
      return;
    }
    AttentionEmitter(code, op, operands, results).emit();
  }

  /// The code copies a block of queries before it writes the block's output.
  bool mayReuse(Operation *op, unsigned operand, unsigned result) const {
    return operand == 0 && result == 0 && op->getOperand(0).getType() == op->getResult(0).getType();
  }
};

} // namespace

void attachAttentionModels(MLIRContext &context) {
  AttentionOp::attachInterface<LowerAttention>(context);
}

} // namespace weft::lower
