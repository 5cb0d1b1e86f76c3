//===- Verification.h - is a plan the same as one rank? ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_VERIFICATION_H
#define WEFT_DRIVER_VERIFICATION_H

#include "weft/Driver/CompileOptions.h"
#include "weft/Driver/Descriptions.h"

#include "llvm/Support/Error.h"

namespace weft {

/// Makes the model of `descriptions` smaller, compiles it for the plan's ranks and for one rank,
/// runs both programs for some steps, and compares every loss, gradient and weight. Prints progress
/// and results to standard output. Fails if a number differs, with the first op whose result
/// differs, and if a program cannot be compiled or run. Its files are in a temporary folder, which
/// it removes. REQUIRES: the plan has several ranks or micro-batches.
llvm::Error verifyPlan(const CompileOptions &options, const Descriptions &descriptions);

} // namespace weft

#endif // WEFT_DRIVER_VERIFICATION_H
