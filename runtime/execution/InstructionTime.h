//===- InstructionTime.h - when an instruction ran --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_INSTRUCTIONTIME_H
#define WEFT_RT_EXECUTION_INSTRUCTIONTIME_H

#include <chrono>
#include <cstdint>

namespace weft::rt {

inline int64_t nanosecondsOf(std::chrono::steady_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

/// When one rank ran one instruction of one step, in nanoseconds of any clock. It first waited for
/// other ranks for `waited`, then worked until `end`.
struct InstructionTime {
  int64_t begin = 0, end = 0, waited = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_INSTRUCTIONTIME_H
