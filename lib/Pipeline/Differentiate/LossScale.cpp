//===- LossScale.cpp - gradients that 16 bits do not lose ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LossScale.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <limits>

using namespace mlir;

namespace weft {

namespace {

constexpr StringRef kScale = "loss_scale", kSteps = "loss_scale_steps";
/// With greater scales, scaled gradients near 1 are no longer exact integers in float32.
constexpr double kGreatestScale = 0x1p24;

/// Returns `value` in the type of `like`.
Value number(OpBuilder &builder, Location loc, double value, Value like) {
  return arith::ConstantOp::create(builder, loc, builder.getFloatAttr(like.getType(), value));
}

/// Returns `then` if x < y, else `otherwise`, also if one of them is NaN.
Value selectLess(OpBuilder &builder, Location loc, Value x, Value y, Value then, Value otherwise) {
  Value less = arith::CmpFOp::create(builder, loc, arith::CmpFPredicate::OLT, x, y);
  return arith::SelectOp::create(builder, loc, less, then, otherwise);
}

/// Declares a scalar of `type` that begins with `value`.
void declare(ModuleOp module, OptimizerOp optimizer, StringRef name, RankedTensorType type,
             double value) {
  OpBuilder builder(optimizer);
  Location loc = optimizer.getLoc();
  VariableOp::create(builder, loc, VariableRole::Optimizer, name, builder.getArrayAttr({}),
                     /*decay=*/false, /*matrix=*/DenseI64ArrayAttr(), type);
  if (auto init = module.lookupSymbol<func::FuncOp>("init")) {
    builder.setInsertionPoint(init.getBody().front().getTerminator());
    Value fill = FillOp::create(builder, loc, type, value);
    AssignOp::create(builder, loc, name, fill);
  }
}

} // namespace

Value selectFinite(OpBuilder &builder, Location loc, Value norm, Value then, Value otherwise) {
  double infinity = std::numeric_limits<double>::infinity();
  Value limit =
      arith::ConstantOp::create(builder, loc, builder.getFloatAttr(norm.getType(), infinity));
  return selectLess(builder, loc, norm, limit, then, otherwise);
}

void declareLossScale(ModuleOp module) {
  auto optimizers = module.getOps<OptimizerOp>();
  if (optimizers.empty() || (*optimizers.begin()).getLossScale().isZero()) {
    return;
  }
  OptimizerOp optimizer = *optimizers.begin();
  // As gradients, it is as precise as the parameters.
  auto isParameter = [](VariableOp variable) {
    return variable.getRole() == VariableRole::Parameter;
  };
  auto parameter = *llvm::find_if(module.getOps<VariableOp>(), isParameter);
  auto type = RankedTensorType::get({}, parameter.getTensorType().getElementType());
  declare(module, optimizer, kScale, type, optimizer.getLossScale().convertToDouble());
  if (optimizer.getScaleInterval() > 0) {
    declare(module, optimizer, kSteps, type, 0);
  }
}

Value readLossScale(ModuleOp module, OpBuilder &builder, Location loc) {
  auto variable = module.lookupSymbol<VariableOp>(kScale);
  return variable ? ReadOp::create(builder, loc, variable.getTensorType(), kScale) : Value();
}

Value unscale(OpBuilder &builder, Location loc, Value gradient, Value scale) {
  return createMap(builder, loc, gradient.getType(), {gradient, scale},
                   [](OpBuilder &inner, Location at, ValueRange in) {
                     Value inverse =
                         arith::DivFOp::create(inner, at, number(inner, at, 1, in[1]), in[1]);
                     return SmallVector<Value>{arith::MulFOp::create(inner, at, in[0], inverse)};
                   })
      .getResult(0);
}

Value observedNorm(OpBuilder &builder, Location loc, Value norm, Value scale) {
  return createMap(builder, loc, norm.getType(), {norm, scale},
                   [](OpBuilder &inner, Location at, ValueRange in) {
                     Value skipped = selectLess(inner, at, number(inner, at, 1, in[1]), in[1],
                                                number(inner, at, -1, in[0]), in[0]);
                     return SmallVector<Value>{selectFinite(inner, at, in[0], in[0], skipped)};
                   })
      .getResult(0);
}

void assignLossScale(OpBuilder &builder, Location loc, OptimizerOp optimizer, Value norm,
                     Value scale) {
  auto interval = static_cast<double>(optimizer.getScaleInterval());
  if (interval == 0) {
    return;
  }
  Value steps = ReadOp::create(builder, loc, scale.getType(), kSteps);
  double factor = optimizer.getScaleFactor().convertToDouble();
  MapOp next = createMap(
      builder, loc, {scale.getType(), scale.getType()}, {norm, scale, steps},
      [&](OpBuilder &inner, Location at, ValueRange in) {
        auto constant = [&](double value) { return number(inner, at, value, in[1]); };
        Value one = constant(1), zero = constant(0);
        Value by = constant(factor), limit = constant(interval);
        Value done = arith::AddFOp::create(inner, at, in[2], one);
        Value grown = arith::MinimumFOp::create(
            inner, at, arith::MulFOp::create(inner, at, in[1], by), constant(kGreatestScale));
        Value shrunk =
            arith::MaximumFOp::create(inner, at, arith::DivFOp::create(inner, at, in[1], by), one);
        Value kept = selectLess(inner, at, done, limit, in[1], grown);
        Value count = selectLess(inner, at, done, limit, done, zero);
        return SmallVector<Value>{selectFinite(inner, at, in[0], kept, shrunk),
                                  selectFinite(inner, at, in[0], count, zero)};
      });
  AssignOp::create(builder, loc, kScale, next.getResult(0));
  AssignOp::create(builder, loc, kSteps, next.getResult(1));
}

} // namespace weft
