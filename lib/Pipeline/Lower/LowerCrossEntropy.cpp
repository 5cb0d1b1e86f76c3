//===- LowerCrossEntropy.cpp - the loss over the vocabulary --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Runs `body(column)` where token `i`'s target is a column of this piece of the logits.
void atTarget(Code &code, Buffer targets, Num i, Value offset, int64_t columns,
              function_ref<void(Num)> body) {
  Num target = code.toInteger(targets(i));
  if (offset) {
    target = target - code.toInteger(code.num(offset));
  }
  // A negative number is a great one without its sign.
  code.when(code.lessUnsigned(target, code.integer(columns)), [&] { body(code.toIndex(target)); });
}

struct LowerCrossEntropy : HostModel<LowerCrossEntropy, CrossEntropyOp> {
  static void lower(Code &code, CrossEntropyOp, CrossEntropyOp::Adaptor operands,
                    ValueRange results) {
    Buffer logits = code.buffer(operands.getLogits()).rows();
    Buffer targets = code.buffer(operands.getTargets()).flat();
    Buffer lse = code.buffer(results[0]).flat(), picked = code.buffer(results[1]).flat();
    Type type = logits.getElementType();
    Num none = code.index(0), columns = code.index(logits.getSize(1));
    code.parallel(logits.getSize(0), [&](Num i) {
      Num greatest =
          code.maximum(logits(i, none), none, columns, [&](Num v) { return logits(i, v); });
      Num total =
          code.sum(type, none, columns, [&](Num v) { return code.exp(logits(i, v) - greatest); });
      lse.store(greatest + code.log(total), i);
      picked.store(code.real(type, 0), i);
      atTarget(code, targets, i, operands.getOffset(), logits.getSize(1),
               [&](Num v) { picked.store(logits(i, v), i); });
    });
  }
};

struct LowerCrossEntropyGrad : HostModel<LowerCrossEntropyGrad, CrossEntropyGradOp> {
  static void lower(Code &code, CrossEntropyGradOp, CrossEntropyGradOp::Adaptor operands,
                    ValueRange results) {
    Buffer logits = code.buffer(operands.getLogits()).rows();
    Buffer targets = code.buffer(operands.getTargets()).flat();
    Buffer lse = code.buffer(operands.getLse()).flat();
    Buffer lseGradient = code.buffer(operands.getLseGradient()).flat();
    Buffer pickedGradient = code.buffer(operands.getPickedGradient()).flat();
    Buffer output = code.buffer(results[0]).rows();
    Buffer atPicked = output.rounds() ? code.scratch(output.getElementType(), {}) : Buffer();
    code.parallel(logits.getSize(0), [&](Num i) {
      Num rowLse = lse(i), rowGradient = lseGradient(i);
      auto target = [&](function_ref<void(Num)> body) {
        atTarget(code, targets, i, operands.getOffset(), logits.getSize(1), body);
      };
      // A result that rounds must be whole before it is stored; its place may be the logit's.
      if (output.rounds()) {
        target([&](Num v) {
          atPicked.store(code.exp(logits(i, v) - rowLse) * rowGradient + pickedGradient(i));
        });
      }
      code.loop(0, logits.getSize(1),
                [&](Num v) { output.store(code.exp(logits(i, v) - rowLse) * rowGradient, i, v); });
      target([&](Num v) {
        output.store(output.rounds() ? atPicked() : output(i, v) + pickedGradient(i), i, v);
      });
    });
  }

  /// Each logit is read once, before the result is written in its place.
  bool mayReuse(Operation *, unsigned operand, unsigned) const { return operand == 0; }
};

} // namespace

void attachCrossEntropyModels(MLIRContext &context) {
  CrossEntropyOp::attachInterface<LowerCrossEntropy>(context);
  CrossEntropyGradOp::attachInterface<LowerCrossEntropyGrad>(context);
}

} // namespace weft::lower
