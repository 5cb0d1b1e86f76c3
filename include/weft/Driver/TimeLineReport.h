//===- TimeLineReport.h - writes the predicted course of a step -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_TIMELINEREPORT_H
#define WEFT_DRIVER_TIMELINEREPORT_H

#include "weft-rt/Program.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

#include <span>

namespace weft {

/// What a time line shows, in words of the command line.
struct TimeLineRequest {
  std::string file;
  /// Such as "0,4-7"; by default the first of each rank class.
  std::string ranks;
  /// "instructions" or "actions".
  std::string detail = "instructions";
};

/// Writes the predicted course of a step to a file that Perfetto reads (docs/TimeLines.md), and
/// prints a line on it. REQUIRES: the programs are those of all rank classes, proven together.
llvm::Error writeTimeLine(llvm::raw_ostream &os, std::span<const rt::Program> programs,
                          const TimeLineRequest &request);

} // namespace weft

#endif // WEFT_DRIVER_TIMELINEREPORT_H
