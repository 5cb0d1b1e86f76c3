//===- BuildBatchNorm.cpp - norms of channels over samples ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BuildBatchNorm.h"

#include "ModelBuilder.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// Builds ops on images and on their statistics. Letters name dimensions: sample a, channel b,
/// places c, d, ….
class StatisticsBuilder {
public:
  StatisticsBuilder(OpBuilder &builder, Location loc, Value input)
      : builder(builder), loc(loc), given(cast<RankedTensorType>(input.getType())),
        type(given.clone(wideTypeOf(given.getElementType()))), all(letters(type.getRank())) {}

  RankedTensorType typeOf(StringRef dims) {
    SmallVector<int64_t> shape;
    for (char letter : dims) {
      shape.push_back(type.getDimSize(letter - 'a'));
    }
    return type.clone(shape);
  }

  /// Builds a contraction to a tensor of `dims`.
  Value contract(ArrayRef<Value> inputs, ArrayRef<StringRef> terms, StringRef dims) {
    std::string equation = llvm::join(terms, ",") + "->" + dims.str();
    return ContractOp::create(builder, loc, typeOf(dims), equation, inputs);
  }

  /// Builds a map to a tensor of `dims` from operands with the named dimensions.
  Value map(ArrayRef<Value> inputs, ArrayRef<StringRef> terms, StringRef dims, ScalarCode code) {
    return map(typeOf(dims), inputs, terms, dims, code);
  }

  /// The same to `result`, which may round.
  Value map(RankedTensorType result, ArrayRef<Value> inputs, ArrayRef<StringRef> terms,
            StringRef dims, ScalarCode code) {
    SmallVector<AffineMap> maps;
    for (StringRef term : terms) {
      SmallVector<AffineExpr> exprs;
      for (char letter : term) {
        exprs.push_back(builder.getAffineDimExpr(dims.find(letter)));
      }
      maps.push_back(AffineMap::get(dims.size(), 0, exprs, builder.getContext()));
    }
    auto body = [&](OpBuilder &inner, Location at, ValueRange scalars) {
      ImplicitLocOpBuilder scalarBuilder(at, inner);
      SmallVector<Value> wide;
      for (Value scalar : scalars) {
        wide.push_back(castScalar(inner, at, scalar, type.getElementType()));
      }
      return SmallVector<Value>{
          castScalar(inner, at, code(scalarBuilder, wide), result.getElementType())};
    };
    return MapOp::create(builder, loc, TypeRange{result}, ValueRange(inputs), maps, body)
        .getResult(0);
  }

  Value scaled(Value input, StringRef dims, double factor) {
    return map({input}, {dims}, dims, [&](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
      return arith::MulFOp::create(scalars, in[0], scalarConstant(scalars, in[0], factor));
    });
  }

  int64_t countPlaces() const {
    int64_t count = 1;
    for (int64_t size : type.getShape().drop_front(2)) {
      count *= size;
    }
    return count;
  }

  OpBuilder &builder;
  Location loc;
  /// The element types of the input and of computations inside the norm.
  RankedTensorType given, type;
  std::string all;
};

Value add(ImplicitLocOpBuilder &scalars, ValueRange in) {
  return arith::AddFOp::create(scalars, in[0], in[1]);
}

/// scale / sqrt(variance + epsilon).
Value factorOf(ImplicitLocOpBuilder &scalars, Value variance, Value scale, double epsilon) {
  Value positive =
      arith::AddFOp::create(scalars, variance, scalarConstant(scalars, variance, epsilon));
  return arith::DivFOp::create(scalars, scale, math::SqrtOp::create(scalars, positive));
}

} // namespace

BatchNorm weft::buildBatchNorm(OpBuilder &builder, Location loc, Value input,
                               const BatchNormParameters &parameters, const BatchNormSpec &spec) {
  StatisticsBuilder build(builder, loc, input);
  // With ghost batches, each sample has the statistics of its group.
  bool hasGroups = spec.group != 0 && spec.group != spec.batch;
  StringRef dims = hasGroups ? "ab" : "b", all = build.all;
  auto count = static_cast<double>(spec.samples() * build.countPlaces());
  auto meanOf = [&](Value sum, double factor) {
    if (!hasGroups) {
      return build.scaled(sum, dims, factor / count);
    }
    Value mean = GroupMeanOp::create(builder, loc, sum.getType(), sum, spec.group);
    return build.scaled(mean, dims, factor * static_cast<double>(spec.group) / count);
  };

  // In this form no derivative needs another tensor of the input's size: broadcast values are only
  // added, or multiplied by a contraction.
  Value negatedMean = meanOf(build.contract({input}, {all}, dims), -1);
  Value centered = build.map({input, negatedMean}, {all, dims}, all, add);
  Value variance = meanOf(build.contract({centered, centered}, {all, all}, dims), 1);
  Value factor = build.map({variance, parameters.scale}, {dims, "b"}, dims,
                           [&](ImplicitLocOpBuilder &scalars, ValueRange in) {
                             return factorOf(scalars, in[0], in[1], spec.epsilon);
                           });
  Value scaled = build.contract({centered, factor}, {all, dims}, all);

  BatchNorm result;
  result.output = build.map(build.given, {scaled, parameters.bias}, {all, "b"}, all, add);
  auto update = [&](Value running, Value statistic, double weight) {
    if (hasGroups) {
      statistic = build.contract({statistic}, {dims}, "b");
      weight /= static_cast<double>(spec.batch);
    }
    return build.map({running, statistic}, {"b", "b"}, "b",
                     [&](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                       Value kept = arith::MulFOp::create(
                           scalars, in[0], scalarConstant(scalars, in[0], spec.momentum));
                       Value added = arith::MulFOp::create(scalars, in[1],
                                                           scalarConstant(scalars, in[1], weight));
                       return arith::AddFOp::create(scalars, kept, added);
                     });
  };
  double fresh = 1 - spec.momentum;
  result.runningMean = update(parameters.runningMean, negatedMean, -fresh);
  result.runningVariance =
      update(parameters.runningVariance, variance, fresh * count / (count - 1));
  return result;
}

Value weft::buildBatchNormOfRunning(OpBuilder &builder, Location loc, Value input,
                                    const BatchNormParameters &parameters, double epsilon) {
  StatisticsBuilder build(builder, loc, input);
  Value factor = build.map({parameters.runningVariance, parameters.scale}, {"b", "b"}, "b",
                           [&](ImplicitLocOpBuilder &scalars, ValueRange in) {
                             return factorOf(scalars, in[0], in[1], epsilon);
                           });
  return build.map(build.given, {input, parameters.runningMean, factor, parameters.bias},
                   {build.all, "b", "b", "b"}, build.all,
                   [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
                     Value distance = arith::SubFOp::create(scalars, in[0], in[1]);
                     Value scaled = arith::MulFOp::create(scalars, distance, in[2]);
                     return arith::AddFOp::create(scalars, scaled, in[3]);
                   });
}
