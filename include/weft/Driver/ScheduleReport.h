//===- ScheduleReport.h - pictures of what stages do when -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shows the predicted course of a step, a row for each rank class: what its ranks do when,
// and when they wait for other classes. Times are those of `weft/Schedule/Timeline.h`, the
// share of waiting is that of `cost::pipelineTimes`, as `weft compile` reports it.
//
// REQUIRES of all functions: the programs are those of all classes, proven together.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_SCHEDULEREPORT_H
#define WEFT_DRIVER_SCHEDULEREPORT_H

#include "weft-rt/Program.h"

#include "llvm/Support/raw_ostream.h"

#include <span>

namespace weft {

/// Prints a row of characters for each class. Each character stands for the same time, and says
/// what the class does for most of it.
void printSchedule(llvm::raw_ostream &os, std::span<const rt::Program> programs);

/// Writes an SVG file with a box for each action, whose title says its body, its micro-batch and
/// its time, and one for each time of waiting.
void drawSchedule(llvm::raw_ostream &os, std::span<const rt::Program> programs);

} // namespace weft

#endif // WEFT_DRIVER_SCHEDULEREPORT_H
