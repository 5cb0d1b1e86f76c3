//===- PlanReport.h - prints a plan ---------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PLANREPORT_H
#define WEFT_DRIVER_PLANREPORT_H

#include "weft/Driver/Compilation.h"
#include "weft/Driver/Rivals.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace weft {

/// Prints the plan's strategies, predicted times and memory.
void printPlanReport(llvm::raw_ostream &os, const PlanFacts &facts, const rt::Programs &programs,
                     const Descriptions &descriptions);

/// Prints the predicted times and memory of `rivals` beside those of the plan's program.
void printRivals(llvm::raw_ostream &os, const rt::Programs &programs,
                 const std::vector<Rival> &rivals, const desc::MachineSpec &machine);

/// Prints how much longer other orders of a plan's pipeline stages take, and how much more memory:
/// nothing for a plan without stages. See `weft/Pipeline/Plan/PipelinePrice.h`.
void printSchedules(llvm::raw_ostream &os, const PlanFacts &facts);

/// Returns the error for a plan that does not fit: the memory that it needs.
llvm::Error refusePlan(const PlanFacts &facts, const rt::Programs &programs,
                       const desc::MachineSpec &machine);

} // namespace weft

#endif // WEFT_DRIVER_PLANREPORT_H
