//===- LowerCrossEntropy.cpp - the loss over the vocabulary --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exponential.h"
#include "Models.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

#include <limits>

namespace weft::lower {

using namespace mlir;

namespace {

/// The number of valid columns of this shard of the logits: all except padding, which begins at
/// column `columns` of the whole.
Num countColumns(Code &code, std::optional<ArrayRef<int64_t>> columns, Value offset,
                 int64_t shardColumns) {
  Num all = code.index(shardColumns);
  if (!columns) {
    return all;
  }
  Num left = code.index(columns->front());
  left = offset ? left - code.num(offset) : left;
  left = code.select(left < int64_t(0), code.index(0), left);
  return code.select(left < shardColumns, left, all);
}

/// Returns the column of token `i`'s target in this shard of the logits, perhaps out of range.
Num targetOf(Code &code, Buffer targets, Num i, Value offset) {
  Num target = code.toInteger(targets(i));
  return offset ? target - code.toInteger(code.num(offset)) : target;
}

/// Runs `body(column)` if token `i`'s target is a column of this shard of the logits.
void atTarget(Code &code, Buffer targets, Num i, Value offset, int64_t columns,
              function_ref<void(Num)> body) {
  Num target = targetOf(code, targets, i, offset);
  // Unsigned, negative numbers are large.
  code.when(code.lessUnsigned(target, code.integer(columns)), [&] { body(code.toIndex(target)); });
}

struct LowerCrossEntropy : HostModel<LowerCrossEntropy, CrossEntropyOp> {
  static void lower(Code &code, CrossEntropyOp op, CrossEntropyOp::Adaptor operands,
                    ValueRange results) {
    Buffer logits = code.buffer(operands.getLogits()).rows();
    Buffer targets = code.buffer(operands.getTargets()).flat();
    Buffer lse = code.buffer(results[0]).flat(), picked = code.buffer(results[1]).flat();
    Type type = logits.getElementType();
    Num none = code.index(0);
    Num columns = countColumns(code, op.getColumns(), operands.getOffset(), logits.getSize(1));
    code.blocks(
        logits.getSize(0), logits.getSize(1),
        [&](Num i) {
          auto [greatest, total] = sumExponentials(code, logits, i, none, columns);
          Num logarithm = greatest + code.log(total);
          if (op.getColumns()) { // Of no column that counts, it is less than any other rank's.
            logarithm = code.select(columns < int64_t(1), code.real(type, -1e30), logarithm);
          }
          code.once([&] {
            lse.store(logarithm, i);
            picked.store(code.real(type, 0), i);
            atTarget(code, targets, i, operands.getOffset(), logits.getSize(1),
                     [&](Num v) { picked.store(logits(i, v), i); });
          });
        },
        {.areRows = true});
  }

  /// On a device the sum runs over all columns, so that it loads chunks; padding adds nothing.
  static std::pair<Num, Num> sumExponentials(Code &code, Buffer logits, Num i, Num none,
                                             Num columns) {
    if (!code.isForDevice() || mlir::getConstantIntValue(Value(columns))) {
      return code.exponentials(logits(i, none), none, columns, [&](Num v) { return logits(i, v); });
    }
    Num nothing = code.real(logits.getElementType(), -std::numeric_limits<double>::infinity());
    return code.exponentials(logits(i, none), none, code.index(logits.getSize(1)), [&](Num v) {
      return code.select(v < columns, logits(i, v), nothing);
    });
  }
};

struct LowerCrossEntropyGrad : HostModel<LowerCrossEntropyGrad, CrossEntropyGradOp> {
  static void lower(Code &code, CrossEntropyGradOp op, CrossEntropyGradOp::Adaptor operands,
                    ValueRange results) {
    Buffer logits = code.buffer(operands.getLogits()).rows();
    Buffer targets = code.buffer(operands.getTargets()).flat();
    Buffer lse = code.buffer(operands.getLse()).flat();
    Buffer lseGradient = code.buffer(operands.getLseGradient()).flat();
    Buffer pickedGradient = code.buffer(operands.getPickedGradient()).flat();
    Buffer output = code.buffer(results[0]).rows();
    Num none = code.index(0), all = code.index(logits.getSize(1));
    Num columns = countColumns(code, op.getColumns(), operands.getOffset(), logits.getSize(1));
    if (code.isForDevice()) {
      Num zero = code.real(output.getElementType(), 0);
      code.blocks(logits.getSize(0), logits.getSize(1),
                  [&](Num i) {
                    Num rowLse = lse(i), rowGradient = lseGradient(i), atTarget = pickedGradient(i);
                    Num target = targetOf(code, targets, i, operands.getOffset());
                    // Comparisons of fewer bits; beyond is a column that there is not.
                    Num isColumn = code.lessUnsigned(target, code.integer(logits.getSize(1)));
                    target =
                        code.toInt32(code.toIndex(code.select(isColumn, target, code.integer(-1))));
                    code.across(none, all, [&](Num v) {
                      Num value = expOfNegative(logits(i, v) - rowLse) * rowGradient;
                      if (op.getColumns()) {
                        value = code.select(v < columns, value, zero);
                      }
                      Num isTarget = code.toInt32(v) == target;
                      output.store(code.select(isTarget, value + atTarget, value), i, v);
                    });
                  },
                  {.areRows = true});
      return;
    }
    Buffer atPicked = output.rounds() ? code.scratch(output.getElementType(), {}) : Buffer();
    code.parallel(logits.getSize(0), [&](Num i) {
      Num rowLse = lse(i), rowGradient = lseGradient(i);
      auto target = [&](function_ref<void(Num)> body) {
        atTarget(code, targets, i, operands.getOffset(), logits.getSize(1), body);
      };
      // A narrow result must be complete before it is stored; it may replace the logit.
      if (output.rounds()) {
        target([&](Num v) {
          atPicked.store(code.exp(logits(i, v) - rowLse) * rowGradient + pickedGradient(i));
        });
      }
      code.loop(none, columns,
                [&](Num v) { output.store(code.exp(logits(i, v) - rowLse) * rowGradient, i, v); });
      if (op.getColumns()) {
        Num zero = code.real(output.getElementType(), 0);
        code.loop(columns, all, [&](Num v) { output.store(zero, i, v); });
      }
      target([&](Num v) {
        output.store(output.rounds() ? atPicked() : output(i, v) + pickedGradient(i), i, v);
      });
    });
  }

  /// The code reads each logit once, before it writes the result in its place.
  bool mayReuse(Operation *, unsigned operand, unsigned) const { return operand == 0; }
};

} // namespace

void attachCrossEntropyModels(MLIRContext &context) {
  CrossEntropyOp::attachInterface<LowerCrossEntropy>(context);
  CrossEntropyGradOp::attachInterface<LowerCrossEntropyGrad>(context);
}

} // namespace weft::lower
