//===- PlanConditions.cpp - under which conditions a plan is found --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Compilation.h"

using namespace mlir;
using namespace weft;

bool PlanConditions::operator==(const PlanConditions &other) const {
  auto isSame = [](const desc::ShardingSpec &a, const desc::ShardingSpec &b) {
    return a.value == b.value && a.dimension == b.dimension && a.axes == b.axes;
  };
  return reserve == other.reserve && accumulation == other.accumulation &&
         std::equal(homes.begin(), homes.end(), other.homes.begin(), other.homes.end(), isSame);
}

llvm::FailureOr<PlanConditions> weft::findConditions(CompileOptions options,
                                                     const Descriptions &descriptions) {
  options.isPlanning = true; // Which goes on where nothing fits.
  options.stopAfter = Phase::Schedule;
  options.dumpFolder.clear();
  Compilation compilation(options, descriptions);
  if (failed(compilation.begin())) {
    return failure();
  }
  // The caller plans once more, and prints warnings then.
  ScopedDiagnosticHandler handler(compilation.getModule().getContext(), [](Diagnostic &diagnostic) {
    return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
  });
  if (failed(compilation.runPhases())) {
    return failure();
  }
  return compilation.getConditions();
}
