//===- ScalarOpModels.cpp - linearity and derivatives of scalar ops -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ScalarOps.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace weft;

namespace {

//===----------------------------------------------------------------------===//
// Scalar expressions, for derivatives that read like formulas
//===----------------------------------------------------------------------===//

/// A scalar and the place where more are built.
struct Scalar {
  OpBuilder &builder;
  Value value;

  Location loc() const { return value.getLoc(); }
  Scalar constant(double number) const {
    return {builder, arith::ConstantOp::create(builder, loc(),
                                               builder.getFloatAttr(value.getType(), number))};
  }
};

template <typename OpTy> Scalar binary(Scalar a, Scalar b) {
  return {a.builder, OpTy::create(a.builder, a.loc(), a.value, b.value)};
}
template <typename OpTy> Scalar unary(Scalar a) {
  return {a.builder, OpTy::create(a.builder, a.loc(), a.value)};
}
Scalar operator-(Scalar a, Scalar b) { return binary<arith::SubFOp>(a, b); }
Scalar operator*(Scalar a, Scalar b) { return binary<arith::MulFOp>(a, b); }
Scalar operator/(Scalar a, Scalar b) { return binary<arith::DivFOp>(a, b); }
Scalar operator-(Scalar a) { return unary<arith::NegFOp>(a); }

/// Returns `a` if `condition` holds, else `b`.
Scalar select(Value condition, Scalar a, Scalar b) {
  return {a.builder, arith::SelectOp::create(a.builder, a.loc(), condition, a.value, b.value)};
}

//===----------------------------------------------------------------------===//
// Models
//===----------------------------------------------------------------------===//

/// An op without derivative: of integers, a comparison, a constant.
template <typename ConcreteOp>
struct NoGradient : public ScalarOpInterface::ExternalModel<NoGradient<ConcreteOp>, ConcreteOp> {
  void buildScalarGradient(Operation *, OpBuilder &, Value, SmallVectorImpl<Value> &) const {}
  double getFlops(Operation *) const { return 0; }
};

struct ConstantModel : public ScalarOpInterface::ExternalModel<ConstantModel, arith::ConstantOp> {
  bool isZero(Operation *op, ArrayRef<bool>) const {
    Attribute value = cast<arith::ConstantOp>(op).getValue();
    auto number = dyn_cast<FloatAttr>(value);
    return number && number.getValue().isZero();
  }
  void buildScalarGradient(Operation *, OpBuilder &, Value, SmallVectorImpl<Value> &) const {}
  double getFlops(Operation *) const { return 0; }
};

/// y = f(x): `Derivative::of(x, y)` is f'(x), and f(0) is 0 or not.
template <typename ConcreteOp, typename Derivative, int flops, bool keepsZero>
struct Function
    : public ScalarOpInterface::ExternalModel<Function<ConcreteOp, Derivative, flops, keepsZero>,
                                              ConcreteOp> {
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return keepsZero && zeros[0]; }
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    Scalar x{builder, op->getOperand(0)}, y{builder, op->getResult(0)};
    operands[0] = (Scalar{builder, gradient} * Derivative::of(x, y)).value;
  }
  double getFlops(Operation *) const { return flops; }
};

struct ExpDerivative {
  static Scalar of(Scalar, Scalar y) { return y; }
};
struct LogDerivative {
  static Scalar of(Scalar x, Scalar) { return x.constant(1) / x; }
};
struct TanhDerivative {
  static Scalar of(Scalar, Scalar y) { return y.constant(1) - y * y; }
};
struct SqrtDerivative {
  static Scalar of(Scalar, Scalar y) { return y.constant(0.5) / y; }
};
struct RsqrtDerivative {
  static Scalar of(Scalar, Scalar y) { return y.constant(-0.5) * (y * y * y); }
};
struct ErfDerivative {
  static Scalar of(Scalar x, Scalar) {
    // 2 / sqrt(pi) * exp(-x^2)
    return x.constant(1.1283791670955126) * unary<math::ExpOp>(-(x * x));
  }
};
struct SinDerivative {
  static Scalar of(Scalar x, Scalar) { return unary<math::CosOp>(x); }
};
struct CosDerivative {
  static Scalar of(Scalar x, Scalar) { return -unary<math::SinOp>(x); }
};

/// A sum of all operands, each with its sign.
Linearity joinAdditive(ArrayRef<Linearity> operands) {
  // A sum is additive only if every term is: a term that does not depend on the chosen
  // operands would be counted once for each pending part.
  if (llvm::all_of(operands, [](Linearity l) { return l == Linearity::Additive; })) {
    return Linearity::Additive;
  }
  return joinNonlinear(operands);
}

struct AddModel : public ScalarOpInterface::ExternalModel<AddModel, arith::AddFOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const {
    return joinAdditive(operands);
  }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0] && zeros[1]; }
  void buildScalarGradient(Operation *, OpBuilder &, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    operands[0] = operands[1] = gradient;
  }
};

struct SubModel : public ScalarOpInterface::ExternalModel<SubModel, arith::SubFOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const {
    return joinAdditive(operands);
  }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0] && zeros[1]; }
  void buildScalarGradient(Operation *, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    operands[0] = gradient;
    operands[1] = (-Scalar{builder, gradient}).value;
  }
};

struct NegModel : public ScalarOpInterface::ExternalModel<NegModel, arith::NegFOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const { return operands[0]; }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0]; }
  void buildScalarGradient(Operation *, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    operands[0] = (-Scalar{builder, gradient}).value;
  }
};

struct MulModel : public ScalarOpInterface::ExternalModel<MulModel, arith::MulFOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const {
    if (operands[0] == Linearity::Constant) {
      return operands[1];
    }
    return operands[1] == Linearity::Constant ? operands[0] : Linearity::Nonlinear;
  }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0] || zeros[1]; }
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    Scalar g{builder, gradient};
    operands[0] = (g * Scalar{builder, op->getOperand(1)}).value;
    operands[1] = (g * Scalar{builder, op->getOperand(0)}).value;
  }
};

struct DivModel : public ScalarOpInterface::ExternalModel<DivModel, arith::DivFOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const {
    return operands[1] == Linearity::Constant ? operands[0] : Linearity::Nonlinear;
  }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0] && !zeros[1]; }
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    Scalar g{builder, gradient}, y{builder, op->getResult(0)}, d{builder, op->getOperand(1)};
    operands[0] = (g / d).value;
    operands[1] = (-(g * y / d)).value;
  }
};

/// Maximum and minimum. If the operands are equal, the first one gets the gradient.
template <typename ConcreteOp, arith::CmpFPredicate takesFirst>
struct ChoiceModel
    : public ScalarOpInterface::ExternalModel<ChoiceModel<ConcreteOp, takesFirst>, ConcreteOp> {
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0] && zeros[1]; }
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    Scalar g{builder, gradient};
    Value first = arith::CmpFOp::create(builder, op->getLoc(), takesFirst, op->getOperand(0),
                                        op->getOperand(1));
    operands[0] = select(first, g, g.constant(0)).value;
    operands[1] = select(first, g.constant(0), g).value;
  }
};

struct SelectModel : public ScalarOpInterface::ExternalModel<SelectModel, arith::SelectOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const {
    return operands[0] == Linearity::Constant ? joinAdditive(operands.drop_front())
                                              : Linearity::Nonlinear;
  }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[1] && zeros[2]; }
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    Scalar g{builder, gradient};
    operands[1] = select(op->getOperand(0), g, g.constant(0)).value;
    operands[2] = select(op->getOperand(0), g.constant(0), g).value;
  }
};

/// Widening or rounding. Rounded terms do not add up to the rounded sum.
template <typename ConcreteOp, bool rounds>
struct CastModel
    : public ScalarOpInterface::ExternalModel<CastModel<ConcreteOp, rounds>, ConcreteOp> {
  Linearity getLinearity(Operation *, ArrayRef<Linearity> operands) const {
    return rounds ? joinNonlinear(operands) : operands[0];
  }
  bool isZero(Operation *, ArrayRef<bool> zeros) const { return zeros[0]; }
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    operands[0] = castScalar(builder, op->getLoc(), gradient, op->getOperand(0).getType());
  }
  double getFlops(Operation *) const { return 0; }
};

/// x^y for x > 0: the derivative in y has a logarithm of x.
struct PowModel : public ScalarOpInterface::ExternalModel<PowModel, math::PowFOp> {
  void buildScalarGradient(Operation *op, OpBuilder &builder, Value gradient,
                           SmallVectorImpl<Value> &operands) const {
    Scalar g{builder, gradient}, x{builder, op->getOperand(0)}, y{builder, op->getOperand(1)};
    operands[0] = (g * y * binary<math::PowFOp>(x, y - y.constant(1))).value;
    operands[1] = (g * Scalar{builder, op->getResult(0)} * unary<math::LogOp>(x)).value;
  }
  double getFlops(Operation *) const { return 20; }
};

void registerArith(MLIRContext *context, arith::ArithDialect *) {
  arith::AddFOp::attachInterface<AddModel>(*context);
  arith::SubFOp::attachInterface<SubModel>(*context);
  arith::NegFOp::attachInterface<NegModel>(*context);
  arith::MulFOp::attachInterface<MulModel>(*context);
  arith::DivFOp::attachInterface<DivModel>(*context);
  arith::MaximumFOp::attachInterface<ChoiceModel<arith::MaximumFOp, arith::CmpFPredicate::OGE>>(
      *context);
  arith::MinimumFOp::attachInterface<ChoiceModel<arith::MinimumFOp, arith::CmpFPredicate::OLE>>(
      *context);
  arith::SelectOp::attachInterface<SelectModel>(*context);
  arith::ExtFOp::attachInterface<CastModel<arith::ExtFOp, /*rounds=*/false>>(*context);
  arith::TruncFOp::attachInterface<CastModel<arith::TruncFOp, /*rounds=*/true>>(*context);
  arith::ConstantOp::attachInterface<ConstantModel>(*context);
  arith::CmpFOp::attachInterface<NoGradient<arith::CmpFOp>>(*context);
  arith::CmpIOp::attachInterface<NoGradient<arith::CmpIOp>>(*context);
  arith::SIToFPOp::attachInterface<NoGradient<arith::SIToFPOp>>(*context);
  arith::SubIOp::attachInterface<NoGradient<arith::SubIOp>>(*context);
  arith::RemSIOp::attachInterface<NoGradient<arith::RemSIOp>>(*context);
  arith::TruncIOp::attachInterface<NoGradient<arith::TruncIOp>>(*context);
}

void registerMath(MLIRContext *context, math::MathDialect *) {
  math::ExpOp::attachInterface<Function<math::ExpOp, ExpDerivative, 10, false>>(*context);
  math::LogOp::attachInterface<Function<math::LogOp, LogDerivative, 10, false>>(*context);
  math::TanhOp::attachInterface<Function<math::TanhOp, TanhDerivative, 15, true>>(*context);
  math::SqrtOp::attachInterface<Function<math::SqrtOp, SqrtDerivative, 4, true>>(*context);
  math::RsqrtOp::attachInterface<Function<math::RsqrtOp, RsqrtDerivative, 5, false>>(*context);
  math::ErfOp::attachInterface<Function<math::ErfOp, ErfDerivative, 15, true>>(*context);
  math::SinOp::attachInterface<Function<math::SinOp, SinDerivative, 15, true>>(*context);
  math::CosOp::attachInterface<Function<math::CosOp, CosDerivative, 15, false>>(*context);
  math::PowFOp::attachInterface<PowModel>(*context);
}

} // namespace

void weft::registerScalarOpModels(DialectRegistry &registry) {
  registry.addExtension(registerArith);
  registry.addExtension(registerMath);
}
