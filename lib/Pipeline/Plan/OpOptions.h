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
  /// The assignments of all axes: "dp:a tp:pending".
  std::string name;
  /// For each factor, the number of parts that axes cut it into.
  llvm::SmallVector<int64_t, 8> parts;
  /// The layout of each operand and result, as a number in the space of its rank; 0 if it is no
  /// tensor.
  llvm::SmallVector<uint32_t, 8> operands, results;
};

/// Returns all options of `op`, from its factor rule: each axis of the mesh cuts a factor that it
/// divides, or carries a pending sum through operands that the op is additive in, or does nothing.
/// In the first option all axes do nothing. An axis may cut a permuted factor together with its
/// partner. Several axes of one factor stand in the order of the mesh. A pinned factor is cut by
/// the pinned axes only, in their order. Pins that contradict each other are ignored.
std::vector<OpOption> enumerateOptions(ShardableOpInterface op, LayoutSpaces &spaces);

/// Returns all layouts of a value of `type` whose axes stand in the order of the mesh; those of
/// pending sums only if `pending` is true. `pins`, which may be null, has for each dimension the
/// axes that cut it, in the order of the pin, or unit; then perhaps a dictionary, in which `all`
/// has axes over which a sum is pending, unless they cut a dimension.
std::vector<uint32_t> enumerateLayouts(mlir::RankedTensorType type, LayoutSpaces &spaces,
                                       bool pending, mlir::ArrayAttr pins = {});

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H
