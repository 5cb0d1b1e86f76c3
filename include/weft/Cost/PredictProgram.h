//===- PredictProgram.h - predicted times of a program --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COST_PREDICTPROGRAM_H
#define WEFT_COST_PREDICTPROGRAM_H

#include "weft-rt/Program.h"
#include "weft/Description/Machine.h"

namespace weft::cost {

/// Sets every instruction's predicted time on one rank of `machine`, from its operations and bytes.
/// Ranks fill one node after another. REQUIRES: the program is well-formed, and has at most as many
/// ranks as the machine has devices.
void predictProgram(rt::Program &program, const desc::MachineSpec &machine);

/// Sets the program's predicted device memory besides the arena, from the machine's file and the
/// program's collectives and inputs. The memory of its code and of stacks is not known before the
/// code is emitted. When ranks agree to continue, they do so once for all values that the host
/// reads together.
void predictDevice(rt::Program &program, const desc::CudaSpec &cuda);

/// Returns the time of a step on one rank: the sum over its instructions, without the time that
/// streams overlap (`weft/Schedule/Timeline.h`).
double stepSeconds(const rt::Program &program);

/// Returns the sum of the times of all instructions of a step.
double serialSeconds(const rt::Program &program);

/// Returns the program of the rank class whose ranks need most memory of a device, the first such.
/// REQUIRES: at least one.
const rt::Program &largestOf(std::span<const rt::Program> programs);

} // namespace weft::cost

#endif // WEFT_COST_PREDICTPROGRAM_H
