//===- SplitForSearch.h - sub-axes that the search may use ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_SPLITFORSEARCH_H
#define WEFT_DESCRIPTION_SPLITFORSEARCH_H

#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Plan.h"

namespace weft::desc {

/// Splits axes of a plan without entries, so that the search may give a dimension part of an axis.
/// In this order, as long as the mesh has at most three parts, because the search's time grows by a
/// factor with each:
///   - at the border of a node, so that some collectives stay within nodes: 64 ranks on nodes of 8
///     are 8x8;
///   - within a node, where a rank computes fewer heads if one part cuts key and value heads and
///     the other the query heads that share one (waysOfHeads);
///   - the largest axis or part, from 12 ranks, into two parts as equal as possible: variables may
///     then be sharded over one part and copied over the other.
/// Of Llama-3 70B on 1,024 H100 (dp=128,tp=8, 4,096 tokens x 1,024), the plan found on dp=8x16 is
/// predicted to be 17 % faster than the one found on dp=128; of Llama-3 8B on 96, the one on
/// dp=3x4x8 3.6 % faster than on dp=12x8.
///
/// Leaves a mesh alone that is split already. Safe to call from any thread.
PlanSpec splitForSearch(const PlanSpec &plan, const ModelSpec &model, const MachineSpec &machine);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_SPLITFORSEARCH_H
