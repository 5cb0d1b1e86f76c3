//===- ProgramCheck.h - checks that a program is well-formed --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two halves of isWellFormed: checks of a program's tables, and of the
// instructions that refer to them. All checks return false and put the fault into
// `error`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_PROGRAM_PROGRAMCHECK_H
#define WEFT_RT_PROGRAM_PROGRAMCHECK_H

#include "weft-rt/Program.h"

#include <span>
#include <string>

namespace weft::rt {

/// Returns true if a number can be a cost or a rate: finite and not negative.
bool isAmount(double number);

/// Returns true if all ranks decide at this observation whether the run goes on.
bool decidesRun(const Observation &observation);
/// Returns true if the host reads this observation in each step: it decides the run, has a limit,
/// or is a scalar.
bool isSeen(const Observation &observation);
/// Returns, for each instruction of a section, whether it is an Observe whose value the host reads
/// only at a later Observe that decides the run; for hosts that would wait for their device at each
/// read. No read is postponed past a write of a persistent buffer, as a step that stops the run
/// must leave these unchanged.
std::vector<bool> areSeenLater(const Program &program, const std::vector<Instruction> &section);

/// Returns the number of ranks in each group over `axes`. REQUIRES: the mesh has these axes.
uint64_t groupSize(const Program &program, std::span<const uint32_t> axes);

/// Checks that buffer `number` has type `type` and room for `elements` elements. `where` begins the
/// error. REQUIRES: the buffer exists.
bool checkRoom(const Program &program, const std::string &where, uint32_t number, ElementType type,
               uint64_t elements, std::string &error);
/// Checks a library's workspace likewise.
bool checkWorkspace(const Program &program, const std::string &where, uint32_t number,
                    uint64_t bytes, std::string &error);

/// Checks the attention of the kernel `name`. REQUIRES: the mesh has been checked.
bool checkAttention(const Program &program, const std::string &name, const Attention &attention,
                    std::string &error);
/// Checks the operands and immediates of an instruction whose kernel is an attention. REQUIRES:
/// buffers and kernels have been checked, and operands name existing buffers.
bool checkAttentionOperands(const Program &program, const std::string &where,
                            const Instruction &instruction, std::string &error);

/// Checks all three sections. REQUIRES: the program's tables have been checked.
bool checkInstructions(const Program &program, std::string &error);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_PROGRAMCHECK_H
