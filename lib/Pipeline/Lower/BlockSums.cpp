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

constexpr int64_t kThreads = rt::kBlockThreads, kWarp = 32;
/// Fewer numbers are summed by one block.
constexpr int64_t kLeastChunk = 8192;
/// The multiprocessors of large devices, and the most blocks that share sums: as many as these
/// devices run at once by the sums' registers, so that no block waits for another to end.
constexpr int64_t kMultiprocessors = 132, kMostBlocks = 4 * kMultiprocessors;
/// The rounds that a thread's loop of sums loads together.
constexpr int64_t kTogether = 4;
/// A shorter row is summed by one thread.
constexpr int64_t kLeastRow = 32;
/// Chunks of neighboring columns for each block, and the most rows that one block sums alone.
constexpr int64_t kColumnChunks = 8, kFewRows = 1024;
/// The least bytes of neighboring columns that a block reads: those that memory transfers at once.
constexpr int64_t kSectorBytes = 32;
/// The rows of a block if there are many: four for each of its threads.
constexpr int64_t kLeastRows = 4 * kThreads / kColumnChunks;

/// The blocks that share sums of columns: each has some chunks of columns, so that its threads read
/// whole cache lines, or fewer chunks if one phase shall use more multiprocessors.
struct ColumnGroups {
  ColumnGroups(Code &code, int64_t columns, int64_t mostChunks = kColumnChunks)
      : columns(columns), lanes(columns % code.countLanes() == 0 ? code.countLanes() : 1),
        chunks(lanes == 1 ? 32 : mostChunks), count(llvm::divideCeil(columns, chunks * lanes)) {}

  /// Groups for `rows` rows of `type` in one phase: as narrow as keeps most multiprocessors busy,
  /// while each thread has some rows.
  static ColumnGroups forFewRows(Code &code, Type type, int64_t rows, int64_t columns) {
    ColumnGroups groups(code, columns);
    auto canHalve = [&] {
      int64_t half = groups.chunks / 2;
      return groups.lanes > 1 && half * groups.lanes * sizeOf(type) >= kSectorBytes &&
             groups.count < kMultiprocessors && kThreads / half * kTogether <= rows;
    };
    while (canHalve()) {
      groups = ColumnGroups(code, columns, groups.chunks / 2);
    }
    return groups;
  }

  int64_t width() const { return chunks * lanes; }
  int64_t shares() const { return kThreads / chunks; }

  int64_t columns, lanes, chunks, count;
};

/// Adds up the sums of threads, `slots` [sum, share, column], in pairs; those of share 0 are the
/// totals. Each thread adds the columns of its own `chunk`.
void addShares(Code &code, Buffer slots, int64_t lanes, Num share, Num chunk) {
  for (int64_t half = slots.getSize(1) / 2; half >= 1; half /= 2) {
    code.barrier();
    code.when(share < half, [&] {
      for (int64_t i = 0; i < slots.getSize(0); ++i) {
        for (int64_t lane = 0; lane < lanes; ++lane) {
          Num sum = code.index(i), column = chunk * lanes + lane;
          slots.store(slots(sum, share, column) + slots(sum, share + half, column), sum, share,
                      column);
        }
      }
    });
  }
  code.barrier();
}

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
  addShares(code, slots, lanes, share, chunk);
  code.when(code.thread() < groups.width(), [&] {
    Num last = group * groups.width() + code.thread();
    code.when(last < groups.columns, [&] {
      Nums totals;
      for (int64_t i = 0; i < sums.count; ++i) {
        totals.push_back(slots(number(i), number(0), code.thread()));
      }
      finish(last, totals);
    });
  });
  // The next sums of this block may use the slots again.
  code.barrier();
}

/// Blocks take turns at chunks of the size that their threads load at once; all blocks share the
/// remainder in the end.
void sumLongRows(Code &code, BlockSums sums, int64_t rows, int64_t columns,
                 function_ref<Nums(Num, Num)> terms,
                 function_ref<void(Num, ArrayRef<Num>)> finish) {
  int64_t chunk = kThreads * code.countLanes(), chunks = columns / chunk, done = chunks * chunk;
  int64_t blocks = countSharing(code, rows, columns);
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
    Nums totals = code.sums(sums.type, code.index(0), code.index(blocks), sums.count, [&](Num i) {
      Nums values;
      for (int64_t number = 0; number < sums.count; ++number) {
        values.push_back(parts(code.index(number), row, i));
      }
      return values;
    });
    if (done < columns) {
      Nums rest = code.sums(sums.type, code.index(0), code.index(columns - done), sums.count,
                            [&](Num i) { return terms(row, i + done); });
      for (auto [total, sum] : llvm::zip_equal(totals, rest)) {
        total = total + sum;
      }
    }
    code.once([&] { finish(row, totals); });
  });
}

} // namespace

int64_t countSharing(Code &code, int64_t rows, int64_t columns) {
  int64_t blocks = std::min(columns / kLeastChunk, kMostBlocks / rows);
  if (blocks < 2) {
    return 0;
  }
  int64_t chunks = columns / (kThreads * code.countLanes());
  return llvm::divideCeil(chunks, llvm::alignTo(llvm::divideCeil(chunks, blocks), kTogether));
}

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
  if (countSharing(code, rows, columns) > 1) {
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
  auto sumAtOnce = [&](int64_t count, function_ref<Nums(Num, Num)> of) {
    ColumnGroups narrow = ColumnGroups::forFewRows(code, sums.type, count, columns);
    code.blocks(narrow.count, width, [&](Num group) {
      sumGroup(code, sums, narrow, group, code.index(0), code.index(count), of, finish);
    });
  };
  if (rows <= kFewRows || chunks <= 1) {
    sumAtOnce(rows, terms);
    return;
  }
  // As many rows for each thread as it loads together, or a multiple.
  int64_t chunk = llvm::alignTo(llvm::divideCeil(rows, chunks), kTogether * groups.shares());
  chunks = llvm::divideCeil(rows, chunk);
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
  sumAtOnce(chunks, [&](Num row, Num column) {
    Nums values;
    for (int64_t i = 0; i < sums.count; ++i) {
      values.push_back(parts(code.index(i), row, column));
    }
    return values;
  });
}

Buffer slotsForSums(Code &code, Type type, int64_t columns, int64_t turns) {
  return code.shared(type, {turns, code.countThreads() / kWarp, columns});
}

std::pair<Num, Num> sumsBefore(Code &code, Num own, int64_t columns, Buffer slots, Num turn) {
  bool isFloat = isa<FloatType>(own.getType());
  auto add = [&](Num a, Num b) { return isFloat ? code.addUnfused(a, b) : a + b; };
  Num zero = isFloat ? constantLike(own, 0.0) : constantLike(own, int64_t(0));
  Num thread = code.thread(), warp = thread / kWarp, before = zero, inWarp = zero, total = zero;
  for (int64_t mask = columns; mask < kWarp; mask *= 2) {
    Num other = code.shuffle(own, mask);
    Num isBehind = code.index(0) < (thread & code.index(mask));
    inWarp = add(code.select(isBehind, other, zero), inWarp);
    own = add(own, other);
  }
  Num column = code.remainder(thread, columns);
  code.when(code.remainder(thread, kWarp) < columns, [&] { slots.store(own, turn, warp, column); });
  code.barrier();
  for (int64_t other = 0; other < slots.getSize(1); ++other) {
    Num sum = slots(turn, code.index(other), column);
    before = code.select(code.index(other) < warp, total + sum, before);
    total = total + sum;
  }
  return {add(before, inWarp), total};
}

} // namespace weft::lower
