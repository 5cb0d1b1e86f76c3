//===- Exponential.cpp - exponentials of numbers at most zero -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exponential.h"

#include <numbers>

namespace weft::lower {

Num expOfNegative(Num a) {
  Code &code = a.getCode();
  if (!a.getType().isF32()) {
    return code.exp(a);
  }
  // One instruction for 2^x, where the full exponential takes nine.
  return code.exp2OrZero(a * std::numbers::log2e);
}

} // namespace weft::lower
