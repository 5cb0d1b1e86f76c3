//===- Lateness.h - whether a rank that is late still moves ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// When ranks have waited as long as they may, those whose work has come on in the second
// half of that time are slow, and others are stuck: who waits too has come on before.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_LATENESS_H
#define WEFT_RT_EXECUTION_LATENESS_H

#include <chrono>
#include <string>

namespace weft::rt {

/// Whether a rank that came on `ago` moves, for one who has waited for `patience`.
bool isMoving(std::chrono::nanoseconds ago, std::chrono::nanoseconds patience);

/// ", and still moves, 0.1 s ago for the last time" or ", and has not moved for 4.2 s".
std::string movedText(std::chrono::nanoseconds ago, std::chrono::nanoseconds patience);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_LATENESS_H
