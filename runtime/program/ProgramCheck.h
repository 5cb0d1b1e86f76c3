//===- ProgramCheck.h - is a program well-formed ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two halves of isWellFormed: a program's tables, and the instructions that
// point into them. All give false after putting the fault into `error`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_PROGRAMCHECK_H
#define WEFT_RT_PROGRAM_PROGRAMCHECK_H

#include "weft-rt/Program.h"

#include <span>
#include <string>

namespace weft::rt {

/// Whether a number can be a cost or a rate.
bool isAmount(double number);

/// Whether all ranks agree behind this observation to go on or not.
bool decidesRun(const Observation &observation);
/// Whether the host looks at it in each step: what decides, what has a limit, and single numbers.
bool isSeen(const Observation &observation);
/// Which instructions of a section are an Observe of such that a host which would have to wait for
/// its device looks at only with a later one: never beyond a write of what lasts, since a step that
/// ends is to have changed nothing.
std::vector<bool> areSeenLater(const Program &program, const std::vector<Instruction> &section);

/// Ranks in each group over these axes, which the mesh has.
uint64_t groupSize(const Program &program, std::span<const uint32_t> axes);

/// Buffer `number` holds elements of `type` and has room for `elements` of them. `where` begins the
/// error. REQUIRES: there is such a buffer.
bool checkRoom(const Program &program, const std::string &where, uint32_t number, ElementType type,
               uint64_t elements, std::string &error);
/// The same of a library's workspace.
bool checkWorkspace(const Program &program, const std::string &where, uint32_t number,
                    uint64_t bytes, std::string &error);

/// What is said of a kernel called `name`. REQUIRES: the mesh has been checked.
bool checkAttention(const Program &program, const std::string &name, const Attention &attention,
                    std::string &error);
/// The operands and immediates of an instruction whose kernel is an attention. REQUIRES: buffers
/// and kernels have been checked, and that operands name buffers.
bool checkAttentionOperands(const Program &program, const std::string &where,
                            const Instruction &instruction, std::string &error);

/// All three sections. REQUIRES: the program's tables have been checked.
bool checkInstructions(const Program &program, std::string &error);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_PROGRAMCHECK_H
