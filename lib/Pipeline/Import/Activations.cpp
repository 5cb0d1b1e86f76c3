//===- Activations.cpp - the nonlinear functions of models ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activations.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace weft;

Value weft::gelu(ImplicitLocOpBuilder &scalars, Value x) {
  Value scaled =
      arith::MulFOp::create(scalars, x, scalarConstant(scalars, x, 1.0 / std::numbers::sqrt2));
  Value erf = math::ErfOp::create(scalars, scaled);
  Value sum = arith::AddFOp::create(scalars, erf, scalarConstant(scalars, x, 1.0));
  Value half = arith::MulFOp::create(scalars, x, scalarConstant(scalars, x, 0.5));
  return arith::MulFOp::create(scalars, half, sum);
}

Value weft::geluTanh(ImplicitLocOpBuilder &scalars, Value x) {
  double factor = std::sqrt(2.0 * std::numbers::inv_pi);
  Value square = arith::MulFOp::create(scalars, x, x);
  Value cube = arith::MulFOp::create(scalars, square, x);
  Value small = arith::MulFOp::create(scalars, cube, scalarConstant(scalars, x, 0.044715));
  Value inner = arith::AddFOp::create(scalars, x, small);
  inner = arith::MulFOp::create(scalars, inner, scalarConstant(scalars, x, factor));
  Value tanh = math::TanhOp::create(scalars, inner);
  Value sum = arith::AddFOp::create(scalars, tanh, scalarConstant(scalars, x, 1.0));
  Value half = arith::MulFOp::create(scalars, x, scalarConstant(scalars, x, 0.5));
  return arith::MulFOp::create(scalars, half, sum);
}

Value weft::silu(ImplicitLocOpBuilder &scalars, Value x) {
  Value half = arith::MulFOp::create(scalars, x, scalarConstant(scalars, x, 0.5));
  Value tanh = math::TanhOp::create(scalars, half);
  Value sum = arith::AddFOp::create(scalars, tanh, scalarConstant(scalars, x, 1.0));
  return arith::MulFOp::create(scalars, half, sum);
}
