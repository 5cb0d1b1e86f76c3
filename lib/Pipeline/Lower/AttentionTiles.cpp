//===- AttentionTiles.cpp - shared code of attention and its derivative ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTiles.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

namespace weft::lower {

using namespace mlir;

namespace {

/// The largest size in bytes of a tile of keys: two tiles and a block fit in a second-level cache.
constexpr int64_t kTileBytes = 64 << 10;

} // namespace

AttentionSizes::AttentionSizes(Value query, Value key, Value value) {
  auto queryType = cast<MemRefType>(query.getType());
  auto keyType = cast<MemRefType>(key.getType());
  type = wideTypeOf(queryType.getElementType());
  int64_t lanes = vectorLanes(type);
  batch = queryType.getDimSize(0);
  queries = queryType.getDimSize(1);
  kvHeads = queryType.getDimSize(2);
  group = queryType.getDimSize(3);
  features = queryType.getDimSize(4);
  keys = keyType.getDimSize(1);
  valueFeatures = cast<MemRefType>(value.getType()).getDimSize(3);
  paddedFeatures = llvm::alignTo(features, lanes);
  paddedValueFeatures = llvm::alignTo(valueFeatures, lanes);
}

void AttentionSizes::setSegments(ZigzagAttr given, int64_t block) {
  order = given;
  // Shards begin at multiples of their length, chunks at multiples of theirs.
  querySegment = order ? std::gcd(queries, order.getLength()) : queries;
  keySegment = order ? std::gcd(keys, order.getLength()) : keys;
  int64_t lanes = vectorLanes(type);
  int64_t rowBytes = std::max(paddedFeatures, paddedValueFeatures) * sizeOf(type);
  int64_t fitting = llvm::alignDown(std::max(kTileBytes / rowBytes, lanes), lanes);
  int64_t most = std::min(block, fitting);
  queryBlock = std::min<int64_t>(most, querySegment);
  keyTile = std::min<int64_t>(most, llvm::alignTo(keySegment, lanes));
}

void forEachSegment(Code &code, int64_t size, int64_t length, function_ref<void(Segment)> body) {
  if (size == length) {
    body({code.index(0), length});
    return;
  }
  code.loop(code.index(0), code.index(size), length, [&](Num begin) { body({begin, length}); });
}

AttentionPlace::AttentionPlace(Code &code, ValueRange given, Value turn,
                               const AttentionSizes &sizes)
    : code(code), order(sizes.order), offsets(given) {
  if (offsets.empty()) {
    offsets.assign(order ? 2 : 0, code.index(0));
  }
  if (turn) {
    // Shards come from lower ranks, cyclically.
    Num from = code.num(offsets.back()) - code.num(turn) * sizes.keys;
    offsets.back() = code.select(from < int64_t(0), from + sizes.keysOfTurns, from);
  }
  enterQueries(code.index(0));
  enterKeys(code.index(0));
}

Num AttentionPlace::shiftFrom(Num begin, Num offset) const {
  return order ? positionAt(code, order, begin + offset) - begin : offset;
}

void AttentionPlace::enterQueries(Num begin) {
  if (!offsets.empty()) {
    queryShift = shiftFrom(begin, code.num(offsets[offsets.size() - 2]));
    updateDistance();
  }
}

void AttentionPlace::enterKeys(Num begin) {
  if (!offsets.empty()) {
    keyShift = shiftFrom(begin, code.num(offsets.back()));
    updateDistance();
  }
}

void AttentionPlace::updateDistance() {
  if (queryShift && keyShift) {
    distance = queryShift - keyShift;
  }
}

Num AttentionReach::startOf(Num b, Num query) const { return code.toIndex(starts(b, query)); }

Num AttentionReach::of(const AttentionPlace &place, Segment queries, Num b, Num query) const {
  Num width = window ? code.index(window) : Num();
  if (!starts) {
    return width;
  }
  Num last = queries.end() - 1;
  Num start = startOf(b, code.select(query < last, query, last));
  Num ofDocument = place.positionOfQuery(query) - start + 1;
  return width ? code.select(width < ofDocument, width, ofDocument) : ofDocument;
}

/// Starts of documents never decrease, so after the first block that sees no key of the tile no
/// other does: a binary search finds the number of blocks that do.
Num AttentionReach::endOfSeeing(const AttentionPlace &place, Segment queries, Num b, Num begin,
                                int64_t block, Num lastKey) const {
  Num seen = code.index(0), end = queries.end(), position = place.positionOfKey(lastKey);
  auto most = uint64_t(llvm::divideCeil(queries.length, block));
  for (auto more = int64_t(llvm::bit_floor(most)); more > 0; more /= 2) {
    Num next = seen + more, query = begin + (next - 1) * block;
    Num isThere = query < end;
    Num sees = startOf(b, code.select(isThere, query, end - 1)) <= position;
    seen = code.select(isThere & sees, next, seen);
  }
  return begin + seen * block;
}

Nums RowBlock::indices(Num row, Num feature) const {
  Nums all = before;
  all.push_back(first + row);
  all.append(after.begin(), after.end());
  all.push_back(feature);
  return all;
}

Num RowBlock::at(Num row, Num feature) const { return tensor.load(indices(row, feature)); }

Num RowBlock::vectorAt(int64_t lanes, Num row, Num feature) const {
  return tensor.loadVector(lanes, indices(row, feature));
}

void RowBlock::store(Num value, Num row, Num feature) const {
  tensor.store(value, indices(row, feature));
}

Num RowBlock::countRows(Code &code, int64_t rows) const {
  if (segment.length % rows == 0) {
    return code.index(rows);
  }
  Num left = segment.end() - first;
  return code.select(left < rows, left, code.index(rows));
}

/// If a tile hides all keys of a row, the row's sum is finite garbage, which the first visible
/// score multiplies by zero.
std::pair<Num, Num> keysSeen(Code &code, const AttentionSizes &sizes, const AttentionPlace &place,
                             Segment keys, Num firstQuery, Num reach) {
  Num end = place.keyAt(firstQuery) + sizes.queryBlock, all = keys.end();
  Num last = sizes.isBidirectional ? all : code.select(end < all, end, all);
  if (!reach) {
    return {keys.begin, last};
  }
  Num none = code.index(0);
  Num first = place.keyAt(firstQuery) + 1 - reach - keys.begin;
  Num whole = code.select(first < none, none, first) / sizes.keyTile * sizes.keyTile;
  return {keys.begin + whole, last};
}

std::pair<Num, Num> queriesSeeing(Code &code, const AttentionSizes &sizes,
                                  const AttentionPlace &place, const AttentionReach &reach,
                                  Segment queries, Num b, Num firstKey) {
  Num none = code.index(0), begin = queries.begin;
  if (!sizes.isBidirectional) {
    Num first = place.queryAt(firstKey) - queries.begin;
    if (place.isShard()) {
      first = code.select(first < none, none, first);
    }
    begin = queries.begin + first / sizes.queryBlock * sizes.queryBlock;
  }
  Num all = queries.end();
  if (reach.hasDocuments()) {
    all = reach.endOfSeeing(place, queries, b, begin, sizes.queryBlock,
                            firstKey + (sizes.keyTile - 1));
  }
  if (!sizes.window) {
    return {begin, all};
  }
  Num end = place.queryAt(firstKey) + (sizes.keyTile - 1 + sizes.window);
  return {begin, code.select(end < all, end, all)};
}

void packRows(Code &code, const RowBlock &rows, Buffer to, double scale) {
  Num count = rows.countRows(code, to.getSize(0));
  Num zero = code.real(to.getElementType(), 0);
  Num none = code.index(0), columns = code.index(rows.getFeatureCount());
  code.loop(none, count, [&](Num r) {
    code.loop(none, columns, [&](Num f) {
      Num value = rows.at(r, f);
      to.store(scale == 1 ? value : value * scale, r, f);
    });
  });
  code.loop(count, code.index(to.getSize(0)),
            [&](Num r) { code.loop(none, columns, [&](Num f) { to.store(zero, r, f); }); });
}

/// Copies tile by tile, each in registers.
static void packWholeColumns(Code &code, const RowBlock &rows, Buffer to) {
  int64_t lanes = vectorLanes(to.getElementType());
  auto overTiles = [&](int64_t size, function_ref<void(Num)> body) {
    code.loop(code.index(0), code.index(size), lanes, body);
  };
  overTiles(to.getSize(1), [&](Num r) {
    overTiles(rows.getFeatureCount(), [&](Num f) {
      Nums tile;
      for (int64_t i = 0; i < lanes; ++i) {
        tile.push_back(rows.vectorAt(lanes, r + i, f));
      }
      for (auto [i, column] : llvm::enumerate(transposed(code, tile))) {
        to.storeVector(column, {f + static_cast<int64_t>(i), r});
      }
    });
  });
}

void packColumns(Code &code, const RowBlock &rows, Buffer to) {
  int64_t lanes = vectorLanes(to.getElementType()), tile = to.getSize(1);
  if (rows.getFeatureCount() % lanes == 0 && rows.segment.length % tile == 0) {
    packWholeColumns(code, rows, to);
    return;
  }
  Num count = rows.countRows(code, to.getSize(1));
  Num zero = code.real(to.getElementType(), 0);
  Num none = code.index(0), columns = code.index(rows.getFeatureCount());
  code.loop(none, count, [&](Num r) {
    code.loop(none, columns, [&](Num f) { to.store(rows.at(r, f), f, r); });
  });
  code.loop(count, code.index(to.getSize(1)),
            [&](Num r) { code.loop(none, columns, [&](Num f) { to.store(zero, f, r); }); });
}

Buffer zeroScratch(Code &code, Type type, int64_t rows, int64_t columns) {
  Buffer buffer = code.scratch(type, {rows, columns});
  code.fill(buffer, 0);
  return buffer;
}

void hideKeys(Code &code, const AttentionSizes &sizes, const AttentionPlace &place, Segment keys,
              Buffer scores, Num row, Num query, Num firstKey, Num reach) {
  bool fills = keys.length % sizes.keyTile == 0;
  if (sizes.isBidirectional && fills) {
    return;
  }
  Num next = place.keyAt(query) + 1, last = keys.end(), end = next;
  if (sizes.isBidirectional) {
    end = last;
  } else if (place.isShard() && !fills) {
    end = code.select(last < next, last, next);
  }
  Num seen = end - firstKey, none = code.index(0), all = code.index(scores.getSize(1));
  Num hidden = code.real(scores.getElementType(), kUnseen);
  auto hide = [&](Num j) { scores.store(hidden, row, j); };
  code.loop(code.select(seen < none, none, seen), all, hide);
  if (reach) {
    Num before = next - firstKey - reach;
    code.loop(none, code.select(before < all, before, all), hide);
  }
}

std::pair<Num, Num> normalizerOf(Code &code, const AttentionPlace &place, Num greatest, Num total) {
  Num one = code.real(total.getType(), 1);
  if (!place.isShard()) {
    return {total, one / total};
  }
  // The greatest score alone has weight 1, so only a query without a tile has less. A NaN stays
  // one.
  total = code.max(total, one);
  return {total, code.select(greatest <= kUnseen, code.real(total.getType(), 0), one / total)};
}

Num WeightDropout::factor(Code &code, Type type, ArrayRef<Num> indices) const {
  Num kept = generator.isKept(placement.globalIndex(indices), rate);
  return code.select(kept, code.real(type, 1 / (1 - rate)), code.real(type, 0));
}

} // namespace weft::lower
