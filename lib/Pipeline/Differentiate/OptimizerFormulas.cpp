//===- OptimizerFormulas.cpp - learning rate, clipping and update -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OptimizerFormulas.h"

#include "LossScale.h"
#include "Orthogonalize.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

using namespace mlir;

namespace weft {
namespace {

/// Scalar arithmetic in one floating-point type. Constants and wider scalars are rounded to it
/// once, at their first use.
class Arithmetic {
public:
  Arithmetic(OpBuilder &builder, Location loc, Type type)
      : builder(builder), loc(loc), type(type) {}

  Value constant(double value) {
    return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  }
  Value take(Value scalar) {
    if (scalar.getType() == type) {
      return scalar;
    }
    if (isa<IntegerType>(scalar.getType())) {
      return arith::SIToFPOp::create(builder, loc, type, scalar);
    }
    bool narrow = scalar.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth();
    return narrow ? Value(arith::TruncFOp::create(builder, loc, type, scalar))
                  : Value(arith::ExtFOp::create(builder, loc, type, scalar));
  }
  Value add(Value a, Value b) { return arith::AddFOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return arith::SubFOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(builder, loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(builder, loc, a, b); }
  Value min(Value a, Value b) { return arith::MinimumFOp::create(builder, loc, a, b); }
  Value sqrt(Value a) { return math::SqrtOp::create(builder, loc, a); }
  Value cos(Value a) { return math::CosOp::create(builder, loc, a); }
  Value pow(Value a, Value b) { return math::PowFOp::create(builder, loc, a, b); }
  /// a if x < y, else b.
  Value selectLess(Value x, Value y, Value a, Value b) {
    Value less = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, x, y);
    return arith::SelectOp::create(builder, loc, less, a, b);
  }

private:
  OpBuilder &builder;
  Location loc;
  Type type;
};

/// A map of scalars to one f64.
template <typename Body>
Value scalarMap(OpBuilder &builder, Location loc, ValueRange inputs, Body body) {
  Type f64 = builder.getF64Type();
  return createMap(builder, loc, RankedTensorType::get({}, f64), inputs,
                   [&](OpBuilder &inner, Location at, ValueRange scalars) {
                     Arithmetic a(inner, at, f64);
                     SmallVector<Value> taken;
                     for (Value scalar : scalars) {
                       taken.push_back(a.take(scalar));
                     }
                     return SmallVector<Value>{body(a, taken)};
                   })
      .getResult(0);
}

/// Operands of a map that depends on the norm: the scale, then the norm that has to be finite.
void addPresent(SmallVector<Value> &inputs, const OptimizerFormulas::ByNorm &byNorm) {
  for (Value value : {byNorm.scale, byNorm.finite}) {
    if (value) {
      inputs.push_back(value);
    }
  }
}

/// m <- beta m + (1 - beta) x
Value decayTo(Arithmetic &a, Value m, Value x, double beta) {
  return a.add(a.mul(a.constant(beta), m), a.mul(a.constant(1 - beta), x));
}

} // namespace

bool OptimizerFormulas::isMuonMatrix(VariableOp variable) {
  return optimizer.getKind() == OptimizerKind::Muon && variable.getMatrix();
}

SmallVector<StringRef> OptimizerFormulas::getStates(VariableOp variable) {
  if (optimizer.getKind() != OptimizerKind::SGD && !isMuonMatrix(variable)) {
    return {"adam_m", "adam_v"};
  }
  return optimizer.getMomentum().isZero() ? SmallVector<StringRef>{}
                                          : SmallVector<StringRef>{"momentum"};
}

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

Value OptimizerFormulas::correction(Value step, double beta) {
  return scalarMap(builder, loc, step, [&](Arithmetic &a, ArrayRef<Value> in) {
    Value power = a.pow(a.constant(beta), a.add(in[0], a.constant(1)));
    return a.div(a.constant(1), a.sub(a.constant(1), power));
  });
}

SmallVector<Value> OptimizerFormulas::schedule(Value step) {
  SmallVector<Value> schedule = {learningRate(step)};
  if (optimizer.getKind() != OptimizerKind::SGD) {
    schedule.push_back(correction(step, optimizer.getBeta1().convertToDouble()));
    schedule.push_back(correction(step, optimizer.getBeta2().convertToDouble()));
  }
  return schedule;
}

/// The momentum and the new weight are separate maps, as the matmuls of the iteration stand between
/// them.
SmallVector<Value> OptimizerFormulas::updateMatrix(Value rate, const ByNorm &byNorm,
                                                   Value parameter, Value gradient, Value momentum,
                                                   VariableOp variable) {
  double decay = variable.getDecay() ? optimizer.getWeightDecay().convertToDouble() : 0;
  double beta = optimizer.getMomentum().convertToDouble();
  auto [scale, finite] = byNorm;
  SmallVector<Value> inputs = {momentum, gradient}, ofWeight;
  addPresent(inputs, byNorm);
  Type type = parameter.getType();
  MapOp moved = createMap(
      builder, loc, {type, type}, inputs, [&](OpBuilder &inner, Location at, ValueRange in) {
        Arithmetic a(inner, at, in[0].getType());
        Value g = a.take(in[1]);
        g = scale ? a.mul(g, a.take(in[2])) : g;
        Value m = a.add(a.mul(a.constant(beta), in[0]), g);
        Value ahead = optimizer.getNesterov() ? a.add(g, a.mul(a.constant(beta), m)) : m;
        m = finite ? selectFinite(inner, at, in.back(), m, in[0]) : m;
        return SmallVector<Value>{m, ahead};
      });
  MatrixView view(cast<RankedTensorType>(type), *variable.getMatrix());
  Value orthogonal = createOrthogonal(builder, loc, moved.getResult(1), view,
                                      static_cast<int64_t>(optimizer.getIterations()));
  auto rows = static_cast<double>(view.getRows()), columns = static_cast<double>(view.getColumns());
  double size = optimizer.getScale() == MuonScale::RMS ? 0.2 * std::sqrt(std::max(rows, columns))
                                                       : std::sqrt(std::max(1.0, rows / columns));
  ofWeight = {parameter, orthogonal, rate};
  addPresent(ofWeight, {Value(), finite});
  Value updated =
      createMap(builder, loc, type, ofWeight, [&](OpBuilder &inner, Location at, ValueRange in) {
        Arithmetic a(inner, at, in[0].getType());
        Value move = a.mul(a.constant(size), in[1]);
        if (decay != 0) {
          move = a.add(move, a.mul(a.constant(decay), in[0]));
        }
        Value weight = a.sub(in[0], a.mul(a.take(in[2]), move));
        return SmallVector<Value>{finite ? selectFinite(inner, at, in.back(), weight, in[0])
                                         : weight};
      }).getResult(0);
  return {updated, moved.getResult(0)};
}

/// Returns the new weight and then the new states of one element.
static SmallVector<Value> updateScalars(OptimizerOp optimizer, Arithmetic &a, Value w, Value g,
                                        ValueRange states, ArrayRef<Value> rates,
                                        double weightDecay) {
  if (optimizer.getKind() == OptimizerKind::SGD) {
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

SmallVector<Value> OptimizerFormulas::update(ValueRange schedule, const ByNorm &byNorm,
                                             Value parameter, Value gradient, ValueRange states,
                                             VariableOp variable) {
  if (isMuonMatrix(variable)) {
    return updateMatrix(schedule[0], byNorm, parameter, gradient, states[0], variable);
  }
  double weightDecay = variable.getDecay() ? optimizer.getWeightDecay().convertToDouble() : 0;
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
    SmallVector<Value> results = updateScalars(optimizer, a, w, g, before, rates, weightDecay);
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
