//===- TokenLists.cpp - the tokens of each row of a table -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenLists.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Tokens that a thread goes through for its range of rows, and ranges at most: together as many
/// threads as devices run, and few numbers to add up.
constexpr int64_t kPiece = 512, kMostRanges = 512;

} // namespace

TokenLists::TokenLists(Code &code, int64_t tokens, int64_t rows, RowOf rowOf)
    : code(code), tokens(tokens), rows(rows), piece(kPiece),
      width(llvm::divideCeil(rows, kMostRanges)), pieces(llvm::divideCeil(tokens, piece)),
      ranges(llvm::divideCeil(rows, width)) {
  Type i32 = code.getBuilder().getI32Type();
  counts = code.lasting(i32, {pieces, ranges});
  totals = code.lasting(i32, {ranges}), starts = code.lasting(i32, {ranges});
  rangeTokens = code.lasting(i32, {tokens}), rangeRows = code.lasting(i32, {tokens});
  rowTokens = code.lasting(i32, {tokens}), sortedRows = code.lasting(i32, {tokens});
  begins = code.lasting(i32, {rows}), ends = code.lasting(i32, {rows});
  countPieces(rowOf);
  addPieces();
  sortByRanges(rowOf);
  sortByRows();
}

Num TokenLists::begin(Num row) const { return code.toIndex(begins(row)); }
Num TokenLists::end(Num row) const { return code.toIndex(ends(row)); }
Num TokenLists::countAll() const { return end(code.index(rows - 1)); }
Num TokenLists::tokenAt(Num place) const { return code.toIndex(rowTokens(place)); }
Num TokenLists::rowAt(Num place) const { return code.toIndex(sortedRows(place)); }

Num TokenLists::sumBefore(Num count, function_ref<Num(Num, Num)> term) {
  return code
      .carryByFours(code.index(0), count, 1, {code.index(0)},
                    [&](Num i, ArrayRef<Num> sum) { return Nums{sum[0] + term(i, sum[0])}; })
      .front();
}

/// Visits the tokens of a piece whose rows are of a range. The first one's place is `first`, and
/// each other's one more than that before it; returns the place behind the last.
Num TokenLists::forPiece(RowOf rowOf, Num number, Num range, Num first, Visit visit) {
  Num from = number * piece, end = from + piece, firstRow = range * width;
  end = code.select(end < tokens, end, code.index(tokens));
  return code
      .carryByFours(from, end, 1, {first},
                    [&](Num token, ArrayRef<Num> place) {
                      Num row = rowOf(token);
                      Num isHere = code.lessUnsigned(row, code.index(rows)) &
                                   code.lessUnsigned(row - firstRow, code.index(width));
                      visit(token, row, code.select(isHere, place[0], code.index(-1)));
                      return Nums{code.select(isHere, place[0] + 1, place[0])};
                    })
      .front();
}

void TokenLists::countPieces(RowOf rowOf) {
  code.parallelAll({pieces, ranges}, [&](ArrayRef<Num> at) {
    Num count = forPiece(rowOf, at[0], at[1], code.index(0), [](Num, Num, Num) {});
    counts.store(code.toInt32(count), at);
  });
}

void TokenLists::addPieces() {
  code.parallel(ranges, [&](Num range) {
    // Of each piece it is asked how many come before it from here on.
    Num total = sumBefore(code.index(pieces), [&](Num number, Num before) {
      Num own = code.toIndex(counts(number, range));
      counts.store(code.toInt32(before), number, range);
      return own;
    });
    totals.store(code.toInt32(total), range);
  });
  code.parallel(ranges, [&](Num range) {
    Num start = sumBefore(range, [&](Num other, Num) { return code.toIndex(totals(other)); });
    starts.store(code.toInt32(start), range);
  });
}

void TokenLists::sortByRanges(RowOf rowOf) {
  code.parallelAll({pieces, ranges}, [&](ArrayRef<Num> at) {
    Num first = code.toIndex(starts(at[1])) + code.toIndex(counts(at[0], at[1]));
    forPiece(rowOf, at[0], at[1], first, [&](Num token, Num row, Num place) {
      code.when(code.index(-1) < place, [&] {
        rangeTokens.store(code.toInt32(token), place);
        rangeRows.store(code.toInt32(row), place);
      });
    });
  });
}

/// A thread for each row goes through its range twice.
void TokenLists::sortByRows() {
  Num none = code.index(0);
  code.parallel(rows, [&](Num row) {
    Num range = row / width, own = code.toInt32(row);
    Num first = code.toIndex(starts(range)), end = first + code.toIndex(totals(range));
    Nums found = code.carryByFours(first, end, 1, {first, none}, [&](Num i, ArrayRef<Num> before) {
      Num other = rangeRows(i);
      return Nums{code.select(other < own, before[0] + 1, before[0]),
                  code.select(other == own, before[1] + 1, before[1])};
    });
    begins.store(code.toInt32(found[0]), row);
    ends.store(code.toInt32(found[0] + found[1]), row);
    code.when(none < found[1], [&] {
      code.carryByFours(first, end, 1, {found[0]}, [&](Num i, ArrayRef<Num> place) {
        Num isOwn = rangeRows(i) == own;
        code.when(isOwn, [&] {
          rowTokens.store(rangeTokens(i), place[0]);
          sortedRows.store(own, place[0]);
        });
        return Nums{code.select(isOwn, place[0] + 1, place[0])};
      });
    });
  });
}

} // namespace weft::lower
