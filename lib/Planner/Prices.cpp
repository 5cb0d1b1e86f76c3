//===- Prices.cpp - prices of steps between shardings ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Prices.h"

namespace weft::planner {

double Prices::operator()(StepKind kind, const Axes &axes, double bytes) {
  auto [known, isNew] = groups.try_emplace(axes);
  cost::Group &group = known->second;
  if (isNew) {
    group = cost::placeGroup(mesh, axes, machine ? machine->devicesPerNode() : INT64_MAX);
  }
  if (!machine) {
    return bytesSent(kind, group.ranks, bytes);
  }
  if (auto collective = collectiveOf(kind)) {
    return machine->collective(*collective, group, bytes);
  }
  // Read and written once; a slice only its result.
  bool isSlice = kind == StepKind::Slice;
  return machine->kernel(isSlice ? "slice" : "partial", desc::Precision::F32, 0,
                         2 * bytes / (isSlice ? double(group.ranks) : 1));
}

} // namespace weft::planner
