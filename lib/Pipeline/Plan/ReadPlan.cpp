//===- ReadPlan.cpp - the plan that passes are given ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReadPlan.h"

#include "weft/Description/Pins.h"

using namespace mlir;

FailureOr<weft::desc::PlanSpec> weft::readPlan(ModuleOp module, llvm::StringRef pass,
                                               const std::string &plan,
                                               const std::vector<std::string> &pins) {
  desc::Result<desc::PlanSpec> spec =
      plan.empty() ? desc::applyPins(pins) : desc::parsePlan(plan, "plan");
  if (!spec) {
    return module.emitError(pass) << ": " << desc::str(spec.diagnostics());
  }
  return *spec;
}
