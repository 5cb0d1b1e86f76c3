//===- Dependences.h - dependences between instructions of a body ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_SCHEDULE_DEPENDENCES_H
#define WEFT_LIB_SCHEDULE_DEPENDENCES_H

#include "weft-rt/Program.h"

#include <vector>

namespace weft::schedule {

/// For each instruction of a body, by number, the instructions that must run before and after
/// it. Every order that respects these pairs computes the same.
struct Dependences {
  std::vector<std::vector<uint32_t>> before, after;
};

/// Finds dependences by buffers, not by shared bytes. Observations keep their order, and a
/// persistent buffer is written on the same side of each observation, which may end the step.
Dependences findDependences(const rt::Program &program, const std::vector<rt::Instruction> &body);

} // namespace weft::schedule

#endif // WEFT_LIB_SCHEDULE_DEPENDENCES_H
