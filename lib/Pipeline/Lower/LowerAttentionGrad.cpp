//===- LowerAttentionGrad.cpp - derivative of causal attention -----------===//
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

/// Builds the gradients. With s the scores, p = exp(s - lse) the weights, d the factors of dropout,
/// and o' the gradient of the output o, for query i and key j:
///
///   v'[j] = sum over i of (p d)[i, j] o'[i]
///   s'[i, j] = p[i, j] (d[i, j] o'[i]·v[j] - o'[i]·o[i])
///   q'[i] = scale * sum over j of s'[i, j] k[j]
///   k'[j] = sum over i of s'[i, j] scale q[i]
///
/// Keys are the outer loop, queries the inner: the gradients of a tile of keys and values stay in
/// scratch memory until they are complete; those of queries are added up in place, in a fixed
/// order. Where the gradients of queries have less precision than sums, which programs for devices
/// ask for, they are computed first, with queries as the outer loop: the same sums in the same
/// order.
class AttentionGradEmitter {
public:
  AttentionGradEmitter(Code &code, AttentionGradOp op, AttentionGradOp::Adaptor operands,
                       ValueRange results)
      : code(code), sizes(op, operands, kBlock), place(code, operands, sizes),
        reach(code, operands, sizes), type(code.buffer(operands.getQuery()).getElementType()),
        scale(op.getScale().convertToDouble()), query(code.buffer(operands.getQuery())),
        key(code.buffer(operands.getKey())), value(code.buffer(operands.getValue())),
        output(code.buffer(operands.getOutput())), lse(code.buffer(operands.getLse())),
        gradient(code.buffer(operands.getGradient())), queryGradient(code.buffer(results[0])),
        keyGradient(code.buffer(results[1])), valueGradient(code.buffer(results[2])),
        dropout(WeightDropout::make(code, op, operands, sizes, place)) {
    int64_t block = sizes.queryBlock, tile = sizes.keyTile;
    keyColumns = code.scratch(type, {sizes.features, tile});
    keyRows = zeroScratch(code, type, tile, sizes.paddedFeatures);
    valueColumns = code.scratch(type, {sizes.valueFeatures, tile});
    keySums = code.scratch(type, {tile, sizes.paddedFeatures});
    valueSums = code.scratch(type, {tile, sizes.paddedValueFeatures});
    queries = zeroScratch(code, type, block, sizes.paddedFeatures);
    gradients = zeroScratch(code, type, block, sizes.paddedValueFeatures);
    weights = code.scratch(type, {block, tile});
    scoreGradients = code.scratch(type, {block, tile});
    querySums = code.scratch(type, {block, sizes.paddedFeatures});
    if (!addsInPlace()) {
      queryTotals = code.scratch(type, {block, sizes.features});
    }
    rowLse = code.scratch(type, {block});
    rowDots = code.scratch(type, {block});
  }

  void emit();

private:
  bool addsInPlace() const { return !queryGradient.rounds(); }
  void forEachKeySegment(function_ref<void()> body);
  void forEachQuerySegment(function_ref<void()> body);
  void emitQueries();
  void emitQueryBlock();
  void emitTile();
  void emitBlock();
  void takeKeys();
  void takeQueries();
  void emitRowValues();
  void emitScores();
  void emitMatmul(int64_t m, Buffer b, int64_t k, function_ref<Num(Num, Num)> a, Buffer to,
                  bool adds);
  void emitScoreGradients();
  void emitQuerySums();
  void addQueryGradients();

  Code &code;
  AttentionSizes sizes;
  AttentionPlace place;
  AttentionReach reach;
  Type type;
  double scale;
  Buffer query, key, value, output, lse, gradient;
  Buffer queryGradient, keyGradient, valueGradient;
  std::optional<WeightDropout> dropout;
  /// A tile of keys and values, and their gradients so far.
  Buffer keyColumns, keyRows, valueColumns, keySums, valueSums;
  /// A block of queries times scale, and of the output's gradient; the weights and the gradients of
  /// scores of block and tile; the gradients of the block's queries from this tile, and from all,
  /// unless they are added up in place.
  Buffer queries, gradients, weights, scoreGradients, querySums, queryTotals;
  /// For each query of the block: lse, and o'·o.
  Buffer rowLse, rowDots;
  /// The sequence and the heads of the current code.
  Num b, h, g, firstQuery, firstKey;
  Segment querySegment, keySegment;
};

void AttentionGradEmitter::forEachKeySegment(function_ref<void()> body) {
  forEachSegment(code, sizes.keys, sizes.keySegment, [&](Segment segment) {
    keySegment = segment;
    if (sizes.order) {
      place.enterKeys(segment.begin);
    }
    body();
  });
}

void AttentionGradEmitter::forEachQuerySegment(function_ref<void()> body) {
  forEachSegment(code, sizes.queries, sizes.querySegment, [&](Segment segment) {
    querySegment = segment;
    if (sizes.order) {
      place.enterQueries(segment.begin);
    }
    body();
  });
}

void AttentionGradEmitter::emit() {
  if (addsInPlace()) {
    code.fillParallel(queryGradient, 0);
  } else {
    emitQueries();
  }
  code.parallelAll({sizes.batch, sizes.kvHeads}, [&](ArrayRef<Num> indices) {
    b = indices[0], h = indices[1];
    forEachKeySegment([&] {
      code.loop(keySegment.begin, keySegment.end(), sizes.keyTile, [&](Num start) {
        firstKey = start;
        emitTile();
      });
    });
  });
}

void AttentionGradEmitter::emitQueries() {
  code.parallelAll({sizes.batch, sizes.kvHeads, sizes.group}, [&](ArrayRef<Num> indices) {
    b = indices[0], h = indices[1], g = indices[2];
    forEachQuerySegment([&] {
      code.loop(querySegment.begin, querySegment.end(), sizes.queryBlock, [&](Num start) {
        firstQuery = start;
        emitQueryBlock();
      });
    });
  });
}

void AttentionGradEmitter::emitQueryBlock() {
  takeQueries();
  code.fill(queryTotals, 0);
  forEachKeySegment([&] {
    auto [first, last] = keysSeen(code, sizes, place, keySegment, firstQuery,
                                  reach.of(place, querySegment, b, firstQuery));
    code.loop(first, last, sizes.keyTile, [&](Num start) {
      firstKey = start;
      takeKeys();
      emitScores();
      emitQuerySums();
      code.loop(0, sizes.queryBlock, [&](Num r) {
        code.loop(0, sizes.features, [&](Num f) {
          queryTotals.store(queryTotals(r, f) + querySums(r, f) * scale, r, f);
        });
      });
    });
  });
  RowBlock rows{queryGradient, {b}, firstQuery, {h, g}, querySegment};
  code.loop(code.index(0), rows.countRows(code, sizes.queryBlock), [&](Num r) {
    code.loop(0, sizes.features, [&](Num f) { rows.store(queryTotals(r, f), r, f); });
  });
}

void AttentionGradEmitter::takeKeys() {
  RowBlock keyBlock{key, {b}, firstKey, {h}, keySegment};
  packColumns(code, keyBlock, keyColumns);
  packRows(code, keyBlock, keyRows);
  packColumns(code, {value, {b}, firstKey, {h}, keySegment}, valueColumns);
}

void AttentionGradEmitter::emitTile() {
  takeKeys();
  code.fill(keySums, 0);
  code.fill(valueSums, 0);
  code.loop(0, sizes.group, [&](Num head) {
    g = head;
    forEachQuerySegment([&] {
      auto [first, last] = queriesSeeing(code, sizes, place, reach, querySegment, b, firstKey);
      code.loop(first, last, sizes.queryBlock, [&](Num start) {
        firstQuery = start;
        emitBlock();
      });
    });
  });
  auto unpack = [&](Buffer from, Buffer to) {
    RowBlock rows{to, {b}, firstKey, {h}, keySegment};
    code.loop(code.index(0), rows.countRows(code, sizes.keyTile), [&](Num r) {
      code.loop(0, rows.getFeatureCount(), [&](Num f) { rows.store(from(r, f), r, f); });
    });
  };
  unpack(keySums, keyGradient);
  unpack(valueSums, valueGradient);
}

void AttentionGradEmitter::emitBlock() {
  takeQueries();
  emitScores();
  auto transposed = [](Buffer buffer) { return [buffer](Num i, Num l) { return buffer(l, i); }; };
  int64_t block = sizes.queryBlock, tile = sizes.keyTile;
  emitMatmul(tile, gradients, block, transposed(weights), valueSums, /*adds=*/true);
  emitMatmul(tile, queries, block, transposed(scoreGradients), keySums, /*adds=*/true);
  if (addsInPlace()) {
    emitQuerySums();
    addQueryGradients();
  }
}

void AttentionGradEmitter::takeQueries() {
  packRows(code, {query, {b}, firstQuery, {h, g}, querySegment}, queries, scale);
  packRows(code, {gradient, {b}, firstQuery, {h, g}, querySegment}, gradients);
  emitRowValues();
}

/// Computes `weights` and `scoreGradients` of the block's queries and the tile's keys.
void AttentionGradEmitter::emitScores() {
  auto at = [](Buffer buffer) { return [buffer](Num i, Num l) { return buffer(i, l); }; };
  emitMatmul(sizes.queryBlock, keyColumns, sizes.features, at(queries), weights, /*adds=*/false);
  emitMatmul(sizes.queryBlock, valueColumns, sizes.valueFeatures, at(gradients), scoreGradients,
             /*adds=*/false);
  emitScoreGradients();
}

void AttentionGradEmitter::emitQuerySums() {
  emitMatmul(
      sizes.queryBlock, keyRows, sizes.keyTile, [&](Num i, Num l) { return scoreGradients(i, l); },
      querySums, /*adds=*/false);
}

void AttentionGradEmitter::emitRowValues() {
  // Rows after the last query get weights of zero.
  code.fill(rowLse, -kUnseen);
  code.fill(rowDots, 0);
  RowBlock outputs{output, {b}, firstQuery, {h, g}, querySegment};
  code.loop(code.index(0), outputs.countRows(code, sizes.queryBlock), [&](Num r) {
    rowLse.store(lse(b, h, g, firstQuery + r), r);
    Num dot = code.sum(type, 0, sizes.valueFeatures,
                       [&](Num f) { return gradients(r, f) * outputs.at(r, f); });
    rowDots.store(dot, r);
  });
}

/// Computes to = a b, or to += a b, for m rows and k terms.
void AttentionGradEmitter::emitMatmul(int64_t m, Buffer b, int64_t k, function_ref<Num(Num, Num)> a,
                                      Buffer to, bool adds) {
  int64_t lanes = vectorLanes(type);
  auto old = [&](Num i, Num j) { return to.loadVector(lanes, {i, j}); };
  auto store = [&](Num i, Num j, Num sum) { to.storeVector(sum, {i, j}); };
  TileMatmul matmul{
      .m = m, .n = to.getSize(1), .k = k, .a = a, .b = b, .start = {}, .finish = store};
  if (adds) {
    matmul.start = old;
  }
  emitTileMatmul(code, matmul);
}

/// Converts scores in `weights` and o'·v in `scoreGradients` to weights and gradients of scores.
void AttentionGradEmitter::emitScoreGradients() {
  code.loop(0, sizes.queryBlock, [&](Num r) {
    hideKeys(code, sizes, place, keySegment, weights, r, firstQuery + r, firstKey,
             reach.of(place, querySegment, b, firstQuery + r));
    Num rowTotal = rowLse(r), rowDot = rowDots(r);
    code.loop(0, sizes.keyTile, [&](Num j) {
      Num weight = code.exp(weights(r, j) - rowTotal), weightGradient = scoreGradients(r, j);
      if (!dropout) {
        weights.store(weight, r, j);
        scoreGradients.store(weight * (weightGradient - rowDot), r, j);
        return;
      }
      Num factor = dropout->factor(
          code, type,
          {b, h, g, place.positionOfQuery(firstQuery + r), place.positionOfKey(firstKey + j)});
      weights.store(weight * factor, r, j);
      scoreGradients.store(weight * (weightGradient * factor - rowDot), r, j);
    });
  });
}

void AttentionGradEmitter::addQueryGradients() {
  RowBlock rows{queryGradient, {b}, firstQuery, {h, g}, querySegment};
  code.loop(code.index(0), rows.countRows(code, sizes.queryBlock), [&](Num r) {
    code.loop(0, sizes.features,
              [&](Num f) { rows.store(rows.at(r, f) + querySums(r, f) * scale, r, f); });
  });
}

struct LowerAttentionGrad : HostModel<LowerAttentionGrad, AttentionGradOp> {
  static void lower(Code &code, AttentionGradOp op, AttentionGradOp::Adaptor operands,
                    ValueRange results) {
    if (code.isForDevice()) {
      lowerAttentionGradForDevice(code, op, operands, results);
      return;
    }
    AttentionGradEmitter(code, op, operands, results).emit();
  }
};

} // namespace

void attachAttentionGradModels(MLIRContext &context) {
  AttentionGradOp::attachInterface<LowerAttentionGrad>(context);
}

} // namespace weft::lower
