//===- InstructionRange.h - instructions that reports name ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_INSTRUCTIONRANGE_H
#define WEFT_RT_PROGRAM_INSTRUCTIONRANGE_H

#include "weft-rt/Program.h"

#include <string>
#include <vector>

namespace weft::rt {

/// Consecutive instructions of "init", "step" or "evaluate", by their numbers in the section's
/// expansion; none if `actions` is null.
struct InstructionRange {
  const char *section = "";
  const std::vector<Action> *actions = nullptr;
  uint32_t first = 0, last = 0;

  /// Returns the last instruction, which usually takes most of the time; null for none.
  const Instruction *lastOne(const Program &program) const;
};

/// Returns "step instructions 40 to 44 (all-reduce sum f32 [64] over {data}, layers.3.mlp)". The
/// text in parentheses describes the last instruction. Empty for none.
std::string textOf(const Program &program, const InstructionRange &range);

/// Returns the first instruction with this operation and target; none if the program has none.
InstructionRange firstUse(const Program &program, Opcode opcode, uint32_t target);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_INSTRUCTIONRANGE_H
