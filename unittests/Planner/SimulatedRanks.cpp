//===- SimulatedRanks.cpp - shards of ranks, elementwise ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SimulatedRanks.h"

#include <algorithm>
#include <numeric>

namespace weft::planner {

namespace {

using Coordinates = std::vector<int64_t>;

int64_t rankCount(const std::vector<int64_t> &mesh) {
  return std::accumulate(mesh.begin(), mesh.end(), int64_t(1), std::multiplies<>());
}

Coordinates coordinatesOf(const std::vector<int64_t> &mesh, int64_t rank) {
  Coordinates coordinates(mesh.size());
  for (size_t axis = mesh.size(); axis-- > 0;) {
    coordinates[axis] = rank % mesh[axis];
    rank /= mesh[axis];
  }
  return coordinates;
}

int64_t rankAt(const std::vector<int64_t> &mesh, const Coordinates &coordinates) {
  int64_t rank = 0;
  for (size_t axis = 0; axis < mesh.size(); ++axis) {
    rank = rank * mesh[axis] + coordinates[axis];
  }
  return rank;
}

/// The ranks of the group of `rank` over `axes`, in order, the first axis major.
std::vector<int64_t> groupOf(const std::vector<int64_t> &mesh, int64_t rank, const Axes &axes) {
  std::vector<Coordinates> members = {coordinatesOf(mesh, rank)};
  for (uint32_t axis : axes) {
    std::vector<Coordinates> longer;
    for (Coordinates member : members) {
      for (member[axis] = 0; member[axis] < mesh[axis]; ++member[axis]) {
        longer.push_back(member);
      }
    }
    members = longer;
  }
  std::vector<int64_t> ranks;
  for (const Coordinates &member : members) {
    ranks.push_back(rankAt(mesh, member));
  }
  return ranks;
}

Shard transposed(const Shard &shard) {
  Shard result(shard.empty() ? 0 : shard.front().size());
  for (const auto &row : shard) {
    for (size_t column = 0; column < row.size(); ++column) {
      result[column].push_back(row[column]);
    }
  }
  return result;
}

/// Part `index` of `parts` along `dim`; nothing if that is no whole number of elements.
std::optional<Shard> part(const Shard &shard, uint32_t dim, size_t index, size_t parts) {
  if (dim == 1) {
    auto rows = part(transposed(shard), 0, index, parts);
    return rows ? std::optional(transposed(*rows)) : std::nullopt;
  }
  if (shard.size() % parts != 0) {
    return std::nullopt;
  }
  size_t length = shard.size() / parts;
  return Shard(shard.begin() + index * length, shard.begin() + (index + 1) * length);
}

Shard joined(const std::vector<Shard> &shards, uint32_t dim) {
  Shard result;
  for (const Shard &shard : shards) {
    Shard rows = dim == 1 ? transposed(shard) : shard;
    result.insert(result.end(), rows.begin(), rows.end());
  }
  return dim == 1 ? transposed(result) : result;
}

Shard sum(const std::vector<Shard> &shards) {
  Shard result = shards.front();
  for (size_t other = 1; other < shards.size(); ++other) {
    for (size_t row = 0; row < result.size(); ++row) {
      for (size_t column = 0; column < result[row].size(); ++column) {
        Cell &cell = result[row][column];
        const Cell &more = shards[other][row][column];
        cell.row = more.row == cell.row ? cell.row : -2; // Apples and oranges equal nothing.
        cell.column = more.column == cell.column ? cell.column : -2;
        cell.terms.insert(more.terms.begin(), more.terms.end());
      }
    }
  }
  return result;
}

/// Returns the shard that rank `self` of a group gets, from the shards of all its ranks.
std::optional<Shard> receive(const Step &step, const std::vector<Shard> &held, size_t self) {
  size_t ranks = held.size();
  switch (step.kind) {
  case StepKind::AllReduce:
    return sum(held);
  case StepKind::ReduceScatter:
    return part(sum(held), step.dim, self, ranks);
  case StepKind::AllGather:
    return joined(held, step.dim);
  case StepKind::AllToAll: {
    std::vector<Shard> parts;
    for (const Shard &shard : held) {
      auto mine = part(shard, step.otherDim, self, ranks);
      if (!mine) {
        return std::nullopt;
      }
      parts.push_back(*mine);
    }
    return joined(parts, step.dim);
  }
  case StepKind::Slice:
    return part(held[self], step.dim, self, ranks);
  case StepKind::Partial: {
    Shard shard = held[self];
    for (auto &row : shard) {
      for (Cell &cell : row) {
        cell.terms = self == 0 ? cell.terms : decltype(cell.terms)();
      }
    }
    return shard;
  }
  case StepKind::Permute:
    break;
  }
  return std::nullopt;
}

} // namespace

Ranks hold(const std::vector<int64_t> &mesh, const std::vector<int64_t> &shape,
           const Layout &layout, const Axes &terms) {
  Ranks ranks;
  for (int64_t rank = 0; rank < rankCount(mesh); ++rank) {
    Coordinates coordinates = coordinatesOf(mesh, rank);
    int64_t begin[2], length[2];
    for (size_t dim = 0; dim < 2; ++dim) {
      int64_t index = 0;
      length[dim] = shape[dim];
      for (uint32_t axis : layout.dims[dim]) {
        index = index * mesh[axis] + coordinates[axis];
        length[dim] /= mesh[axis];
      }
      begin[dim] = index * length[dim];
    }
    // One term for each pending axis, all of them for the others.
    std::multiset<Coordinates> held;
    for (int64_t other = 0; other < rankCount(mesh); ++other) {
      Coordinates term = coordinatesOf(mesh, other);
      bool counts = true;
      for (uint32_t axis = 0; axis < mesh.size(); ++axis) {
        bool isTerm = std::find(terms.begin(), terms.end(), axis) != terms.end();
        bool pends = std::find(layout.unreduced.begin(), layout.unreduced.end(), axis) !=
                     layout.unreduced.end();
        counts &= (isTerm || term[axis] == 0) && (!pends || term[axis] == coordinates[axis]);
      }
      if (counts) {
        held.insert(term);
      }
    }
    Shard shard;
    for (int64_t row = 0; row < length[0]; ++row) {
      shard.emplace_back();
      for (int64_t column = 0; column < length[1]; ++column) {
        shard.back().push_back({begin[0] + row, begin[1] + column, held});
      }
    }
    ranks.push_back(std::move(shard));
  }
  return ranks;
}

std::optional<Ranks> perform(const std::vector<int64_t> &mesh, const Ranks &ranks,
                             const Layout &from, const Step &step) {
  Ranks result;
  std::vector<uint32_t> sources;
  if (step.kind == StepKind::Permute) {
    sources = permutationSources(mesh, step.axes, from, step.to);
    std::vector<uint32_t> sorted = sources;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      return std::nullopt; // Some rank would send twice.
    }
  }
  for (int64_t rank = 0; rank < int64_t(ranks.size()); ++rank) {
    std::vector<int64_t> group = groupOf(mesh, rank, step.axes);
    size_t self = size_t(std::find(group.begin(), group.end(), rank) - group.begin());
    std::vector<Shard> held;
    for (int64_t member : group) {
      held.push_back(ranks[size_t(member)]);
    }
    auto shard = step.kind == StepKind::Permute ? std::optional(held[sources[self]])
                                                : receive(step, held, self);
    if (!shard) {
      return std::nullopt;
    }
    result.push_back(std::move(*shard));
  }
  return result;
}

} // namespace weft::planner
