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
/// Fewer numbers are summed by one block.
constexpr int64_t kLeastChunk = 8192;
/// The most blocks that share sums: eight for each multiprocessor of large devices.
constexpr int64_t kMostBlocks = 1056;
/// A shorter row is summed by one thread.
constexpr int64_t kLeastRow = 32;
/// Chunks of neighboring columns for each block, and the most rows that one block sums alone.
constexpr int64_t kColumnChunks = 8, kFewRows = 512;
/// The rows of a block if there are many: four for each of its threads.
constexpr int64_t kLeastRows = 4 * kThreads / kColumnChunks;

/// The blocks that share sums of columns: each has kColumnChunks chunks of columns, so that its
/// threads read whole cache lines.
struct ColumnGroups {
  ColumnGroups(Code &code, int64_t columns)
      : columns(columns), lanes(columns % code.countLanes() == 0 ? code.countLanes() : 1),
        chunks(lanes == 1 ? 32 : kColumnChunks), count(llvm::divideCeil(columns, chunks * lanes)) {}

  int64_t width() const { return chunks * lanes; }
  int64_t shares() const { return kThreads / chunks; }

  int64_t columns, lanes, chunks, count;
};

/// Sums up the columns of group number `group` over the rows from `first` to before `end`.
void sumGroup(Code &code, BlockSums sums, const ColumnGroups &groups, Num group, Num first, Num end,
              function_ref<Nums(Num, Num)> terms, function_ref<void(Num, ArrayRef<Num>)> finish) {
  int64_t lanes = groups.lanes, shares = groups.shares();
  Num chunk = code.remainder(code.thread(), groups.chunks), share = code.thread() / groups.chunks;
  Num column = (group * groups.chunks + chunk) * lanes;
  Buffer slots = code.shared(sums.type, {sums.count, shares, groups.width()});
  Nums zeros(sums.count * lanes, code.real(sums.type, 0));
  auto number = [&](int64_t value) { return code.index(value); };
  code.when(column < groups.columns, [&] {
    Nums own =
        code.carryByFours(first + share, end, shares, zeros, [&](Num row, ArrayRef<Num> carried) {
          Nums next;
          for (int64_t lane = 0; lane < lanes; ++lane) {
            for (Num term : terms(row, lanes == 1 ? column : code.neighbor(column, lane))) {
              next.push_back(carried[next.size()] + term);
            }
          }
          return next;
        });
    for (auto [i, sum] : llvm::enumerate(own)) {
      auto place = static_cast<int64_t>(i);
      slots.store(sum, number(place % sums.count), share, chunk * lanes + place / sums.count);
    }
  });
  code.barrier();
  code.when(code.thread() < groups.width(), [&] {
    Num last = group * groups.width() + code.thread();
    code.when(last < groups.columns, [&] {
      Nums totals;
      for (int64_t i = 0; i < sums.count; ++i) {
        Num total = slots(number(i), number(0), code.thread());
        for (int64_t other = 1; other < shares; ++other) {
          total = total + slots(number(i), number(other), code.thread());
        }
        totals.push_back(total);
      }
      finish(last, totals);
    });
  });
  // The next sums of this block may use the slots again.
  code.barrier();
}

/// Returns how many blocks share a row, if rows are so few that devices would be idle; 0 if one
/// block has it alone.
int64_t countSharing(int64_t rows, int64_t columns) {
  int64_t blocks = std::min(columns / kLeastChunk, kMostBlocks / rows);
  return blocks < 2 ? 0 : blocks;
}

/// Blocks take turns at chunks of the size that their threads load at once; all blocks share the
/// remainder in the end.
void sumLongRows(Code &code, BlockSums sums, int64_t rows, int64_t columns,
                 function_ref<Nums(Num, Num)> terms,
                 function_ref<void(Num, ArrayRef<Num>)> finish) {
  int64_t chunk = kThreads * code.countLanes(), chunks = columns / chunk, done = chunks * chunk;
  int64_t blocks = countSharing(rows, columns);
  Buffer parts = code.lasting(sums.type, {sums.count, rows, blocks});
  code.blocks(rows * blocks, chunk, [&](Num block) {
    Num row = block / blocks, number = code.remainder(block, blocks);
    Nums own = code.sumsOfParts(sums.type, number, code.index(chunks), blocks, sums.count,
                                [&](Num i) { return terms(row, i); });
    code.once([&] {
      for (auto [i, sum] : llvm::enumerate(own)) {
        parts.store(sum, code.index(int64_t(i)), row, number);
      }
    });
  });
  code.blocks(rows, std::max(columns - done, blocks), [&](Num row) {
    Nums totals = code.sums(sums.type, code.index(0), code.index(columns - done), sums.count,
                            [&](Num i) { return terms(row, i + done); });
    Nums before = code.sums(sums.type, code.index(0), code.index(blocks), sums.count, [&](Num i) {
      Nums values;
      for (int64_t number = 0; number < sums.count; ++number) {
        values.push_back(parts(code.index(number), row, i));
      }
      return values;
    });
    for (auto [total, sum] : llvm::zip_equal(totals, before)) {
      total = total + sum;
    }
    code.once([&] { finish(row, totals); });
  });
}

} // namespace

void sumWhole(Code &code, BlockSums sums, int64_t size, function_ref<Nums(Num)> terms,
              function_ref<void(ArrayRef<Num>)> finish) {
  sumRows(
      code, sums, 1, size, [&](Num, Num i) { return terms(i); },
      [&](Num, ArrayRef<Num> totals) { finish(totals); });
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
  if (countSharing(rows, columns) != 0) {
    sumLongRows(code, sums, rows, columns, terms, finish);
    return;
  }
  code.blocks(rows, columns,
              [&](Num row) {
                Nums totals = sumRow(row);
                code.once([&] { finish(row, totals); });
              },
              {.areAlike = true});
}

void sumColumns(Code &code, BlockSums sums, int64_t rows, int64_t columns,
                function_ref<Nums(Num, Num)> terms, function_ref<void(Num, ArrayRef<Num>)> finish) {
  ColumnGroups groups(code, columns);
  int64_t width = kThreads * code.countLanes();
  int64_t chunks = std::min(rows / kLeastRows, kMostBlocks / groups.count);
  if (rows <= kFewRows || chunks <= 1) {
    code.blocks(groups.count, width, [&](Num group) {
      sumGroup(code, sums, groups, group, code.index(0), code.index(rows), terms, finish);
    });
    return;
  }
  int64_t chunk = llvm::divideCeil(rows, chunks);
  Buffer parts = code.lasting(sums.type, {sums.count, chunks, columns});
  code.blocks(chunks * groups.count, width, [&](Num block) {
    Num number = block / groups.count, group = code.remainder(block, groups.count);
    Num first = number * chunk, end = first + chunk;
    end = code.select(end < rows, end, code.index(rows));
    sumGroup(code, sums, groups, group, first, end, terms, [&](Num column, ArrayRef<Num> totals) {
      for (auto [i, total] : llvm::enumerate(totals)) {
        parts.store(total, code.index(int64_t(i)), number, column);
      }
    });
  });
  code.blocks(groups.count, width, [&](Num group) {
    auto partOf = [&](Num row, Num column) {
      Nums values;
      for (int64_t i = 0; i < sums.count; ++i) {
        values.push_back(parts(code.index(i), row, column));
      }
      return values;
    };
    sumGroup(code, sums, groups, group, code.index(0), code.index(chunks), partOf, finish);
  });
}

} // namespace weft::lower
