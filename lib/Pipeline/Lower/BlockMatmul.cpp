//===- BlockMatmul.cpp - matmuls of tiles by a block of threads -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockMatmul.h"

namespace weft::lower {

using namespace mlir;

BlockMatmul::BlockMatmul(Code &code, Type type) : code(code), type(type), each(eachOf(type)) {
  firstRow = code.thread() / kAcross * each;
  firstColumn = code.remainder(code.thread(), kAcross) * each;
  left = makeMemory(getDepth());
  right = makeMemory(getDepth());
}

/// Rows are padded by 16 bytes, so that columns lie in different banks.
Buffer BlockMatmul::makeMemory(int64_t rows) const {
  return code.shared(type, {rows, getSide() + 16 / sizeOf(type)});
}

Buffer BlockMatmul::makeTile() const { return makeMemory(getSide()); }

void BlockMatmul::put(Buffer tile, NumberAt number) const {
  putRows(tile, number, firstRow, firstColumn);
}

void BlockMatmul::putTransposed(Buffer tile, NumberAt number) const {
  putRows(tile, [&](int64_t i, int64_t j) { return number(j, i); }, firstColumn, firstRow);
}

/// Neighbors stay together in groups of 16 bytes, whose places differ from row to row, so that
/// threads with consecutive rows write to different banks.
void BlockMatmul::putRows(Buffer tile, NumberAt number, Num firstRow, Num firstPlace) const {
  Buffer flat = tile.flat();
  Num place = swizzled(firstRow, firstPlace);
  for (int64_t i = 0; i < each; ++i) {
    for (int64_t j = 0; j < each; ++j) {
      flat.store(number(i, j), (firstRow + i) * tile.getSize(-1) + place + j);
    }
  }
}

Nums BlockMatmul::zeros() const { return Nums(each * each, code.real(type, 0)); }

Nums BlockMatmul::timesTransposed(const Factor &a, const Factor &b) const {
  Num end = code.index(a.rows.getFeatureCount());
  return code.carry(code.index(0), end, getDepth(), zeros(), [&](Num first, ArrayRef<Num> sums) {
    code.barrier();
    bringColumns(a, first, left);
    bringColumns(b, first, right);
    code.barrier();
    return multiply(left, code.index(0), right, sums, [&](Num) { return firstRow; });
  });
}

Nums BlockMatmul::addTimes(Buffer tile, const Factor &b, int64_t firstFeature,
                           ArrayRef<Num> sums) const {
  return code.carry(code.index(0), code.index(getSide()), getDepth(), sums,
                    [&](Num first, ArrayRef<Num> carried) {
                      code.barrier();
                      bringRows(b, first, firstFeature, right);
                      code.barrier();
                      return multiply(tile, first, right, carried,
                                      [&](Num k) { return swizzled(k, firstRow); });
                    });
}

/// A warp reads eight neighboring features of four rows, which lie in different banks.
void BlockMatmul::bringColumns(const Factor &factor, Num first, Buffer to) const {
  constexpr int64_t kTerms = 8, kRows = 4;
  int64_t depth = getDepth(), side = getSide(), rowsAtOnce = rt::kBlockThreads / depth;
  Num warp = code.thread() / (kTerms * kRows);
  Num lane = code.remainder(code.thread(), kTerms * kRows);
  Num term = code.remainder(warp, depth / kTerms) * kTerms + code.remainder(lane, kTerms);
  Num row = warp / (depth / kTerms) * kRows + lane / kTerms;
  bool isInside =
      factor.rows.segment.length % side == 0 && factor.rows.getFeatureCount() % depth == 0;
  for (int64_t done = 0; done < side; done += rowsAtOnce) {
    bring(factor, row + done, first + term, isInside, to, {term, row + done});
  }
}

void BlockMatmul::bringRows(const Factor &factor, Num first, int64_t firstFeature,
                            Buffer to) const {
  int64_t depth = getDepth(), side = getSide(), rowsAtOnce = rt::kBlockThreads / side;
  Num column = code.remainder(code.thread(), side), term = code.thread() / side;
  bool isInside = factor.rows.segment.length % side == 0 &&
                  firstFeature + side <= factor.rows.getFeatureCount();
  for (int64_t done = 0; done < depth; done += rowsAtOnce) {
    bring(factor, first + (term + done), column + firstFeature, isInside, to,
          {term + done, column});
  }
}

/// Loads one element, or zero outside of the factor.
void BlockMatmul::bring(const Factor &factor, Num row, Num feature, bool isInside, Buffer to,
                        ArrayRef<Num> at) const {
  auto copy = [&] {
    Num value = factor.rows.at(row, feature);
    to.store(factor.scale == 1 ? value : value * factor.scale, at);
  };
  if (isInside) {
    copy();
    return;
  }
  Num isRow = row < factor.rows.countRows(code, getSide());
  code.when(isRow & (feature < factor.rows.getFeatureCount()), copy,
            [&] { to.store(code.real(type, 0), at); });
}

/// Views factors as one dimension, so that later passes recognize neighbors. Unrolls the loop over
/// terms, as the assembler does not.
Nums BlockMatmul::multiply(Buffer a, Num first, Buffer b, ArrayRef<Num> sums,
                           function_ref<Num(Num)> place) const {
  constexpr int64_t kTogether = 4;
  int64_t pitch = a.getSize(-1);
  Buffer flatA = a.flat(), flatB = b.flat();
  auto addTerm = [&](Num atA, Num atB, Nums &all) {
    Nums ofRows, ofColumns;
    for (int64_t i = 0; i < each; ++i) {
      ofRows.push_back(flatA(atA + i));
      ofColumns.push_back(flatB(atB + i));
    }
    for (int64_t i = 0; i < each * each; ++i) {
      all[i] = code.multiplyAdd(ofRows[i / each], ofColumns[i % each], all[i]);
    }
  };
  return code.carry(code.index(0), code.index(getDepth()), kTogether, sums,
                    [&](Num k, ArrayRef<Num> carried) {
                      Num rowA = (first + k) * pitch, atB = k * pitch + firstColumn;
                      Nums next(carried);
                      for (int64_t term = 0; term < kTogether; ++term) {
                        // `place` is the same for all rows that one thread has put.
                        Num atA = rowA + place(first + k + term / each * each);
                        addTerm(atA + term * pitch, atB + term * pitch, next);
                      }
                      return next;
                    });
}

Num BlockMatmul::combineRow(Num value, function_ref<Num(Num, Num)> combine) const {
  for (int64_t mask = 1; mask < kAcross; mask *= 2) {
    value = combine(value, code.shuffle(value, mask));
  }
  return value;
}

Num BlockMatmul::sumOfRow(Num value) const {
  return combineRow(value, [&](Num a, Num b) { return code.addUnfused(a, b); });
}

Num BlockMatmul::sumRow(int64_t size, function_ref<Num(Num)> term) const {
  Nums own = code.carry(firstColumn / each, code.index(size), kAcross, {code.real(type, 0)},
                        [&](Num i, ArrayRef<Num> sum) { return Nums{sum[0] + term(i)}; });
  return sumOfRow(own[0]);
}

} // namespace weft::lower
