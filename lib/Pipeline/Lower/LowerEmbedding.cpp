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
                {.areAlike = true});
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

  /// Each row of the table has a block, which reads the row's list of tokens. Long lists are cut at
  /// multiples of kPart; an earlier phase sums the parts after the first cut.
  static void addByRows(Code &code, Buffer ids, Buffer gradient, Buffer output, Value offset) {
    int64_t tokens = ids.getElementCount(), rows = output.getSize(0), features = output.getSize(1);
    int64_t cuts = llvm::divideCeil(tokens, kPart);
    Type type = output.getElementType();
    TokenLists lists(code, tokens, rows,
                     [&](Num i) { return rowOf(code, ids, i, offset, rows).first; });
    Buffer parts = code.lasting(type, {cuts, features});
    auto sum = [&](Num from, Num to, function_ref<Num(Num, Num)> term, const Kept &sums) {
      code.carryByFours(from, to, 1, {}, [&](Num place, ArrayRef<Num>) {
        code.across(features, [&](Num h) { code.setKept(sums, code.kept(sums) + term(place, h)); });
        return Nums();
      });
    };
    auto ofToken = [&](Num place, Num h) { return gradient(lists.tokenAt(place), h); };
    auto makeSums = [&] {
      Kept sums = code.keep(type, features);
      code.across(features, [&](Num) { code.setKept(sums, code.real(type, 0)); });
      return sums;
    };
    code.blocks(cuts, features, [&](Num cut) {
      Num first = cut * kPart;
      code.when(first < lists.countAll(), [&] {
        Num row = lists.rowAt(first), end = lists.end(row), next = first + kPart;
        code.when(lists.begin(row) < first, [&] {
          Kept sums = makeSums();
          sum(first, code.select(end < next, end, next), ofToken, sums);
          code.across(features, [&](Num h) { parts.store(code.kept(sums), cut, h); });
        });
      });
    });
    code.blocks(rows, features, [&](Num row) {
      Num begin = lists.begin(row), end = lists.end(row), cut = begin / kPart + 1;
      Num firstEnd = code.select(end < cut * kPart, end, cut * kPart);
      Kept sums = makeSums();
      sum(begin, firstEnd, ofToken, sums);
      sum(cut, (end + (kPart - 1)) / kPart, [&](Num part, Num h) { return parts(part, h); }, sums);
      code.across(features, [&](Num h) { output.store(code.kept(sums), row, h); });
    });
  }

  static constexpr int64_t kPart = 64;
};

} // namespace

void attachEmbeddingModels(MLIRContext &context) {
  EmbeddingOp::attachInterface<LowerEmbedding>(context);
  EmbeddingGradOp::attachInterface<LowerEmbeddingGrad>(context);
}

} // namespace weft::lower
