//===- LowerEmbedding.cpp - rows of a table ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Tiles.h"
#include "TokenLists.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Returns the row of the table that token `i` names, and whether the table has it.
std::pair<Num, Num> rowOf(Code &code, Buffer ids, Num i, Value offset, int64_t rows) {
  Num row = code.toInteger(ids(i));
  if (offset) {
    row = row - code.toInteger(code.num(offset));
  }
  // Unsigned, negative numbers are large.
  return {code.toIndex(row), code.lessUnsigned(row, code.integer(rows))};
}

struct LowerEmbedding : HostModel<LowerEmbedding, EmbeddingOp> {
  static void lower(Code &code, EmbeddingOp, EmbeddingOp::Adaptor operands, ValueRange results) {
    Buffer table = code.buffer(operands.getTable()), ids = code.buffer(operands.getIds()).flat();
    Buffer output = code.buffer(results[0]).rows();
    int64_t features = table.getSize(1);
    Num zero = code.real(output.getElementType(), 0);
    code.blocks(ids.getElementCount(), features,
                [&](Num i) {
                  auto [row, isHere] = rowOf(code, ids, i, operands.getOffset(), table.getSize(0));
                  auto copyRow = [&, row = row] {
                    code.across(features, [&](Num h) { output.store(table(row, h), i, h); });
                  };
                  auto clearRow = [&] {
                    code.across(features, [&](Num h) { output.store(zero, i, h); });
                  };
                  code.when(isHere, copyRow, clearRow);
                },
                {.areAlike = true, .fitWarps = true});
  }
};

struct LowerEmbeddingGrad : HostModel<LowerEmbeddingGrad, EmbeddingGradOp> {
  static void lower(Code &code, EmbeddingGradOp, EmbeddingGradOp::Adaptor operands,
                    ValueRange results) {
    Buffer ids = code.buffer(operands.getIds()).flat();
    Buffer gradient = code.buffer(operands.getGradient()).rows();
    Buffer output = code.buffer(results[0]);
    if (code.isForDevice()) {
      addByRows(code, ids, gradient, output, operands.getOffset());
      return;
    }
    code.fillParallel(output, 0);
    // Two tokens may name one row, so threads share the columns: each visits all tokens, in order.
    forColumns(code, output.getSize(1), [&](Num from, Num to) {
      code.loop(0, ids.getElementCount(), [&](Num i) {
        auto [row, isHere] = rowOf(code, ids, i, operands.getOffset(), output.getSize(0));
        code.when(isHere, [&, row = row] {
          code.loop(from, to,
                    [&](Num h) { output.store(output(row, h) + gradient(i, h), row, h); });
        });
      });
    });
  }

  /// Threads that share a row of the table read the row's list of tokens. Long lists are cut at
  /// multiples of kPart; an earlier phase sums the parts after the first cut.
  static void addByRows(Code &code, Buffer ids, Buffer gradient, Buffer output, Value offset) {
    int64_t tokens = ids.getElementCount(), rows = output.getSize(0), features = output.getSize(1);
    int64_t cuts = llvm::divideCeil(tokens, kPart);
    Type type = output.getElementType();
    TokenLists lists(code, tokens, rows,
                     [&](Num i) { return rowOf(code, ids, i, offset, rows).first; });
    Buffer parts = code.lasting(type, {cuts, features});
    Strips strips(code, features);
    auto ofToken = [&](Num place, Num h) { return gradient(lists.tokenAt(place), h); };
    strips.forAll(cuts, [&](Num cut, Num first) {
      Num begin = cut * kPart;
      code.when(begin < lists.countAll(), [&] {
        Num row = lists.rowAt(begin), end = lists.end(row), next = begin + kPart;
        code.when(lists.begin(row) < begin, [&] {
          Kept sums = strips.makeSums(type);
          strips.add(sums, first, begin, code.select(end < next, end, next), ofToken);
          code.across(strips.width, [&](Num h) { parts.store(code.kept(sums), cut, first + h); });
        });
      });
    });
    strips.forAll(rows, [&](Num row, Num first) {
      Num begin = lists.begin(row), end = lists.end(row), cut = begin / kPart + 1;
      Num firstEnd = code.select(end < cut * kPart, end, cut * kPart);
      Kept sums = strips.makeSums(type);
      strips.add(sums, first, begin, firstEnd, ofToken);
      strips.add(sums, first, cut, (end + (kPart - 1)) / kPart,
                 [&](Num part, Num h) { return parts(part, h); });
      code.across(strips.width, [&](Num h) { output.store(code.kept(sums), row, first + h); });
    });
  }

  /// Columns that threads sum together: what a warp loads at once where that divides a row, since
  /// most rows have few tokens, and more warps wait for memory at the same time.
  struct Strips {
    Strips(Code &code, int64_t features)
        : code(code),
          count(features % (32 * code.countLanes()) == 0 ? features / (32 * code.countLanes()) : 1),
          width(features / count) {}

    /// Runs `body(row, first column)`.
    void forAll(int64_t rows, function_ref<void(Num, Num)> body) {
      code.blocks(rows * count, width,
                  [&](Num i) { body(i / count, code.remainder(i, count) * width); });
    }

    Kept makeSums(Type type) {
      Kept sums = code.keep(type, width);
      code.across(width, [&](Num) { code.setKept(sums, code.real(type, 0)); });
      return sums;
    }

    /// Adds the terms at the places from `from` to before `to` for the columns from `first`.
    void add(const Kept &sums, Num first, Num from, Num to, function_ref<Num(Num, Num)> term) {
      code.carryByFours(from, to, 1, {}, [&](Num place, ArrayRef<Num>) {
        code.across(width,
                    [&](Num h) { code.setKept(sums, code.kept(sums) + term(place, first + h)); });
        return Nums();
      });
    }

    Code &code;
    int64_t count, width;
  };

  static constexpr int64_t kPart = 64;
};

} // namespace

void attachEmbeddingModels(MLIRContext &context) {
  EmbeddingOp::attachInterface<LowerEmbedding>(context);
  EmbeddingGradOp::attachInterface<LowerEmbeddingGrad>(context);
}

} // namespace weft::lower
