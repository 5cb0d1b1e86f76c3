//===- OptimizerFormulas.cpp - learning rate, clipping and update -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptimizerFormulas.h"

#include "Arithmetic.h"
#include "UpdateRules.h"

using namespace mlir;

namespace weft {

OptimizerFormulas::OptimizerFormulas(OpBuilder &builder, Location loc, OptimizerOp optimizer)
    : builder(builder), loc(loc), optimizer(optimizer),
      rule(makeUpdateRule(builder, loc, optimizer)) {}

OptimizerFormulas::~OptimizerFormulas() = default;

Value OptimizerFormulas::norm(Value squares) {
  return createMap(builder, loc, squares.getType(), squares,
                   [](OpBuilder &inner, Location at, ValueRange scalars) {
                     return SmallVector<Value>{math::SqrtOp::create(inner, at, scalars[0])};
                   })
      .getResult(0);
}

Value OptimizerFormulas::clipScale(Value norm) {
  double clip = optimizer.getClip().convertToDouble();
  if (clip == 0) {
    return {};
  }
  return scalarMap(builder, loc, norm, [&](Arithmetic &a, ArrayRef<Value> in) {
    return a.min(a.constant(1), a.div(a.constant(clip), a.add(in[0], a.constant(1e-6))));
  });
}

Value OptimizerFormulas::learningRate(Value step) {
  double peak = optimizer.getLearningRate().convertToDouble();
  double end = optimizer.getFinalFraction().convertToDouble();
  auto warmup = static_cast<double>(optimizer.getWarmupSteps());
  auto total = static_cast<double>(optimizer.getTotalSteps());
  return scalarMap(builder, loc, step, [&](Arithmetic &a, ArrayRef<Value> in) {
    Value done = a.constant(1);
    if (total > warmup) {
      done = a.min(done, a.div(a.sub(in[0], a.constant(warmup)), a.constant(total - warmup)));
    }
    Value rate = a.constant(peak);
    if (optimizer.getDecay() == DecayKind::Linear) {
      Value left = a.sub(a.constant(1), a.mul(a.constant(1 - end), done));
      rate = a.mul(rate, left);
    } else if (optimizer.getDecay() == DecayKind::Cosine) {
      Value wave = a.cos(a.mul(a.constant(3.14159265358979323846), done));
      Value left = a.mul(a.constant((1 - end) * 0.5), a.add(a.constant(1), wave));
      rate = a.mul(rate, a.add(a.constant(end), left));
    }
    if (warmup == 0) {
      return rate;
    }
    Value rising = a.div(a.mul(a.constant(peak), a.add(in[0], a.constant(1))), a.constant(warmup));
    return a.selectLess(in[0], a.constant(warmup), rising, rate);
  });
}

SmallVector<Value> OptimizerFormulas::schedule(Value step) {
  SmallVector<Value> schedule = {learningRate(step)};
  llvm::append_range(schedule, rule->corrections(step));
  return schedule;
}

} // namespace weft
