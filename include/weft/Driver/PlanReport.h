//===- PlanReport.h - a plan, for people ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DRIVER_PLANREPORT_H
#define WEFT_DRIVER_PLANREPORT_H

#include "weft/Driver/Compilation.h"

#include "llvm/Support/raw_ostream.h"

namespace weft {

/// A strategy that was priced beside the plan.
struct Rival {
  std::string name;
  /// Why it cannot be had; empty if it can.
  std::string illegal;
  /// As it is fastest, with as much memory as it takes.
  SearchReport search;
};

/// What the plan is called and takes: strategies, times, memory.
void printPlanReport(llvm::raw_ostream &os, const PlanFacts &facts, const rt::Program &program,
                     const Descriptions &descriptions);

/// What others take, beside the plan that was found.
void printRivals(llvm::raw_ostream &os, const PlanFacts &facts, const std::vector<Rival> &rivals,
                 const desc::MachineSpec &machine);

} // namespace weft

#endif // WEFT_DRIVER_PLANREPORT_H
