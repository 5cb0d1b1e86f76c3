//===- ReadPlan.cpp - the plan that passes are given ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/ReadPlan.h"

#include "weft/Description/Pins.h"

using namespace mlir;

FailureOr<weft::desc::PlanSpec> weft::readPlan(ModuleOp module, llvm::StringRef pass,
                                               const std::string &plan,
                                               const std::vector<std::string> &pins,
                                               const desc::PlanSpec *written) {
  if (written) {
    return *written;
  }
  desc::Result<desc::PlanSpec> spec =
      plan.empty() ? desc::applyPins(pins) : desc::parsePlan(plan, "plan");
  if (spec) {
    return *spec;
  }
  for (desc::Diagnostic problem : spec.diagnostics()) {
    if (problem.location.line == 0) {
      module.emitError(pass) << ": " << problem.str();
      continue;
    }
    Location place = placeOf(module.getContext(), problem.location);
    problem.location = {};
    emitError(place) << pass << ": " << problem.str();
  }
  return failure();
}

Location weft::placeOf(MLIRContext *context, const desc::Location &location) {
  return FileLineColLoc::get(context, location.file, unsigned(location.line),
                             unsigned(location.column));
}

std::string weft::textOf(const desc::ShardingSpec &entry) {
  desc::ShardingSpec anywhere = entry;
  anywhere.location = {};
  return desc::describeEntry(anywhere);
}
