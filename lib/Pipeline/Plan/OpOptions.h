//===- OpOptions.h - every way in which an op can be sharded --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H
#define WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H

#include "InferShardings.h"

#include <string>

namespace weft {

/// One way to shard an op.
struct OpOption : OpShardings {
  /// What each axis does, as "dp:a tp:pending".
  std::string name;
  /// Ranks that compute different parts of the op; the rest do the same as others.
  int64_t parts = 1;
};

/// All options of `op`, from its factor rule: each axis of the mesh cuts a factor that it divides,
/// or carries a pending sum through operands that the op is additive in, or does nothing. The first
/// does nothing on all axes. Several axes on one factor stand in the order of the mesh.
llvm::SmallVector<OpOption> enumerateOptions(ShardableOpInterface op, MeshAttr mesh);

/// All ways in which a value of `type` can lie, in the same sense; pending sums only if `pending`.
llvm::SmallVector<ShardingAttr> enumerateLayouts(mlir::RankedTensorType type, MeshAttr mesh,
                                                 bool pending);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_OPOPTIONS_H
