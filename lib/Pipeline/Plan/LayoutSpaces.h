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

#include <set>

namespace weft {

/// The layouts of tensors of all ranks on one mesh, and which of them a search considers.
///
/// Options grow by a factor with each part of the mesh: an op with five factors has 7,776 on five
/// parts. So on more than `kMostFreeParts` parts a search considers only what gives neighboring
/// parts the same use: two runs of parts with any border between them, or three runs with fixed
/// borders, at axes where the mesh has up to three. Where pins allow none of these, the parts that
/// they place are free.
///
///     a  b  c:(1)2  c:(2)2  d       batch batch batch tokens tokens     two runs
///     └──┘  └────────────┘  └┘      batch batch heads heads  tokens     three runs
class LayoutSpaces {
public:
  explicit LayoutSpaces(MeshAttr mesh);

  static constexpr size_t kMostFreeParts = 4;

  /// Returns true if a search considers all options.
  bool areAllSearched() const { return firstOfRun.empty(); }
  /// Returns true if a search considers options that use each part of the mesh as `uses` says.
  /// Parts in `pinned` may be used in any way.
  bool isSearched(llvm::ArrayRef<uint32_t> uses, llvm::ArrayRef<uint32_t> pinned = {}) const;
  bool isSearched(const planner::Layout &layout, llvm::ArrayRef<uint32_t> pinned = {}) const;

  /// Lets searches consider these layouts of a rank too, as pins ask for them: those that they do
  /// not consider anyway, perhaps with axes in another order than the mesh's.
  void add(int64_t rank, llvm::ArrayRef<uint32_t> layouts);
  /// Returns all layouts of a rank that values may have in a search, ascending. The list only
  /// grows.
  const std::vector<uint32_t> &searched(int64_t rank);
  /// Returns those of `layouts` of a rank that a search considers or, if it considers none, those
  /// that it does where parts in `pinned` may be used in any way.
  std::vector<uint32_t> searchedOf(int64_t rank, llvm::ArrayRef<uint32_t> layouts,
                                   llvm::ArrayRef<uint32_t> pinned);

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
  /// For each part the first part of its run, if borders are fixed; empty if all is searched.
  llvm::SmallVector<uint32_t> firstOfRun;
  std::map<int64_t, std::set<uint32_t>> added;
  std::map<int64_t, std::vector<uint32_t>> searchedOfRank;
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
