//===- Prices.cpp - what steps between shardings cost ---------------------===//
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
  switch (kind) {
  case StepKind::AllReduce:
    return machine->collective(desc::CollectiveKind::AllReduce, group, bytes);
  case StepKind::ReduceScatter:
    return machine->collective(desc::CollectiveKind::ReduceScatter, group, bytes);
  case StepKind::AllGather:
    return machine->collective(desc::CollectiveKind::AllGather, group, bytes);
  case StepKind::AllToAll:
    return machine->collective(desc::CollectiveKind::AllToAll, group, bytes);
  case StepKind::Permute:
    return machine->collective(desc::CollectiveKind::Permute, group, bytes);
  case StepKind::Slice:
    return machine->kernel("slice", desc::Precision::F32, 0, 2 * bytes / double(group.ranks));
  case StepKind::Partial:
    return machine->kernel("partial", desc::Precision::F32, 0, 2 * bytes);
  }
  return 0;
}

} // namespace weft::planner
