//===- NonFinite.h - finds the origin of a non-finite value ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loss or gradient norm that is not finite appears before the update, while
// parameters and inputs still have their values from the beginning of the step. So
// the step can run again, with a search of every buffer after the instruction that
// wrote it. A normal run has no cost.
//
// The search reports NaN and +inf first; -inf, which masks put into scores on
// purpose, only if the step has neither.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_NONFINITE_H
#define WEFT_RT_EXECUTION_NONFINITE_H

#include "execution/Executor.h"

#include <optional>

namespace weft::rt {

/// A non-finite value in the result of an instruction or in the tensors at the beginning of the
/// step.
struct Finding {
  int64_t rank = 0;
  /// The instruction of the step; -1 for a tensor that was non-finite before the step.
  int64_t instruction = -1;
  uint32_t buffer = 0;
  /// The element's index in the rank's buffer.
  uint64_t element = 0;
  double value = 0;
  /// True if it is the result of a collective across rank classes: it may come from another class.
  bool isReceived = false;
};

/// Runs the step again up to and including the instruction at which it stopped, and returns the
/// first non-finite value on this rank. All ranks must call it. Also empty if the run stops
/// meanwhile.
std::optional<Finding> replayStep(const Program &program, Executor &executor);

/// Returns the first of all ranks' findings in the order of the step. Classes have orders of their
/// own, so one that was received comes after all others.
std::optional<Finding> earliest(std::span<const std::optional<Finding>> findings);

/// Returns a sentence with the value, its place, the instruction and the rank.
std::string describe(const Program &program, const Finding &finding);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_NONFINITE_H
