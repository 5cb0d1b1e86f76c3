//===- Report.h - what a compilation has come to --------------------------===//
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

namespace weft {

/// Prints ranks, memory, kernels, their code and the time of a compilation whose result is in the
/// file `path`.
void printReport(llvm::raw_ostream &os, const rt::Program &program, const EmitReport &emitted,
                 llvm::StringRef path, double seconds);

} // namespace weft

#endif // WEFT_DRIVER_REPORT_H
