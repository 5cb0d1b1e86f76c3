//===- LowerEmbedding.cpp - rows of a table ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "Tiles.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Row of the table that token `i` names, and whether the table has it.
std::pair<Num, Num> rowOf(Code &code, Buffer ids, Num i, Value offset, int64_t rows) {
  Num row = code.toInteger(ids(i));
  if (offset) {
    row = row - code.toInteger(code.num(offset));
  }
  // A negative number is a great one without its sign.
  return {code.toIndex(row), code.lessUnsigned(row, code.integer(rows))};
}

struct LowerEmbedding : HostModel<LowerEmbedding, EmbeddingOp> {
  static void lower(Code &code, EmbeddingOp, EmbeddingOp::Adaptor operands, ValueRange results) {
    Buffer table = code.buffer(operands.getTable()), ids = code.buffer(operands.getIds()).flat();
    Buffer output = code.buffer(results[0]).rows();
    int64_t features = table.getSize(1);
    Num zero = code.real(table.getElementType(), 0);
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
    code.fillParallel(output, 0);
    if (code.isForDevice()) {
      addByTokens(code, ids, gradient, output, operands.getOffset());
      return;
    }
    // Two tokens may be one row, so threads share the columns: each sees all tokens, in order.
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

  /// A block for each token. That of a row's first one adds up the gradients of all, in order.
  static void addByTokens(Code &code, Buffer ids, Buffer gradient, Buffer output, Value offset) {
    int64_t tokens = ids.getElementCount(), features = output.getSize(1);
    Type f32 = code.getBuilder().getF32Type();
    Num none = code.real(f32, 0), one = code.real(f32, 1);
    code.blocks(tokens, std::max(features, kLeastWidth), [&](Num i) {
      auto [row, isHere] = rowOf(code, ids, i, offset, output.getSize(0));
      Num id = ids(i);
      Nums same = code.sums(f32, code.index(0), code.index(tokens), 2, [&](Num j) {
        Num isSame = code.select(ids(j) == id, one, none);
        return Nums{code.select(j < i, isSame, none), code.select(i < j, isSame, none)};
      });
      code.when(isHere & (same[0] == none), [&, row = row] {
        Kept sums = code.keep(output.getElementType(), features);
        auto add = [&](Num token) {
          code.across(features, [&](Num h) {
            code.setKept(sums, h, code.kept(sums, h) + gradient(token, h));
          });
        };
        code.across(features, [&](Num h) { code.setKept(sums, h, gradient(i, h)); });
        code.when(none < same[1], [&] {
          code.loop(i + 1, code.index(tokens),
                    [&](Num j) { code.when(ids(j) == id, [&] { add(j); }); });
        });
        code.across(features, [&](Num h) { output.store(code.kept(sums, h), row, h); });
      });
    });
  }

  /// A block looks at all tokens, however short rows are.
  static constexpr int64_t kLeastWidth = 1024;
};

} // namespace

void attachEmbeddingModels(MLIRContext &context) {
  EmbeddingOp::attachInterface<LowerEmbedding>(context);
  EmbeddingGradOp::attachInterface<LowerEmbeddingGrad>(context);
}

} // namespace weft::lower
