//===- Sgd.cpp - the update rule of gradient descent ----------------------===//
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

class SgdRule : public ElementwiseRule {
public:
  using ElementwiseRule::ElementwiseRule;

  SmallVector<StringRef> getStates(VariableOp) override {
    return optimizer.getMomentum().isZero() ? SmallVector<StringRef>{}
                                            : SmallVector<StringRef>{"momentum"};
  }

protected:
  SmallVector<Value> updateElement(Arithmetic &a, Value w, Value g, ValueRange states,
                                   ArrayRef<Value> rates, double weightDecay) override {
    Value move = weightDecay != 0 ? a.add(g, a.mul(a.constant(weightDecay), w)) : g;
    if (!states.empty()) {
      move = a.add(a.mul(a.constant(optimizer.getMomentum().convertToDouble()), states[0]), move);
    }
    SmallVector<Value> results = {a.sub(w, a.mul(rates[0], move))};
    if (!states.empty()) {
      results.push_back(move);
    }
    return results;
  }
};

} // namespace

std::unique_ptr<UpdateRule> makeSgdRule(OpBuilder &builder, Location loc, OptimizerOp optimizer) {
  return std::make_unique<SgdRule>(builder, loc, optimizer);
}

} // namespace weft
