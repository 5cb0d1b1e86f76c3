//===- ScheduleReport.h - a picture of what stages do when ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Draws the predicted course of a step, a row for each rank class: what its ranks do when,
// and when they wait for other classes. Both pictures show the times of
// `weft/Schedule/Timeline.h`, and the share of waiting that `weft compile` reports.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_SCHEDULEREPORT_H
#define WEFT_DRIVER_SCHEDULEREPORT_H

#include "weft-rt/Program.h"

#include "llvm/Support/raw_ostream.h"

#include <span>

namespace weft {

/// Prints a row of characters for each class, each for the same time: the micro-batch that it works
/// on, modulo 10, 'o' for work on the whole batch, '.' while it waits. Below a row, 'B' marks
/// micro-batches whose body ran first in another, as backward does after forward.
/// REQUIRES: `programs` are those of all classes, proven together.
void printSchedule(llvm::raw_ostream &os, std::span<const rt::Program> programs);

/// Writes the same as an SVG file of one box for each action, with a title that browsers show.
void drawSchedule(llvm::raw_ostream &os, std::span<const rt::Program> programs);

} // namespace weft

#endif // WEFT_DRIVER_SCHEDULEREPORT_H
