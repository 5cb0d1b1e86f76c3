//===- Lateness.cpp - does a late rank still make progress ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Lateness.h"

#include "support/Text.h"

#include <cmath>

bool weft::rt::isMoving(std::chrono::nanoseconds ago, std::chrono::nanoseconds patience) {
  return ago < patience / 2;
}

std::string weft::rt::movedText(std::chrono::nanoseconds ago, std::chrono::nanoseconds patience) {
  double seconds = std::round(std::chrono::duration<double>(ago).count() * 10) / 10;
  return isMoving(ago, patience)
             ? concat(", and still moves, ", seconds, " s ago for the last time")
             : concat(", and has not moved for ", seconds, " s");
}
