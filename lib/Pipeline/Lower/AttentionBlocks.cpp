//===- AttentionBlocks.cpp - attention by blocks of threads ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBlocks.h"
#include "BlockMatmul.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Splits rows into blocks: `count` blocks of each of the segments.
struct Parts {
  Parts(int64_t rows, int64_t length, int64_t side)
      : length(length), side(side), perSegment(llvm::divideCeil(length, side)),
        count(rows / length * perSegment) {}

  int64_t length, side, perSegment, count;

  Segment segmentOf(Num part) const { return {part / perSegment * length, length}; }
  Num firstRow(Code &code, Num part) const {
    return segmentOf(part).begin + code.remainder(part, perSegment) * side;
  }
};

Parts partsOfQueries(const AttentionSizes &sizes) {
  return {sizes.queries, sizes.querySegment, sizes.queryBlock};
}

Parts partsOfKeys(const AttentionSizes &sizes) {
  return {sizes.keys, sizes.keySegment, sizes.keyTile};
}

/// Return the numbers of blocks for the queries, and for the keys, of an attention.
int64_t countQueryBlocks(const AttentionSizes &sizes) {
  return sizes.batch * sizes.kvHeads * sizes.group * partsOfQueries(sizes).count;
}

int64_t countKeyBlocks(const AttentionSizes &sizes) {
  return sizes.batch * sizes.kvHeads * partsOfKeys(sizes).count;
}

/// The state of a block of threads for its matmuls, made where the block's code is built.
class AttentionBlock {
public:
  template <typename OpTy, typename Adaptor>
  AttentionBlock(Code &code, OpTy op, Adaptor operands)
      : code(code), sizes(sizesFor(code, op, operands)), place(code, operands, sizes),
        reach(code, operands, sizes), type(code.buffer(operands.getQuery()).getElementType()),
        matmul(code, type), each(matmul.getEach()), side(matmul.getSide()), tile(matmul.makeTile()),
        scale(op.getScale().convertToDouble()), query(code.buffer(operands.getQuery())),
        key(code.buffer(operands.getKey())), value(code.buffer(operands.getValue())),
        dropout(WeightDropout::make(code, op, operands, sizes, place)) {}

  /// The sizes of an attention whose blocks are tiles of a block of threads.
  template <typename OpTy, typename Adaptor>
  static AttentionSizes sizesFor(Code &code, OpTy op, Adaptor operands) {
    int64_t side = BlockMatmul::getSide(code.buffer(operands.getQuery()).getElementType());
    AttentionSizes sizes(op, operands, side);
    sizes.setBlocks(side);
    return sizes;
  }

protected:
  int64_t slabsOf(int64_t features) const { return llvm::divideCeil(features, side); }
  Factor rowsOfQueries(Buffer tensor, double scale = 1) const {
    return {{tensor, {b}, firstQuery, {h, g}, querySegment}, scale};
  }
  Factor rowsOfKeys(Buffer tensor) const { return {{tensor, {b}, firstKey, {h}, keySegment}}; }
  void enterQueries(Num first, Segment segment);
  void enterQueryBlock(Num number);
  void takeReach();
  Nums carryKeys(ArrayRef<Num> start, function_ref<Nums(ArrayRef<Num>)> body);
  Num visible(Num score, int64_t i, int64_t j);
  Num keepFactor(int64_t i, int64_t j);
  void addSlabs(const Factor &factor, MutableArrayRef<Num> sums);
  void storeSlabs(const RowBlock &rows, ArrayRef<Num> sums, function_ref<Num(Num, int64_t)> finish);

  Code &code;
  AttentionSizes sizes;
  AttentionPlace place;
  AttentionReach reach;
  Type type;
  BlockMatmul matmul;
  /// Of the matmul: the sums of a thread along one side, and of the block.
  int64_t each, side;
  /// A tile of weights, or of gradients of scores.
  Buffer tile;
  double scale;
  Buffer query, key, value;
  std::optional<WeightDropout> dropout;
  /// The sequence and the rows of the current code.
  Num b, h, g, firstQuery, firstKey;
  Segment querySegment, keySegment;
  /// For each of a thread's rows; null where nothing limits them.
  Nums rowReach;
};

/// Runs `body` for each segment of length `length` of `size` rows, and carries values.
Nums carrySegments(Code &code, int64_t size, int64_t length, ArrayRef<Num> start,
                   function_ref<Nums(Segment, ArrayRef<Num>)> body) {
  if (size == length) {
    return body({code.index(0), length}, start);
  }
  return code.carry(
      code.index(0), code.index(size), length, start,
      [&](Num begin, ArrayRef<Num> carried) { return body({begin, length}, carried); });
}

void AttentionBlock::enterQueries(Num first, Segment segment) {
  firstQuery = first;
  querySegment = segment;
  if (sizes.order) {
    place.enterQueries(segment.begin);
  }
}

/// Sets the block of queries with this number. The last queries of a head come first: under a
/// causal mask they take longest, and no device ends with such a block alone.
void AttentionBlock::enterQueryBlock(Num number) {
  Parts parts = partsOfQueries(sizes);
  Nums at = code.placeOf(number, {sizes.batch, sizes.kvHeads, sizes.group, parts.count});
  b = at[0], h = at[1], g = at[2];
  Num part = sizes.isBidirectional ? at[3] : code.index(parts.count - 1) - at[3];
  enterQueries(parts.firstRow(code, part), parts.segmentOf(part));
}

/// Sets the limits of rows, once the block of queries is set.
void AttentionBlock::takeReach() {
  rowReach.clear();
  for (int64_t i = 0; i < each; ++i) {
    rowReach.push_back(reach.of(place, querySegment, b, firstQuery + matmul.row(i)));
  }
}

/// Runs `body` for each tile of keys that the block's queries see.
Nums AttentionBlock::carryKeys(ArrayRef<Num> start, function_ref<Nums(ArrayRef<Num>)> body) {
  return carrySegments(
      code, sizes.keys, sizes.keySegment, start, [&](Segment segment, ArrayRef<Num> carried) {
        keySegment = segment;
        if (sizes.order) {
          place.enterKeys(segment.begin);
        }
        auto [first, last] = keysSeen(code, sizes, place, segment, firstQuery,
                                      reach.of(place, querySegment, b, firstQuery));
        return code.carry(first, last, side, carried, [&](Num start, ArrayRef<Num> carried) {
          firstKey = start;
          return body(carried);
        });
      });
}

/// Returns a thread's score, or kUnseen if its query must not see its key.
Num AttentionBlock::visible(Num score, int64_t i, int64_t j) {
  Num number = firstKey + matmul.column(j);
  Num own = place.keyAt(firstQuery + matmul.row(i));
  Num sees;
  auto also = [&](Num condition) { sees = sees ? sees & condition : condition; };
  if (!sizes.isBidirectional) {
    also(number <= own);
  }
  if (rowReach[i]) {
    also(own < number + rowReach[i]);
  }
  if (keySegment.length % side != 0) {
    also(number < keySegment.end());
  }
  return sees ? code.select(sees, score, code.real(type, kUnseen)) : score;
}

/// Returns the factor of dropout for the weight.
Num AttentionBlock::keepFactor(int64_t i, int64_t j) {
  return dropout->factor(code, type,
                         {b, h, g, place.positionOfQuery(firstQuery + matmul.row(i)),
                          place.positionOfKey(firstKey + matmul.column(j))});
}

/// Adds the matmul of `tile` and the factor, for all features.
void AttentionBlock::addSlabs(const Factor &factor, MutableArrayRef<Num> sums) {
  for (int64_t slab = 0; slab < slabsOf(factor.rows.getFeatureCount()); ++slab) {
    auto own = sums.slice(slab * each * each, each * each);
    llvm::copy(matmul.addTimes(tile, factor, slab * side, own), own.begin());
  }
}

/// Stores the results of `finish` for a thread's sums, and for their row, as far as rows and
/// features exist.
void AttentionBlock::storeSlabs(const RowBlock &rows, ArrayRef<Num> sums,
                                function_ref<Num(Num, int64_t)> finish) {
  Num count = rows.countRows(code, side);
  int64_t features = rows.getFeatureCount();
  for (int64_t i = 0; i < each; ++i) {
    code.when(matmul.row(i) < count, [&] {
      for (int64_t slab = 0; slab < slabsOf(features); ++slab) {
        for (int64_t j = 0; j < each; ++j) {
          Num feature = matmul.column(j) + slab * side;
          Num sum = finish(sums[(slab * each + i) * each + j], i);
          auto store = [&] { rows.store(sum, matmul.row(i), feature); };
          if ((slab + 1) * side <= features) {
            store();
          } else {
            code.when(feature < features, store);
          }
        }
      }
    });
  }
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

class ForwardBlock : AttentionBlock {
public:
  ForwardBlock(Code &code, AttentionOp op, AttentionOp::Adaptor operands, ValueRange results)
      : AttentionBlock(code, op, operands), output(code.buffer(results[0])),
        lse(code.buffer(results[1])) {}

  void emit(Num number);

private:
  Nums emitTile(ArrayRef<Num> carried);
  void emitResults(ArrayRef<Num> carried);

  Buffer output, lse;
};

/// The values carried from tile to tile: for each of a thread's rows the greatest score so far and
/// the sum of exp(score - greatest), the same in all threads of the row, then the sums over values.
void ForwardBlock::emit(Num number) {
  enterQueryBlock(number);
  takeReach();
  Nums start(each, code.real(type, kUnseen));
  start.append(each + slabsOf(sizes.valueFeatures) * each * each, code.real(type, 0));
  emitResults(carryKeys(start, [&](ArrayRef<Num> carried) { return emitTile(carried); }));
}

Nums ForwardBlock::emitTile(ArrayRef<Num> carried) {
  Nums scores = matmul.timesTransposed(rowsOfQueries(query, scale), rowsOfKeys(key));
  Nums next(carried);
  for (int64_t i = 0; i < each; ++i) {
    Num greatest = carried[i], total = code.real(type, 0);
    for (int64_t j = 0; j < each; ++j) {
      Num &score = scores[i * each + j];
      score = visible(score, i, j);
      greatest = code.max(greatest, score);
    }
    greatest = matmul.combineRow(greatest, [&](Num a, Num b) { return code.max(a, b); });
    for (int64_t j = 0; j < each; ++j) {
      Num weight = code.exp(scores[i * each + j] - greatest);
      total = total + weight;
      scores[i * each + j] = weight;
    }
    total = matmul.sumOfRow(total);
    Num factor = code.exp(carried[i] - greatest);
    next[i] = greatest;
    next[each + i] = carried[each + i] * factor + total;
    for (size_t n = 2 * each + i * each; n < next.size(); n += each * each) {
      for (int64_t j = 0; j < each; ++j) {
        next[n + j] = next[n + j] * factor;
      }
    }
  }
  matmul.putTransposed(tile, [&](int64_t i, int64_t j) {
    Num weight = scores[i * each + j];
    return dropout ? weight * keepFactor(i, j) : weight;
  });
  addSlabs(rowsOfKeys(value), MutableArrayRef<Num>(next).drop_front(2 * each));
  return next;
}

void ForwardBlock::emitResults(ArrayRef<Num> carried) {
  RowBlock rows = rowsOfQueries(output).rows;
  Num count = rows.countRows(code, side);
  Nums factors;
  for (int64_t i = 0; i < each; ++i) {
    auto [total, factor] = normalizerOf(code, place, carried[i], carried[each + i]);
    factors.push_back(factor);
    code.when(matmul.isFirstOfRow() & (matmul.row(i) < count), [&, total = total] {
      lse.store(carried[i] + code.log(total), b, h, g, firstQuery + matmul.row(i));
    });
  }
  storeSlabs(rows, carried.drop_front(2 * each),
             [&](Num sum, int64_t i) { return sum * factors[i]; });
}

//===----------------------------------------------------------------------===//
// Gradient of attention
//===----------------------------------------------------------------------===//

class GradientBlock : AttentionBlock {
public:
  /// `dots` is memory for o'·o of each row of lse, which `emitQueries` computes.
  GradientBlock(Code &code, AttentionGradOp op, AttentionGradOp::Adaptor operands,
                ValueRange results, Buffer dots)
      : AttentionBlock(code, op, operands), output(code.buffer(operands.getOutput())),
        lse(code.buffer(operands.getLse())), gradient(code.buffer(operands.getGradient())),
        queryGradient(code.buffer(results[0])), keyGradient(code.buffer(results[1])),
        valueGradient(code.buffer(results[2])), dots(dots) {}

  void emitQueries(Num number);
  void emitKeys(Num number);

private:
  using RowDot = function_ref<Num(Num row, Num isRow)>;
  void takeRows(RowDot dotOf);
  Num makeDot(Num row, Num isRow);
  void makeScores();
  void addQueryBlock(MutableArrayRef<Num> valueSums, MutableArrayRef<Num> keySums);

  Buffer output, lse, gradient;
  Buffer queryGradient, keyGradient, valueGradient, dots;
  /// For each of a thread's rows: lse, and o'·o.
  Nums rowLse, rowDots;
  /// For each of a thread's scores: its weight times the factor of dropout, and its gradient.
  Nums weights, scoreGradients;
};

/// Rows after the last query get weights of zero.
void GradientBlock::takeRows(RowDot dotOf) {
  Num count = rowsOfQueries(output).rows.countRows(code, side);
  takeReach();
  rowLse.clear();
  rowDots.clear();
  for (int64_t i = 0; i < each; ++i) {
    Num isRow = matmul.row(i) < count, row = code.select(isRow, matmul.row(i), code.index(0));
    Num own = lse(b, h, g, firstQuery + row);
    rowLse.push_back(code.select(isRow, own, code.real(type, -kUnseen)));
    rowDots.push_back(dotOf(row, isRow));
  }
}

Num GradientBlock::makeDot(Num row, Num isRow) {
  RowBlock outputs = rowsOfQueries(output).rows, gradients = rowsOfQueries(gradient).rows;
  Num sum = matmul.sumRow(sizes.valueFeatures, [&](Num feature) {
    return outputs.at(row, feature) * gradients.at(row, feature);
  });
  code.when(matmul.isFirstOfRow() & isRow, [&] { dots.store(sum, b, h, g, firstQuery + row); });
  return sum;
}

void GradientBlock::makeScores() {
  weights = matmul.timesTransposed(rowsOfQueries(query, scale), rowsOfKeys(key));
  scoreGradients = matmul.timesTransposed(rowsOfQueries(gradient), rowsOfKeys(value));
  for (int64_t n = 0; n < each * each; ++n) {
    int64_t i = n / each, j = n % each;
    Num weight = code.exp(visible(weights[n], i, j) - rowLse[i]);
    Num factor = dropout ? keepFactor(i, j) : Num();
    Num weightGradient = factor ? scoreGradients[n] * factor : scoreGradients[n];
    weights[n] = factor ? weight * factor : weight;
    scoreGradients[n] = weight * (weightGradient - rowDots[i]);
  }
}

void GradientBlock::emitQueries(Num number) {
  enterQueryBlock(number);
  takeRows([&](Num row, Num isRow) { return makeDot(row, isRow); });
  Nums start(slabsOf(sizes.features) * each * each, code.real(type, 0));
  Nums sums = carryKeys(start, [&](ArrayRef<Num> carried) {
    makeScores();
    matmul.putTransposed(tile, [&](int64_t i, int64_t j) { return scoreGradients[i * each + j]; });
    Nums next(carried);
    addSlabs(rowsOfKeys(key), next);
    return next;
  });
  storeSlabs(rowsOfQueries(queryGradient).rows, sums,
             [&](Num sum, int64_t) { return sum * scale; });
}

void GradientBlock::emitKeys(Num number) {
  Parts parts = partsOfKeys(sizes);
  Nums at = code.placeOf(number, {sizes.batch, sizes.kvHeads, parts.count});
  b = at[0], h = at[1];
  firstKey = parts.firstRow(code, at[2]);
  keySegment = parts.segmentOf(at[2]);
  if (sizes.order) {
    place.enterKeys(keySegment.begin);
  }
  int64_t ofValues = slabsOf(sizes.valueFeatures) * each * each;
  Nums start(ofValues + slabsOf(sizes.features) * each * each, code.real(type, 0));
  auto addSegment = [&](Segment segment, ArrayRef<Num> carried) {
    enterQueries(segment.begin, segment);
    auto [first, last] = queriesSeeing(code, sizes, place, reach, segment, b, firstKey);
    return code.carry(first, last, side, carried, [&](Num start, ArrayRef<Num> carried) {
      firstQuery = start;
      Nums next(carried);
      auto sums = MutableArrayRef<Num>(next);
      addQueryBlock(sums.take_front(ofValues), sums.drop_front(ofValues));
      return next;
    });
  };
  Nums sums = code.carry(
      code.index(0), code.index(sizes.group), 1, start, [&](Num head, ArrayRef<Num> carried) {
        g = head;
        return carrySegments(code, sizes.queries, sizes.querySegment, carried, addSegment);
      });
  auto asItIs = [](Num sum, int64_t) { return sum; };
  storeSlabs(rowsOfKeys(valueGradient).rows, ArrayRef<Num>(sums).take_front(ofValues), asItIs);
  storeSlabs(rowsOfKeys(keyGradient).rows, ArrayRef<Num>(sums).drop_front(ofValues), asItIs);
}

void GradientBlock::addQueryBlock(MutableArrayRef<Num> valueSums, MutableArrayRef<Num> keySums) {
  takeRows([&](Num row, Num) { return dots(b, h, g, firstQuery + row); });
  makeScores();
  auto addFrom = [&](ArrayRef<Num> numbers, const Factor &factor, MutableArrayRef<Num> sums) {
    code.barrier();
    matmul.put(tile, [&](int64_t i, int64_t j) { return numbers[i * each + j]; });
    addSlabs(factor, sums);
  };
  addFrom(weights, rowsOfQueries(gradient), valueSums);
  addFrom(scoreGradients, rowsOfQueries(query, scale), keySums);
}

} // namespace

void lowerAttentionForDevice(Code &code, AttentionOp op, AttentionOp::Adaptor operands,
                             ValueRange results) {
  AttentionSizes sizes = AttentionBlock::sizesFor(code, op, operands);
  code.blocks(countQueryBlocks(sizes), rt::kBlockThreads * code.countLanes(),
              [&](Num number) { ForwardBlock(code, op, operands, results).emit(number); });
}

void lowerAttentionGradForDevice(Code &code, AttentionGradOp op, AttentionGradOp::Adaptor operands,
                                 ValueRange results) {
  AttentionSizes sizes = AttentionBlock::sizesFor(code, op, operands);
  int64_t width = rt::kBlockThreads * code.countLanes();
  Buffer lse = code.buffer(operands.getLse());
  Buffer dots = code.lasting(lse.getElementType(), lse.getShape());
  auto run = [&](int64_t count, void (GradientBlock::*emit)(Num)) {
    code.blocks(count, width, [&](Num number) {
      (GradientBlock(code, op, operands, results, dots).*emit)(number);
    });
  };
  run(countQueryBlocks(sizes), &GradientBlock::emitQueries);
  run(countKeyBlocks(sizes), &GradientBlock::emitKeys);
}

} // namespace weft::lower
