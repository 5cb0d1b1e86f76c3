//===- RankNumbers.h - one number for each rank -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_MEANING_RANKNUMBERS_H
#define WEFT_LIB_MEANING_RANKNUMBERS_H

#include "Rows.h"

#include "weft/Dialect/Weft/IR/Weft.h"

#include <functional>
#include <map>
#include <optional>
#include <tuple>

namespace weft::meaning {

/// The ranks in groups of equal size, by their coordinates: ranks of a group differ only on some
/// axes. A rank's place in its group is row-major in its coordinates on these axes, in their order.
struct Groups {
  /// Unique among the groups of one RankNumbers.
  uint32_t number;
  /// Of each rank: its group, and its place there.
  std::vector<int64_t> groupOf, placeOf;
  /// Of each group: its ranks by place.
  std::vector<std::vector<int64_t>> ranksOf;

  int64_t size() const { return static_cast<int64_t>(ranksOf.front().size()); }
};

/// Functions from ranks to integers, such as the offset of each rank's shard. Equal functions have
/// one number; results of operations on them are kept, as a program repeats few of them often.
///
/// For several micro-batches at once there are as many copies of the ranks, those of the first
/// micro-batch first: a rank means a rank at its work for one micro-batch.
class RankNumbers {
public:
  /// `mesh` is null for a program of one rank.
  explicit RankNumbers(MeshAttr mesh, int64_t microBatches = 1);

  int64_t rankCount() const { return ranks; }
  MeshAttr getMesh() const { return mesh; }
  uint32_t constant(int64_t value);
  uint32_t of(llvm::ArrayRef<int64_t> values) { return rows.numberOf(values); }
  llvm::ArrayRef<int64_t> values(uint32_t number) const { return rows[number]; }
  /// The value of a function that is the same on all ranks.
  std::optional<int64_t> asConstant(uint32_t number);
  int64_t greatest(uint32_t number);
  /// The micro-batch of each rank.
  uint32_t microBatch();

  /// `left + right * factor`.
  uint32_t add(uint32_t left, uint32_t right, int64_t factor = 1);
  uint32_t multiply(uint32_t left, uint32_t right);
  /// `number / divisor`, or none if that leaves a rest on some rank.
  std::optional<uint32_t> divide(uint32_t number, int64_t divisor);
  /// Coordinates on an axis of the mesh, or none if there is no such axis.
  std::optional<uint32_t> coordinate(mlir::StringAttr axis);
  /// The number of a rank's shard where `axes`, major to minor, cut a dimension.
  std::optional<uint32_t> shard(mlir::ArrayAttr axes);
  /// Null if the mesh has not all the axes.
  const Groups *groups(mlir::ArrayAttr axes);

  /// On each rank the value of the rank of its group at `place(rank's place)`. `key` tells such
  /// functions of places apart.
  uint32_t fromPlaces(uint32_t number, const Groups &groups, uint32_t key,
                      llvm::function_ref<int64_t(int64_t)> place);
  /// True if all ranks of each group have one value.
  bool isEqualIn(uint32_t number, const Groups &groups);
  /// True if in each group the rank at place k has the value of the first plus `k * step`.
  bool risesIn(uint32_t number, const Groups &groups, int64_t step);
  /// The places of ranks in their groups.
  uint32_t places(const Groups &groups) { return of(groups.placeOf); }

private:
  /// Least and greatest value.
  std::pair<int64_t, int64_t> boundsOf(uint32_t number);

  using Key = std::tuple<int, uint32_t, uint32_t, int64_t>;
  uint32_t once(Key key, llvm::function_ref<uint32_t()> make);

  MeshAttr mesh;
  int64_t ranks;
  Rows rows;
  std::map<Key, uint32_t> known;
  std::vector<std::optional<std::pair<int64_t, int64_t>>> bounds;
  std::map<const void *, Groups> groupsOf;
  std::vector<llvm::SmallVector<int64_t>> coordinates;
};

} // namespace weft::meaning

#endif // WEFT_LIB_MEANING_RANKNUMBERS_H
