//===- Arithmetic.h - scalar arithmetic in the bodies of maps -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_DIFFERENTIATE_ARITHMETIC_H
#define WEFT_LIB_PIPELINE_DIFFERENTIATE_ARITHMETIC_H

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Weft.h"

namespace weft {

/// Scalar arithmetic in one floating-point type. Constants and wider scalars are rounded to it
/// once, at their first use.
class Arithmetic {
public:
  Arithmetic(mlir::OpBuilder &builder, mlir::Location loc, mlir::Type type)
      : builder(builder), loc(loc), type(type) {}

  mlir::Value constant(double value) {
    return mlir::arith::ConstantOp::create(builder, loc, builder.getFloatAttr(type, value));
  }
  mlir::Value take(mlir::Value scalar) {
    if (scalar.getType() == type) {
      return scalar;
    }
    if (llvm::isa<mlir::IntegerType>(scalar.getType())) {
      return mlir::arith::SIToFPOp::create(builder, loc, type, scalar);
    }
    bool narrow = scalar.getType().getIntOrFloatBitWidth() > type.getIntOrFloatBitWidth();
    return narrow ? mlir::Value(mlir::arith::TruncFOp::create(builder, loc, type, scalar))
                  : mlir::Value(mlir::arith::ExtFOp::create(builder, loc, type, scalar));
  }
  mlir::Value add(mlir::Value a, mlir::Value b) {
    return mlir::arith::AddFOp::create(builder, loc, a, b);
  }
  mlir::Value sub(mlir::Value a, mlir::Value b) {
    return mlir::arith::SubFOp::create(builder, loc, a, b);
  }
  mlir::Value mul(mlir::Value a, mlir::Value b) {
    return mlir::arith::MulFOp::create(builder, loc, a, b);
  }
  mlir::Value div(mlir::Value a, mlir::Value b) {
    return mlir::arith::DivFOp::create(builder, loc, a, b);
  }
  mlir::Value min(mlir::Value a, mlir::Value b) {
    return mlir::arith::MinimumFOp::create(builder, loc, a, b);
  }
  mlir::Value sqrt(mlir::Value a) { return mlir::math::SqrtOp::create(builder, loc, a); }
  mlir::Value cos(mlir::Value a) { return mlir::math::CosOp::create(builder, loc, a); }
  mlir::Value pow(mlir::Value a, mlir::Value b) {
    return mlir::math::PowFOp::create(builder, loc, a, b);
  }
  /// a if x < y, else b.
  mlir::Value selectLess(mlir::Value x, mlir::Value y, mlir::Value a, mlir::Value b) {
    mlir::Value less =
        mlir::arith::CmpFOp::create(builder, loc, mlir::arith::CmpFPredicate::OLT, x, y);
    return mlir::arith::SelectOp::create(builder, loc, less, a, b);
  }

private:
  mlir::OpBuilder &builder;
  mlir::Location loc;
  mlir::Type type;
};

/// A map of scalars to one f64.
template <typename Body>
mlir::Value scalarMap(mlir::OpBuilder &builder, mlir::Location loc, mlir::ValueRange inputs,
                      Body body) {
  mlir::Type f64 = builder.getF64Type();
  return createMap(builder, loc, mlir::RankedTensorType::get({}, f64), inputs,
                   [&](mlir::OpBuilder &inner, mlir::Location at, mlir::ValueRange scalars) {
                     Arithmetic a(inner, at, f64);
                     llvm::SmallVector<mlir::Value> taken;
                     for (mlir::Value scalar : scalars) {
                       taken.push_back(a.take(scalar));
                     }
                     return llvm::SmallVector<mlir::Value>{body(a, taken)};
                   })
      .getResult(0);
}

} // namespace weft

#endif // WEFT_LIB_PIPELINE_DIFFERENTIATE_ARITHMETIC_H
