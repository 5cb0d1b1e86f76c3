//===- TableMutations.h - small changes of the programs of a run -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_SCHEDULE_TABLEMUTATIONS_H
#define WEFT_UNITTESTS_SCHEDULE_TABLEMUTATIONS_H

#include "weft-rt/Program.h"

#include <random>
#include <span>

namespace weft::test {

using Random = std::mt19937_64;

struct Mutation {
  /// "actions", "frames", "transfers", "groups", "waits", "orders" or "agreements".
  const char *group;
  const char *name;
  /// Changes programs of a pipeline; returns false if they have nothing of the kind.
  bool (*apply)(rt::Programs &programs, Random &random);
};

std::span<const Mutation> tableMutations();

} // namespace weft::test

#endif // WEFT_UNITTESTS_SCHEDULE_TABLEMUTATIONS_H
