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

#include <span>
#include <vector>

namespace weft::cost {

/// Sets every instruction's predicted time on one rank of `machine`, from its operations and bytes,
/// and what collectives take from computation beside them.
/// Ranks of all classes fill one node after another. REQUIRES: the program is well-formed, and its
/// classes together have at most as many ranks as the machine has devices.
void predictProgram(rt::Program &program, const desc::MachineSpec &machine);

/// Sets the program's predicted device memory besides the arena, from the machine's file and the
/// program's collectives and inputs. The memory of its code and of stacks is not known before the
/// code is emitted.
void predictDevice(rt::Program &program, const desc::CudaSpec &cuda);

/// Returns the time of a step of all rank classes together, from the times of their instructions:
/// see `weft/Schedule/Timeline.h`, also for what it requires.
double stepSeconds(std::span<const rt::Program> programs);
/// Returns the time of a step on one rank that never waits for other classes.
double stepSeconds(const rt::Program &program);

/// The predicted times of a step of several rank classes.
struct PipelineTimes {
  /// Until all classes have ended.
  double seconds = 0;
  /// Of each class: the time that its step would take if it never waited for other classes, its
  /// transfers included.
  std::vector<double> busy;

  /// Returns the share of all classes' time in which they wait for others.
  double bubble() const;
};
PipelineTimes pipelineTimes(std::span<const rt::Program> programs);
/// The same, where the seconds of the step of all classes together are known.
PipelineTimes pipelineTimes(std::span<const rt::Program> programs, double seconds);

/// Returns the sum of the times of all instructions of a step.
double serialSeconds(const rt::Program &program);

/// Returns the program of the rank class whose ranks need most memory of a device, the first such.
/// REQUIRES: at least one.
const rt::Program &largestOf(std::span<const rt::Program> programs);

} // namespace weft::cost

#endif // WEFT_COST_PREDICTPROGRAM_H
