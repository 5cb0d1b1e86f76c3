//===- LowerRotary.cpp - rotary position embeddings ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"

namespace weft::lower {

using namespace mlir;

namespace {

struct LowerRotaryTable : HostModel<LowerRotaryTable, RotaryTableOp> {
  static void lower(Code &code, RotaryTableOp op, RotaryTableOp::Adaptor operands,
                    ValueRange results) {
    Buffer table = code.buffer(results[0]);
    Type type = table.getElementType(), f64 = code.getBuilder().getF64Type();
    Num cosine = code.index(0), sine = code.index(1);
    Buffer frequencies = code.scratch(f64, {table.getSize(2)});
    for (auto [number, frequency] : llvm::enumerate(op.getFrequencies().getAsRange<FloatAttr>())) {
      frequencies.store(code.real(f64, frequency.getValueAsDouble()), code.index(number));
    }
    code.parallelNest({table.getSize(1), table.getSize(2)}, [&](ArrayRef<Num> at) {
      Num position = operands.getOffset() ? at[0] + code.num(operands.getOffset()) : at[0];
      Num angle = code.unsignedToReal(code.toInteger(position), f64) * frequencies(at[1]);
      table.store(code.toReal(code.cos(angle), type), cosine, at[0], at[1]);
      table.store(code.toReal(code.sin(angle), type), sine, at[0], at[1]);
    });
  }
};

struct LowerRotary : HostModel<LowerRotary, RotaryOp> {
  static void lower(Code &code, RotaryOp op, RotaryOp::Adaptor operands, ValueRange results) {
    Buffer table = code.buffer(operands.getTable()), whole = code.buffer(operands.getInput());
    int64_t batch = whole.getSize(0), positions = whole.getSize(1), features = whole.getSize(-1);
    int64_t heads = whole.getElementCount() / (batch * positions * features);
    int64_t pairs = table.getSize(2);
    Buffer x = whole.view({batch, positions, heads, features});
    Buffer y = code.buffer(results[0]).view({batch, positions, heads, features});
    Num cosine = code.index(0), sine = code.index(1);
    auto rotate = [&](Num b, Num p, Num h, Num i) {
      Num c = table(cosine, p, i), s = table(sine, p, i);
      Num first = x(b, p, h, i), second = x(b, p, h, i + pairs);
      s = op.getInverse() ? -s : s;
      y.store(first * c - second * s, b, p, h, i);
      y.store(second * c + first * s, b, p, h, i + pairs);
    };
    if (code.isForDevice()) {
      code.elements({batch, positions, heads, pairs},
                    [&](ArrayRef<Num> at) { rotate(at[0], at[1], at[2], at[3]); });
      if (2 * pairs < features) {
        code.elements({batch, positions, heads, features - 2 * pairs}, [&](ArrayRef<Num> at) {
          Num i = at[3] + 2 * pairs;
          y.store(x(at[0], at[1], at[2], i), at[0], at[1], at[2], i);
        });
      }
      return;
    }
    code.parallelAll({batch, positions, heads}, [&](ArrayRef<Num> at) {
      Num b = at[0], p = at[1], h = at[2];
      code.loop(0, pairs, [&](Num i) { rotate(b, p, h, i); });
      code.loop(2 * pairs, features, [&](Num i) { y.store(x(b, p, h, i), b, p, h, i); });
    });
  }

  /// The code reads both features of a pair before it writes either.
  bool mayReuse(Operation *, unsigned operand, unsigned) const { return operand == 0; }
};

} // namespace

void attachRotaryModels(MLIRContext &context) {
  RotaryTableOp::attachInterface<LowerRotaryTable>(context);
  RotaryOp::attachInterface<LowerRotary>(context);
}

} // namespace weft::lower
