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

/// Gives every instruction its predicted time on one rank of `machine`, from its operations and
/// bytes. Ranks fill one node after another. REQUIRES: the program is well-formed, and has at most
/// as many ranks as the machine has devices.
void predictProgram(rt::Program &program, const desc::MachineSpec &machine);

/// Gives the program what the machine's file, its own collectives and its inputs say of a device's
/// memory beside the arena; its code and the stacks of that are not known before they are emitted.
/// Where ranks agree to go on they do so once for all that the host of a device looks at together.
void predictDevice(rt::Program &program, const desc::CudaSpec &cuda);

/// What a step takes one rank: the sum over its instructions, but for what runs beside other things
/// on another stream (`weft/Schedule/Timeline.h`).
double stepSeconds(const rt::Program &program);

/// The sum over all instructions of a step.
double serialSeconds(const rt::Program &program);

} // namespace weft::cost

#endif // WEFT_COST_PREDICTPROGRAM_H
