//===- Report.h - prints the results of a compilation ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_REPORT_H
#define WEFT_DRIVER_REPORT_H

#include "weft-rt/Program.h"

#include "weft/Pipeline/Emit/Emit.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <span>

namespace weft {

/// The results of a compilation to a program.
struct CompileReport {
  rt::Programs programs;
  EmitReport emitted;
  /// The duration of the compilation.
  double seconds = 0;
};

/// Prints ranks, memory, kernels and times of a compilation whose result is in the file `path`.
void printReport(llvm::raw_ostream &os, const CompileReport &report, llvm::StringRef path);

/// Returns "1.234 s", or "1.234 ms" for less than a second.
std::string secondsText(double seconds);

/// Returns ", stages wait for others for 12.3 %", the share of a step of `seconds`; empty without
/// stages. REQUIRES: the programs are those of all classes, proven together.
std::string waitingText(std::span<const rt::Program> programs, double seconds);

/// Sizes in bytes. The bound is what is in use at the peak, whatever the places of buffers; `gap`
/// is the excess of the arena over it, as a fraction of it.
struct ArenaReport {
  uint64_t bound = 0, bytes = 0;
  double gap() const { return bound == 0 ? 0 : double(bytes - bound) / double(bound); }
};

ArenaReport reportArena(const rt::Program &program);
/// Returns "arena 45.1 GiB, at least 45.0 GiB, gap 0.22 %".
std::string arenaText(const ArenaReport &arena);

/// Returns "stage 1, ranks 4 to 7"; "ranks 0 to 3" without stages.
std::string ranksText(const rt::Program &program);

/// Returns how the ranks are split: "mesh dp=2 tp=2x4", with a split axis, "2 stages of mesh dp=4",
/// or "2 stages"; empty for one rank.
std::string meshText(const rt::Program &program);

} // namespace weft

#endif // WEFT_DRIVER_REPORT_H
