//===- MemoryReport.h - a program's memory over a step, and its peak ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Explains the size of the arena of each rank class: what is in use at the peak, and what
// the arena takes besides. Bytes in use are those of the runtime's `report/MemoryCourse.h`,
// the peak is that of `weft compile`, `weft plan` and the program itself.
//
// REQUIRES of all functions: the programs are those of all classes, proven together.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_MEMORYREPORT_H
#define WEFT_DRIVER_MEMORYREPORT_H

#include "weft-rt/Program.h"

#include "llvm/Support/raw_ostream.h"

#include <span>

namespace weft {

/// Prints for each class the peak and where it is, the parts of the arena, and the largest buffers
/// in use at the peak. Buffers that differ only in the numbers of their layers share an entry.
void printMemory(llvm::raw_ostream &os, std::span<const rt::Program> programs);

/// Writes an SVG file with a panel for each class: the bytes in use during a step by their class,
/// over predicted times. The times of instructions within an action are approximate where the
/// action waits for other classes.
void drawMemory(llvm::raw_ostream &os, std::span<const rt::Program> programs);

} // namespace weft

#endif // WEFT_DRIVER_MEMORYREPORT_H
