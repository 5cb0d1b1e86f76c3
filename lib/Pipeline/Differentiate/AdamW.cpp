//===- AdamW.cpp - the update rule of AdamW -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Arithmetic.h"
#include "UpdateRules.h"

using namespace mlir;

namespace weft {
namespace {

/// m <- beta m + (1 - beta) x
Value decayTo(Arithmetic &a, Value m, Value x, double beta) {
  return a.add(a.mul(a.constant(beta), m), a.mul(a.constant(1 - beta), x));
}

/// Builds 1 / (1 - beta^t), for t from 1.
Value correction(OpBuilder &builder, Location loc, Value step, double beta) {
  return scalarMap(builder, loc, step, [&](Arithmetic &a, ArrayRef<Value> in) {
    Value power = a.pow(a.constant(beta), a.add(in[0], a.constant(1)));
    return a.div(a.constant(1), a.sub(a.constant(1), power));
  });
}

class AdamWRule : public ElementwiseRule {
public:
  using ElementwiseRule::ElementwiseRule;

  SmallVector<StringRef> getStates(VariableOp) override { return {"adam_m", "adam_v"}; }

  SmallVector<Value> corrections(Value step) override {
    Value first = correction(builder, loc, step, optimizer.getBeta1().convertToDouble());
    Value second = correction(builder, loc, step, optimizer.getBeta2().convertToDouble());
    return {first, second};
  }

protected:
  SmallVector<Value> updateElement(Arithmetic &a, Value w, Value g, ValueRange states,
                                   ArrayRef<Value> rates, double weightDecay) override {
    double otherRate = optimizer.getOtherRate().convertToDouble();
    Value m = decayTo(a, states[0], g, optimizer.getBeta1().convertToDouble());
    Value v = decayTo(a, states[1], a.mul(g, g), optimizer.getBeta2().convertToDouble());
    Value root =
        a.add(a.sqrt(a.mul(v, rates[2])), a.constant(optimizer.getEpsilon().convertToDouble()));
    Value move = a.div(a.mul(m, rates[1]), root);
    if (weightDecay != 0) {
      move = a.add(move, a.mul(a.constant(weightDecay), w));
    }
    Value rate = otherRate == 1 ? rates[0] : a.mul(a.constant(otherRate), rates[0]);
    return {a.sub(w, a.mul(rate, move)), m, v};
  }
};

} // namespace

std::unique_ptr<UpdateRule> makeAdamWRule(OpBuilder &builder, Location loc, OptimizerOp optimizer) {
  return std::make_unique<AdamWRule>(builder, loc, optimizer);
}

} // namespace weft
