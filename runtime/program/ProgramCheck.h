//===- ProgramCheck.h - checks that a program is well-formed --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The two halves of checkWellFormed: checks of a program's tables, and of the
// instructions that refer to them. All checks fail with the first fault.
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

/// Returns true if the run ends where the observed value is not finite.
bool decidesRun(const Observation &observation);
/// Returns true if the host reads this observation in each step: it decides the run, has a limit,
/// or is a scalar.
bool isSeen(const Observation &observation);
/// Returns, for each instruction of each body, whether it is an Observe whose value the host reads
/// only when ranks agree to go on, whichever action runs it; for hosts that would wait for their
/// device at each read.
std::vector<std::vector<bool>> areSeenLater(const Program &program);

/// Checks that the mesh has all `axes` and none is named twice. `name` begins the error.
Status checkAxes(const Program &program, const std::string &name, std::span<const uint32_t> axes);
/// Checks all collectives. REQUIRES: the mesh has been checked.
Status checkCollectives(const Program &program);

/// Checks frame sets, and which buffers lie in them. REQUIRES: the arena's size has been checked.
Status checkFrames(const Program &program);
/// The first use of a frame set by a body.
struct FrameSetUse {
  uint32_t set = 0, buffer = 0;
  size_t instruction = 0;
};
/// Returns one entry for each set that the body uses, in the order of instructions.
std::vector<FrameSetUse> findFrameSetUses(const Program &program, const Body &body);
/// Checks that action `number` of a section is for a frame of each set that its body uses, as
/// `uses` says, and of no other. REQUIRES: frames and bodies have been checked, and the action's
/// body exists.
Status checkFrames(const Program &program, const char *section, size_t number, const Action &action,
                   std::span<const FrameSetUse> uses);

/// Checks that buffer `number` has type `type` and room for `elements` elements. `where` begins the
/// error. REQUIRES: the buffer exists.
Status checkRoom(const Program &program, const std::string &where, uint32_t number,
                 ElementType type, uint64_t elements);
/// Checks a library's workspace likewise.
Status checkWorkspace(const Program &program, const std::string &where, uint32_t number,
                      uint64_t bytes);

/// Checks the attention of the kernel `name`. REQUIRES: the mesh has been checked.
Status checkAttention(const Program &program, const std::string &name, const Attention &attention);
/// Checks the operands and immediates of an instruction whose kernel is an attention. REQUIRES:
/// buffers and kernels have been checked, and operands name existing buffers.
Status checkAttentionOperands(const Program &program, const std::string &where,
                              const Instruction &instruction);

/// Checks all bodies and sections. REQUIRES: the program's tables have been checked.
Status checkInstructions(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_PROGRAM_PROGRAMCHECK_H
