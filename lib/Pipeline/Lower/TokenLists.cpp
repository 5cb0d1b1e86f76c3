//===- TokenLists.cpp - the tokens of each row of a table -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TokenLists.h"

#include "BlockSums.h"

#include "weft-rt/DeviceImage.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// The tokens of a thread's chunk, and the most ranges, for each of which a block has a thread:
/// together as many threads as devices run, and few counts to add up.
constexpr int64_t kChunk = 256, kMostRanges = rt::kMostBlockThreads;
/// The counts that a thread loads together.
constexpr int64_t kTogether = 16;

} // namespace

TokenLists::TokenLists(Code &code, int64_t tokens, int64_t rows, RowOf rowOf)
    : code(code), tokens(tokens), rows(rows), chunk(kChunk),
      width(llvm::divideCeil(rows, kMostRanges)), chunks(llvm::divideCeil(tokens, chunk)),
      ranges(llvm::divideCeil(rows, width)) {
  Type i32 = code.getBuilder().getI32Type();
  counts = code.lasting(i32, {chunks, ranges});
  totals = code.lasting(i32, {ranges}), starts = code.lasting(i32, {ranges});
  rangeTokens = code.lasting(i32, {tokens}), rangeRows = code.lasting(i32, {tokens});
  countChunks(rowOf);
  addChunks();
  sortByRanges(rowOf);
  if (width == 1) {
    rowTokens = rangeTokens, sortedRows = rangeRows, begins = starts, sizes = totals;
    return;
  }
  rowTokens = code.lasting(i32, {tokens}), sortedRows = code.lasting(i32, {tokens});
  begins = code.lasting(i32, {rows}), sizes = code.lasting(i32, {rows});
  if (chunks > 1) {
    fewer = code.lasting(i32, {chunks - 1, width}), own = code.lasting(i32, {chunks - 1, width});
  }
  sortByRows();
}

Num TokenLists::begin(Num row) const { return code.toIndex(begins(row)); }
Num TokenLists::end(Num row) const { return begin(row) + code.toIndex(sizes(row)); }
Num TokenLists::countAll() const { return endOf(code.index(ranges - 1)); }
Num TokenLists::tokenAt(Num place) const { return code.toIndex(rowTokens(place)); }
Num TokenLists::endOf(Num range) const {
  return code.toIndex(starts(range)) + code.toIndex(totals(range));
}
Num TokenLists::rowAt(Num place) const { return code.toIndex(sortedRows(place)); }

/// Visits the tokens of a chunk whose rows are in a range. Their places count up from `first`;
/// returns the place after the last.
Num TokenLists::forChunk(RowOf rowOf, Num number, Num range, Num first, Visit visit) {
  Num from = number * chunk, end = from + chunk, firstRow = range * width;
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

void TokenLists::countChunks(RowOf rowOf) {
  code.parallelAll({chunks, ranges}, [&](ArrayRef<Num> at) {
    Num count = forChunk(rowOf, at[0], at[1], code.index(0), [](Num, Num, Num) {});
    counts.store(code.toInt32(count), at);
  });
}

/// One block, with a thread for each range.
void TokenLists::addChunks() {
  int64_t width = 2 * kMostRanges * code.countLanes();
  code.blocks(1, width, [&](Num) {
    Num range = code.thread(), isRange = range < ranges, none = code.index(0);
    // Other threads visit no chunk.
    Num end = code.select(isRange, code.index(chunks), none);
    // From here on the counts of each chunk are those of the chunks before it.
    auto next = [&](Num number, ArrayRef<Num> before) {
      Num own = code.toIndex(counts(number, range));
      counts.store(code.toInt32(before[0]), number, range);
      return Nums{before[0] + own};
    };
    Num total = code.toInt32(code.carryByFours(none, end, 1, {none}, next, kTogether).front());
    Buffer slots = slotsForSums(code, total.getType(), 1);
    Num start = sumsBefore(code, total, 1, slots, none).first;
    code.when(isRange, [&] {
      totals.store(total, range);
      starts.store(start, range);
    });
  });
}

void TokenLists::sortByRanges(RowOf rowOf) {
  code.parallelAll({chunks, ranges}, [&](ArrayRef<Num> at) {
    Num first = code.toIndex(starts(at[1])) + code.toIndex(counts(at[0], at[1]));
    forChunk(rowOf, at[0], at[1], first, [&](Num token, Num row, Num place) {
      code.when(code.index(-1) < place, [&] {
        rangeTokens.store(code.toInt32(token), place);
        rangeRows.store(code.toInt32(row), place);
      });
    });
  });
}

/// Counts the tokens at a range's places whose rows are before `row`, and those of `row`.
Nums TokenLists::countOf(Num row, Num from, Num end) {
  Num none = code.index(0), number = code.toInt32(row);
  return code.carryByFours(from, end, 1, {none, none}, [&](Num i, ArrayRef<Num> before) {
    Num other = rangeRows(i);
    return Nums{code.select(other < number, before[0] + 1, before[0]),
                code.select(other == number, before[1] + 1, before[1])};
  });
}

/// Lists the tokens of `row` at a range's places; the first one gets place `place`.
void TokenLists::list(Num row, Num from, Num end, Num place) {
  Num number = code.toInt32(row);
  code.carryByFours(from, end, 1, {place}, [&](Num i, ArrayRef<Num> next) {
    Num isOwn = rangeRows(i) == number;
    code.when(isOwn, [&] {
      rowTokens.store(rangeTokens(i), next[0]);
      sortedRows.store(number, next[0]);
    });
    return Nums{code.select(isOwn, next[0] + 1, next[0])};
  });
}

/// Builds a phase with a thread for each chunk of the places except the first, and each row of the
/// range that the chunk cuts: visits the chunk's part of that range, which is empty if a range
/// begins with the chunk.
void TokenLists::forCuts(function_ref<void(ArrayRef<Num>, Num, Num, Num)> body) {
  if (chunks <= 1) {
    return;
  }
  code.parallelAll({chunks - 1, width}, [&](ArrayRef<Num> at) {
    Num from = (at[0] + 1) * chunk, next = from + chunk;
    code.when(from < countAll(), [&] {
      Num range = code.toIndex(rangeRows(from)) / width, row = range * width + at[1];
      Num isCut = (code.toIndex(starts(range)) < from) & (row < rows);
      code.when(isCut, [&] {
        Num end = endOf(range);
        body(at, row, from, code.select(end < next, end, next));
      });
    });
  });
}

/// A thread for each row visits the row's range up to the first cut, and adds up the counts of the
/// other threads after it.
void TokenLists::sortFirstChunks() {
  code.parallel(rows, [&](Num row) {
    Num range = row / width, first = code.toIndex(starts(range)), end = endOf(range);
    Num cut = first / chunk, next = (cut + 1) * chunk;
    Num firstEnd = code.select(end < next, end, next);
    Nums here = countOf(row, first, firstEnd), found = here;
    if (chunks > 1) {
      Num column = code.remainder(row, width), lastCut = (end + (chunk - 1)) / chunk - 1;
      found = code.carryByFours(cut, lastCut, 1, found, [&](Num i, ArrayRef<Num> before) {
        Nums sum = {before[0] + code.toIndex(fewer(i, column)),
                    before[1] + code.toIndex(own(i, column))};
        // From here on this is the count of the row in the chunks before.
        own.store(code.toInt32(before[1]), i, column);
        return sum;
      });
    }
    Num begin = first + found[0];
    begins.store(code.toInt32(begin), row);
    sizes.store(code.toInt32(found[1]), row);
    code.when(code.index(0) < here[1], [&] { list(row, first, firstEnd, begin); });
  });
}

void TokenLists::sortByRows() {
  forCuts([&](ArrayRef<Num> at, Num row, Num from, Num end) {
    Nums found = countOf(row, from, end);
    fewer.store(code.toInt32(found[0]), at);
    own.store(code.toInt32(found[1]), at);
  });
  sortFirstChunks();
  forCuts([&](ArrayRef<Num> at, Num row, Num from, Num end) {
    list(row, from, end, begin(row) + code.toIndex(own(at[0], at[1])));
  });
}

} // namespace weft::lower
