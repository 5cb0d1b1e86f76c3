//===- ValueReport.h - why a value is sharded as it is, for people --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_VALUEREPORT_H
#define WEFT_DRIVER_VALUEREPORT_H

#include "weft/Description/Machine.h"
#include "weft/Pipeline/Plan/ValueQuestion.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace weft {

/// Prints the answer: how the value lies, why, and what other ways would take, where the search has
/// left `reserve` bytes of a device's memory for what it does not count.
void printValueReport(llvm::raw_ostream &os, const ValueQuestion &question,
                      const desc::MachineSpec &machine, int64_t reserve);

/// What to say where the question's name fits no value or several: names that there are.
llvm::Error refuseName(const ValueQuestion &question);

} // namespace weft

#endif // WEFT_DRIVER_VALUEREPORT_H
