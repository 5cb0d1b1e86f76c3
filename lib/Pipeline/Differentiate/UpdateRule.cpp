//===- UpdateRule.cpp - how an optimizer updates a parameter --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "UpdateRule.h"

#include "Arithmetic.h"
#include "LossScale.h"

using namespace mlir;

namespace weft {

double UpdateRule::decayOf(VariableOp variable) {
  return variable.getDecay() ? optimizer.getWeightDecay().convertToDouble() : 0;
}

void addPresent(SmallVector<Value> &inputs, const ByNorm &byNorm) {
  for (Value value : {byNorm.scale, byNorm.finite}) {
    if (value) {
      inputs.push_back(value);
    }
  }
}

SmallVector<Value> ElementwiseRule::update(ValueRange schedule, const ByNorm &byNorm,
                                           Value parameter, Value gradient, ValueRange states,
                                           VariableOp variable) {
  // Operands: parameter, gradient, states, schedule, and those that depend on the norm.
  SmallVector<Value> inputs = {parameter, gradient};
  llvm::append_range(inputs, states);
  llvm::append_range(inputs, schedule);
  addPresent(inputs, byNorm);
  SmallVector<Type> outputs(1 + states.size(), parameter.getType());
  auto body = [&](OpBuilder &inner, Location at, ValueRange in) {
    Arithmetic a(inner, at, in[0].getType());
    Value w = in[0], g = a.take(in[1]);
    ValueRange before = in.slice(2, states.size());
    SmallVector<Value> rates;
    for (Value rate : in.slice(2 + states.size(), schedule.size())) {
      rates.push_back(a.take(rate));
    }
    if (byNorm.scale) {
      g = a.mul(g, a.take(in[2 + states.size() + schedule.size()]));
    }
    SmallVector<Value> results = updateElement(a, w, g, before, rates, decayOf(variable));
    for (auto [number, result] : llvm::enumerate(results)) {
      Value old = number == 0 ? w : before[number - 1];
      result = byNorm.finite ? selectFinite(inner, at, in.back(), result, old) : result;
    }
    return results;
  };
  MapOp map = createMap(builder, loc, outputs, inputs, body);
  return llvm::to_vector(llvm::map_range(map.getOutputs(), [](Value v) { return v; }));
}

} // namespace weft
