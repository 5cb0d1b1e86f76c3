//===- Views.cpp - parts of reductions --------------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Evaluation.h"

using namespace mlir;

namespace weft::meaning {

/// Each rank's region of the indices along `dims`, without padding.
uint32_t Evaluation::regionsOf(ArrayRef<Dim> dims) {
  RegionKey key = {0};
  for (const Dim &dim : dims) {
    key.insert(key.end(), {dim.start, dim.length, dim.lastPlace()});
  }
  return *once(std::move(key), [&]() -> std::optional<uint32_t> { return makeRegions(dims); });
}

uint32_t Evaluation::makeRegions(ArrayRef<Dim> dims) {
  std::vector<int64_t> numbers(ranks.rankCount());
  for (int64_t rank = 0; rank < ranks.rankCount(); ++rank) {
    SmallVector<std::pair<int64_t, int64_t>> box;
    for (const Dim &dim : dims) {
      int64_t start = ranks.values(dim.start)[rank];
      box.push_back({start, std::min(start + dim.length, dim.lastPlace())});
    }
    numbers[rank] = regions.box(box);
  }
  return ranks.of(numbers);
}

uint32_t Evaluation::multiplyRegions(uint32_t left, uint32_t right) {
  return *once({1, left, right}, [&]() -> std::optional<uint32_t> {
    std::vector<int64_t> numbers(ranks.rankCount());
    for (int64_t rank = 0; rank < ranks.rankCount(); ++rank) {
      numbers[rank] =
          regions.product(uint32_t(ranks.values(left)[rank]), uint32_t(ranks.values(right)[rank]));
    }
    return ranks.of(numbers);
  });
}

std::optional<uint32_t> Evaluation::joinRegions(ArrayRef<uint32_t> parts, bool mustBeDisjoint) {
  RegionKey key = {2, mustBeDisjoint};
  llvm::append_range(key, parts);
  return once(std::move(key), [&] { return makeJoined(parts, mustBeDisjoint); });
}

std::optional<uint32_t> Evaluation::makeJoined(ArrayRef<uint32_t> parts, bool mustBeDisjoint) {
  std::vector<int64_t> numbers(ranks.rankCount());
  for (int64_t rank = 0; rank < ranks.rankCount(); ++rank) {
    SmallVector<uint32_t> own;
    for (uint32_t part : parts) {
      own.push_back(uint32_t(ranks.values(part)[rank]));
    }
    std::optional<uint32_t> joined = regions.join(own, mustBeDisjoint);
    if (!joined) {
      return std::nullopt;
    }
    numbers[rank] = *joined;
  }
  return ranks.of(numbers);
}

bool Evaluation::isComplete(const View &view) {
  std::optional<int64_t> region = ranks.asConstant(view.regions);
  if (!region) {
    return false;
  }
  SmallVector<std::pair<int64_t, int64_t>> box;
  for (int64_t extent : view.extents) {
    box.push_back({0, extent});
  }
  return *region == int64_t(regions.box(box));
}

SmallVector<View, 1> Evaluation::withoutComplete(ArrayRef<View> views) {
  SmallVector<View, 1> left;
  for (const View &view : views) {
    if (!isComplete(view) && !llvm::is_contained(left, view)) {
      left.push_back(view);
    }
  }
  return left;
}

/// Each rank gets what all ranks of its group have. None if a sum would count something twice.
std::optional<SmallVector<View, 1>> Evaluation::reduceViews(ArrayRef<View> views,
                                                            const Groups &groups, bool isSum) {
  SmallVector<View, 1> reduced(views);
  for (View &view : reduced) {
    std::optional<uint32_t> joined = once({3, view.regions, groups.number, isSum},
                                          [&] { return makeReduced(view.regions, groups, isSum); });
    if (!joined) {
      return std::nullopt;
    }
    view.regions = *joined;
  }
  return withoutComplete(reduced);
}

std::optional<uint32_t> Evaluation::makeReduced(uint32_t number, const Groups &groups, bool isSum) {
  std::vector<int64_t> numbers(ranks.rankCount());
  for (ArrayRef<int64_t> group : groups.ranksOf) {
    SmallVector<uint32_t> parts;
    for (int64_t rank : group) {
      parts.push_back(uint32_t(ranks.values(number)[rank]));
    }
    std::optional<uint32_t> joined = regions.join(parts, isSum);
    if (!joined) {
      return std::nullopt;
    }
    for (int64_t rank : group) {
      numbers[rank] = *joined;
    }
  }
  return ranks.of(numbers);
}

/// The views of a sum of two parts of one term.
std::optional<SmallVector<View, 1>> Evaluation::uniteViews(ArrayRef<View> left,
                                                           ArrayRef<View> right, bool isSum) {
  if (left.size() != right.size()) {
    return std::nullopt;
  }
  SmallVector<View, 1> united(left);
  for (auto [view, other] : llvm::zip_equal(united, right)) {
    std::optional<uint32_t> joined;
    if (view.isLike(other)) {
      joined = joinRegions({view.regions, other.regions}, isSum);
    }
    if (!joined) {
      return std::nullopt;
    }
    view.regions = *joined;
  }
  return withoutComplete(united);
}

} // namespace weft::meaning
