//===- MeshParts.h - sub-axes of a mesh -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An axis of a mesh may be split into parts, its sub-axes. The eight ranks along "tp" are then
// numbered by two digits, as the ranks of a mesh are by its axes:
//
//   tp              0 1 2 3 4 5 6 7
//   tp:(1)2         0 0 0 0 1 1 1 1     the major part, of two
//   tp:(2)4         0 1 2 3 0 1 2 3     the minor part, of four
//
// "tp:(m)k" is the sub-axis of size k behind parts of together m ranks, in the notation of Shardy
// (openxla/shardy, docs/sharding_representation.md). It lets an axis cut a dimension that has fewer
// elements than the axis has ranks: two key and value heads are cut over tp:(1)2, and replicated or
// cut otherwise over tp:(2)4.
//
// The compiler keeps meshes as lists of parts: a part has a name and a size, and is to every
// algorithm an axis of its own. Only texts that people read and write name the whole axis, or a run
// of parts by one sub-axis.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_MESH_MESHPARTS_H
#define WEFT_MESH_MESHPARTS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A run of parts of an axis, "tp:(2)4".
struct SubAxis {
  std::string axis;
  /// The product of the sizes of all parts before it.
  int64_t before = 1;
  int64_t size = 1;

  std::string name() const;
};

/// Returns the sub-axis that `name` spells; nothing if `name` is not of the form AXIS:(BEFORE)SIZE,
/// with numbers from 1 to 2^20.
std::optional<SubAxis> parseSubAxis(std::string_view name);

/// An axis and the sizes of its parts, major to minor; one part if it is not split.
struct SplitAxis {
  std::string name;
  std::vector<int64_t> parts;

  /// The product of the parts' sizes.
  int64_t size() const;
  /// The parts as sub-axes.
  std::vector<SubAxis> subAxes() const;
  /// The names of the parts; one part has the axis's own name.
  std::vector<std::string> partNames() const;
};

/// The parts of a mesh's axes, major to minor. A plain value.
class MeshParts {
public:
  /// The parts by their names and sizes, as `partNames` spells them: a part that no neighbor
  /// continues is an axis of its own.
  MeshParts(std::vector<std::string> names, std::vector<int64_t> sizes);

  explicit MeshParts(std::vector<SplitAxis> axes = {});

  /// The axes with their parts.
  const std::vector<SplitAxis> &axes() const { return split; }

  /// Returns the names that parts of these sizes have: "dp", "tp:(1)2", "tp:(2)4".
  std::vector<std::string> partNames() const;

  /// Returns the sizes of all parts.
  std::vector<int64_t> partSizes() const;

  /// Returns the parts that `name` stands for: an axis, a part, or a run of parts. Returns nothing
  /// if it is unknown, or begins or ends within a part.
  std::optional<std::vector<std::string>> partsOf(std::string_view name) const;

  /// Returns the fewest names for a list of parts: an axis for all its parts in a row, a sub-axis
  /// for some. Leaves other names as they are.
  std::vector<std::string> join(const std::vector<std::string> &parts) const;

  /// Returns the joined names of a list of parts, axes with their sizes: "dp=2, tp:(2)4".
  std::string sized(const std::vector<std::string> &parts, std::string_view separator) const;

  /// "dp=2 tp=2x4": all axes with the sizes of their parts.
  std::string text() const;

private:
  /// Returns the axis of that name, or null.
  const SplitAxis *find(std::string_view name) const;

  std::vector<SplitAxis> split;
};

} // namespace weft

#endif // WEFT_MESH_MESHPARTS_H
