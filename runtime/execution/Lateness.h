//===- Lateness.h - does a late rank still make progress ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When the timeout ends a wait, ranks that made progress in the second half of the
// timeout are slow, and the others are stuck. A rank that itself waits made its
// last progress before that half.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_LATENESS_H
#define WEFT_RT_EXECUTION_LATENESS_H

#include <chrono>
#include <string>

namespace weft::rt {

/// Returns true if a rank whose last progress was `ago` counts as moving, after a wait of
/// `patience`.
bool isMoving(std::chrono::nanoseconds ago, std::chrono::nanoseconds patience);

/// ", and still moves, 0.1 s ago for the last time" or ", and has not moved for 4.2 s".
std::string movedText(std::chrono::nanoseconds ago, std::chrono::nanoseconds patience);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_LATENESS_H
