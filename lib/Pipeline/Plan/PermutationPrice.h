//===- PermutationPrice.h - the cost of passing shards around -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_PERMUTATIONPRICE_H
#define WEFT_LIB_PIPELINE_PLAN_PERMUTATIONPRICE_H

#include "OpOptions.h"

namespace weft {

/// Returns the cost of passing shards around the ranks, if `option` cuts the permuted factor of
/// `op`, else 0. Each of n ranks sends every operand with the permuted factor n - 1 times, and
/// every result with this factor n times: see expand-permutations.
double pricePermutation(ShardableOpInterface op, const FactorRule &rule, const OpOption &option,
                        LayoutSpaces &spaces, const planner::Price &price);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_PERMUTATIONPRICE_H
