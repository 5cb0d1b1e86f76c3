//===- MemoryReport.h - the use of a rank's memory ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_MEMORYREPORT_H
#define WEFT_RT_REPORT_MEMORYREPORT_H

#include "report/MemoryCourse.h"
#include "weft-rt/Program.h"

namespace weft::rt {

/// The instant of all sections that needs the most bytes, aligned; of the step, if it needs as many
/// as others. See `MemoryCourse.h`.
struct MemoryPeak {
  /// "step", "evaluate" or "init", and its actions. Empty if the program has no instructions: then
  /// the use is that of persistent buffers.
  std::string section;
  std::vector<Action> Program::*actions = &Program::step;
  Instant instant;
  MemoryUse use;
};

/// REQUIRES of all functions: the program is well-formed.
MemoryPeak memoryPeak(const Program &program);

/// Returns two or three lines for people, and one more for devices.
std::string memoryReport(const Program &program);
/// The same, where the program's peak is known.
std::string memoryReport(const Program &program, const MemoryPeak &peak);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_MEMORYREPORT_H
