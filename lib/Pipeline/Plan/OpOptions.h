//===- OpOptions.h - every way in which an op can be sharded --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H
#define WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H

#include "LayoutSpaces.h"

#include <string>

namespace weft {

/// One way to shard an op.
struct OpOption {
  /// What each axis does, as "dp:a tp:pending".
  std::string name;
  /// For each factor, the parts that axes cut it into.
  llvm::SmallVector<int64_t, 8> parts;
  /// The layout of each operand and result, as a number in the space of its rank; 0 where it is no
  /// tensor.
  llvm::SmallVector<uint32_t, 8> operands, results;
};

/// All options of `op`, from its factor rule: each axis of the mesh cuts a factor that it divides,
/// or carries a pending sum through operands that the op is additive in, or does nothing. The first
/// does nothing on all axes. An axis may cut a permutation beside its partner. Several axes on one
/// factor stand in the order of the mesh. Where the op has pins, a pinned factor is cut by its
/// axes, in their order, and by no others. Pins that contradict each other count for nothing.
std::vector<OpOption> enumerateOptions(ShardableOpInterface op, LayoutSpaces &spaces);

/// All ways in which a value of `type` can lie, in the same sense; pending sums only if `pending`.
std::vector<uint32_t> enumerateLayouts(mlir::RankedTensorType type, LayoutSpaces &spaces,
                                       bool pending);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H
