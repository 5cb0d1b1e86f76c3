//===- OptimizerOp.cpp - the optimizer and its numbers --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;
using namespace weft;

LogicalResult OptimizerOp::verify() {
  auto inUnit = [](const APFloat &value) {
    double number = value.convertToDouble();
    return number >= 0 && number < 1;
  };
  if (!inUnit(getBeta1()) || !inUnit(getBeta2()) || !inUnit(getMomentum())) { // optimizer_c1
    return emitOpError("beta1, beta2 and momentum must lie in [0, 1)");
  }
  for (const APFloat &value : {getLearningRate(), getWeightDecay(), getClip(), getEpsilon(),
                               getFinalFraction(), getOtherRate()}) {
    if (!(value.convertToDouble() >= 0)) {
      return emitOpError("rates, decays and norms must not be negative");
    }
  }
  if (static_cast<int64_t>(getWarmupSteps()) < 0 || static_cast<int64_t>(getTotalSteps()) < 0) {
    return emitOpError("numbers of steps must not be negative"); // optimizer_c2
  }
  if (auto iterations = static_cast<int64_t>(getIterations());
      iterations < 1 || iterations > 100) { // optimizer_c3
    return emitOpError() << "expected 1 to 100 iterations, got " << iterations;
  }
  double scale = getLossScale().convertToDouble();
  if ((scale != 0 && !(scale >= 1 && scale <= 0x1p24)) ||
      static_cast<int64_t>(getScaleInterval()) < 0 ||
      !(getScaleFactor().convertToDouble() >= 1)) { // optimizer_c4
    return emitOpError("expected a loss scale of 0, or 1 to 2^24, an interval of at least 0 and a "
                       "factor of at least 1");
  }
  return success();
}
