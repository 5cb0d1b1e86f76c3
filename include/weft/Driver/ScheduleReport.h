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
#include "weft/Schedule/Timeline.h"

#include "llvm/Support/raw_ostream.h"

#include <span>
#include <vector>

namespace weft {

/// The predicted course of a step. For one thread; the programs must outlive it.
class ScheduleReport {
public:
  /// REQUIRES: the programs are those of all rank classes, proven together.
  explicit ScheduleReport(std::span<const rt::Program> programs);

  /// Prints a row of characters for each stage.
  void print(llvm::raw_ostream &os) const;
  /// Draws the stages as an SVG file.
  void draw(llvm::raw_ostream &os) const;

private:
  void printHeader(llvm::raw_ostream &os) const;

  const std::span<const rt::Program> programs;
  const std::vector<schedule::ClassCourse> courses;
  /// Of the step.
  const double seconds;
};

} // namespace weft

#endif // WEFT_DRIVER_SCHEDULEREPORT_H
