//===- MemoryReport.h - the use of a rank's memory ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_REPORT_MEMORYREPORT_H
#define WEFT_RT_REPORT_MEMORYREPORT_H

#include "weft-rt/Program.h"

#include <array>

namespace weft::rt {

inline constexpr size_t kBufferClasses = size_t(BufferClass::Workspace) + 1;

/// The bytes in use at the instruction of the step that needs the most; see `BufferLives`.
struct MemoryPeak {
  std::array<uint64_t, kBufferClasses> bytes = {};
  uint64_t total = 0;
  size_t instruction = 0;
};

MemoryPeak memoryPeak(const Program &program);

/// Returns two or three lines for people, and one more for devices.
std::string memoryReport(const Program &program);

} // namespace weft::rt

#endif // WEFT_RT_REPORT_MEMORYREPORT_H
