//===- BlockSums.cpp - sums of many numbers on devices ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"

#include "weft-rt/DeviceImage.h"

namespace weft::lower {

using namespace mlir;

namespace {

constexpr int64_t kThreads = rt::kBlockThreads;
/// Fewer numbers are one block's work.
constexpr int64_t kLeastPiece = 8192;
/// Blocks that share a sum, at most.
constexpr int64_t kMostPieces = 1024;
/// A row of fewer is one thread's.
constexpr int64_t kLeastRow = 128;
/// Neighboring columns of a block, and rows of one of its threads, at most.
constexpr int64_t kColumns = 32, kMostRows = 512;

/// All numbers of the columns, which blocks of kColumns columns share; block number `group` is for
/// the columns from kColumns * group on, and takes the rows from `first` to before `end`.
void sumGroup(Code &code, BlockSums sums, Num group, Num first, Num end, int64_t columns,
              function_ref<Nums(Num, Num)> terms, function_ref<void(Num, ArrayRef<Num>)> finish) {
  constexpr int64_t kShares = kThreads / kColumns;
  Num lane = code.remainder(code.thread(), kColumns), share = code.thread() / kColumns;
  Num column = group * kColumns + lane;
  Buffer slots = code.shared(sums.type, {sums.count, kShares, kColumns});
  Nums zeros(sums.count, code.real(sums.type, 0));
  auto number = [&](int64_t value) { return code.index(value); };
  code.when(column < columns, [&] {
    Nums own = code.carry(first + share, end, kShares, zeros, [&](Num row, ArrayRef<Num> carried) {
      Nums next = terms(row, column);
      for (auto [sum, before] : llvm::zip_equal(next, carried)) {
        sum = before + sum;
      }
      return next;
    });
    for (auto [i, sum] : llvm::enumerate(own)) {
      slots.store(sum, number(int64_t(i)), share, lane);
    }
  });
  code.barrier();
  code.when(code.thread() < kColumns, [&] {
    code.when(column < columns, [&] {
      Nums totals;
      for (int64_t i = 0; i < sums.count; ++i) {
        Num total = slots(number(i), number(0), lane);
        for (int64_t other = 1; other < kShares; ++other) {
          total = total + slots(number(i), number(other), lane);
        }
        totals.push_back(total);
      }
      finish(column, totals);
    });
  });
  // What comes next in this block may use the slots again.
  code.barrier();
}

} // namespace

void sumWhole(Code &code, BlockSums sums, int64_t size, function_ref<Nums(Num)> terms,
              function_ref<void(ArrayRef<Num>)> finish) {
  int64_t pieces = size < 2 * kLeastPiece ? 0 : std::min(size / kLeastPiece, kMostPieces);
  int64_t piece =
      pieces == 0 ? 0
                  : size / pieces / (kThreads * code.countLanes()) * (kThreads * code.countLanes());
  Buffer parts;
  if (pieces != 0) {
    parts = code.lasting(sums.type, {sums.count, pieces});
    code.blocks(pieces, piece, [&](Num number) {
      Nums own = code.sums(sums.type, code.index(0), code.index(piece), sums.count,
                           [&](Num i) { return terms(number * piece + i); });
      code.once([&] {
        for (auto [i, sum] : llvm::enumerate(own)) {
          parts.store(sum, code.index(int64_t(i)), number);
        }
      });
    });
  }
  int64_t done = pieces * piece;
  code.blocks(1, std::max(size - done, pieces), [&](Num) {
    Nums totals = code.sums(sums.type, code.index(0), code.index(size - done), sums.count,
                            [&](Num i) { return terms(i + done); });
    if (pieces != 0) {
      Nums before = code.sums(sums.type, code.index(0), code.index(pieces), sums.count, [&](Num i) {
        Nums values;
        for (int64_t number = 0; number < sums.count; ++number) {
          values.push_back(parts(code.index(number), i));
        }
        return values;
      });
      for (auto [total, sum] : llvm::zip_equal(totals, before)) {
        total = total + sum;
      }
    }
    code.once([&] { finish(totals); });
  });
}

void sumRows(Code &code, BlockSums sums, int64_t rows, int64_t columns,
             function_ref<Nums(Num, Num)> terms, function_ref<void(Num, ArrayRef<Num>)> finish) {
  auto sumRow = [&](Num row) {
    return code.sums(sums.type, code.index(0), code.index(columns), sums.count,
                     [&](Num column) { return terms(row, column); });
  };
  if (columns < kLeastRow) {
    code.parallel(rows, [&](Num row) { finish(row, sumRow(row)); });
    return;
  }
  code.blocks(rows, columns, [&](Num row) {
    Nums totals = sumRow(row);
    code.once([&] { finish(row, totals); });
  });
}

void sumColumns(Code &code, BlockSums sums, int64_t rows, int64_t columns,
                function_ref<Nums(Num, Num)> terms, function_ref<void(Num, ArrayRef<Num>)> finish) {
  int64_t groups = llvm::divideCeil(columns, kColumns);
  int64_t width = kThreads * code.countLanes();
  if (rows <= kMostRows) {
    code.blocks(groups, width, [&](Num group) {
      sumGroup(code, sums, group, code.index(0), code.index(rows), columns, terms, finish);
    });
    return;
  }
  int64_t pieces = std::min<int64_t>(llvm::divideCeil(rows, kMostRows / 2), kMostRows);
  int64_t piece = llvm::divideCeil(rows, pieces);
  Buffer parts = code.lasting(sums.type, {sums.count, pieces, columns});
  code.blocks(pieces * groups, width, [&](Num block) {
    Num number = block / groups, group = code.remainder(block, groups);
    Num first = number * piece, end = first + piece;
    end = code.select(end < rows, end, code.index(rows));
    sumGroup(code, sums, group, first, end, columns, terms, [&](Num column, ArrayRef<Num> totals) {
      for (auto [i, total] : llvm::enumerate(totals)) {
        parts.store(total, code.index(int64_t(i)), number, column);
      }
    });
  });
  code.blocks(groups, width, [&](Num group) {
    auto partOf = [&](Num row, Num column) {
      Nums values;
      for (int64_t i = 0; i < sums.count; ++i) {
        values.push_back(parts(code.index(i), row, column));
      }
      return values;
    };
    sumGroup(code, sums, group, code.index(0), code.index(pieces), columns, partOf, finish);
  });
}

} // namespace weft::lower
