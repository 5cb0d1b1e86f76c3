//===- LayoutSpaces.h - shardings as numbers ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_PIPELINE_PLAN_LAYOUTSPACES_H
#define WEFT_LIB_PIPELINE_PLAN_LAYOUTSPACES_H

#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Planner/LayoutSpace.h"

namespace weft {

/// The layouts of tensors of all ranks on one mesh.
class LayoutSpaces {
public:
  explicit LayoutSpaces(MeshAttr mesh) : mesh(mesh) {}

  planner::LayoutSpace &ofRank(int64_t rank);
  planner::LayoutSpace &of(mlir::Type type) {
    return ofRank(mlir::cast<mlir::RankedTensorType>(type).getRank());
  }

  uint32_t numberOf(ShardingAttr sharding);
  /// The sharding of layout `number`; `reduction` is that of pending values.
  ShardingAttr sharding(int64_t rank, uint32_t number, ReductionKind reduction);

  MeshAttr getMesh() const { return mesh; }

private:
  ShardingAttr makeSharding(int64_t rank, uint32_t number, ReductionKind reduction);

  const MeshAttr mesh;
  std::map<int64_t, planner::LayoutSpace> spaces;
  std::map<std::tuple<int64_t, uint32_t, ReductionKind>, ShardingAttr> shardings;
};

/// Returns true if a value of `type` may be a pending sum.
bool canPend(mlir::Type type);

/// Returns true if dimension `dim` of `variable` may be cut between steps. The runtime can give
/// ranks shards of an input's samples and tokens, but only whole images.
bool mayBeCut(VariableOp variable, int64_t dim);

} // namespace weft

#endif // WEFT_LIB_PIPELINE_PLAN_LAYOUTSPACES_H
