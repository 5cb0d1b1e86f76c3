//===- NonFinite.h - where a value that is not finite arose -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A loss or gradient norm that is not finite shows itself before the update, when
// parameters and inputs are still those that the step began with. So the step can
// be run again from its start, with a look at every buffer after the instruction
// that wrote it. That costs nothing while all is well.
//
// NaN and +inf are found first; -inf, which masks put into scores on purpose, only
// if the step has neither.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_EXECUTION_NONFINITE_H
#define WEFT_RT_EXECUTION_NONFINITE_H

#include "execution/Executor.h"

#include <optional>

namespace weft::rt {

/// A value that is not finite, in what an instruction wrote or in what the step began with.
struct Finding {
  int64_t rank = 0;
  /// Instruction of the step; -1 for a tensor that was so before the step.
  int64_t instruction = -1;
  uint32_t buffer = 0;
  /// Element in the rank's buffer.
  uint64_t element = 0;
  double value = 0;
};

/// Runs the step again, up to and with the instruction at which it stopped, and gives what this
/// rank finds first. All ranks must call it. Empty also if the run stops meanwhile.
std::optional<Finding> replayStep(const Program &program, Executor &executor);

/// The first of all ranks' findings in the order of the step.
std::optional<Finding> earliest(std::span<const std::optional<Finding>> findings);

/// A sentence: value, place, instruction and rank.
std::string describe(const Program &program, const Finding &finding);

} // namespace weft::rt

#endif // WEFT_RT_EXECUTION_NONFINITE_H
