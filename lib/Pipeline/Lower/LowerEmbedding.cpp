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
    code.blocks(ids.getElementCount(), features, [&](Num i) {
      auto [row, isHere] = rowOf(code, ids, i, operands.getOffset(), table.getSize(0));
      auto copyRow = [&, row = row] {
        code.across(features, [&](Num h) { output.store(table(row, h), i, h); });
      };
      auto clearRow = [&] { code.across(features, [&](Num h) { output.store(zero, i, h); }); };
      code.when(isHere, copyRow, clearRow);
    });
  }
};

struct LowerEmbeddingGrad : HostModel<LowerEmbeddingGrad, EmbeddingGradOp> {
  static void lower(Code &code, EmbeddingGradOp, EmbeddingGradOp::Adaptor operands,
                    ValueRange results) {
    Buffer ids = code.buffer(operands.getIds()).flat();
    Buffer gradient = code.buffer(operands.getGradient()).rows();
    Buffer output = code.buffer(results[0]);
    code.fillParallel(output, 0);
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
};

} // namespace

void attachEmbeddingModels(MLIRContext &context) {
  EmbeddingOp::attachInterface<LowerEmbedding>(context);
  EmbeddingGradOp::attachInterface<LowerEmbeddingGrad>(context);
}

} // namespace weft::lower
