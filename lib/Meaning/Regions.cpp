//===- Regions.cpp - which summands each rank has ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Regions.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace llvm;

namespace weft::meaning {

namespace {
using Box = std::vector<int64_t>;

bool overlap(const Box &one, const Box &other) {
  for (size_t index = 0; index < one.size(); index += 2) {
    if (one[index + 1] <= other[index] || other[index + 1] <= one[index]) {
      return false;
    }
  }
  return true;
}

bool contains(const Box &outer, const Box &inner) {
  for (size_t index = 0; index < outer.size(); index += 2) {
    if (inner[index] < outer[index] || inner[index + 1] > outer[index + 1]) {
      return false;
    }
  }
  return true;
}

/// Joins boxes that differ only in one index and are neighbours there. Returns true if some were.
bool joinAlong(std::vector<Box> &boxes, size_t index) {
  auto others = [&](const Box &box) {
    Box rest = box;
    rest.erase(rest.begin() + ptrdiff_t(index), rest.begin() + ptrdiff_t(index) + 2);
    return rest;
  };
  std::map<Box, std::vector<std::pair<int64_t, int64_t>>> rows;
  for (const Box &box : boxes) {
    rows[others(box)].push_back({box[index], box[index + 1]});
  }
  std::vector<Box> joined;
  for (auto &[rest, intervals] : rows) {
    llvm::sort(intervals);
    for (size_t next = 0; next < intervals.size();) {
      auto [first, end] = intervals[next++];
      while (next < intervals.size() && intervals[next].first <= end) {
        end = std::max(end, intervals[next++].second);
      }
      Box box = rest;
      box.insert(box.begin() + ptrdiff_t(index), {first, end});
      joined.push_back(std::move(box));
    }
  }
  bool isLess = joined.size() < boxes.size();
  boxes = std::move(joined);
  return isLess;
}
} // namespace

std::vector<Box> Regions::boxesOf(uint32_t region) const {
  ArrayRef<int64_t> row = rows[region];
  std::vector<Box> boxes;
  for (size_t at = 1; at < row.size(); at += 2 * size_t(row.front())) {
    ArrayRef<int64_t> box = row.slice(at, 2 * size_t(row.front()));
    boxes.emplace_back(box.begin(), box.end());
  }
  return boxes;
}

uint32_t Regions::numberOf(int64_t indices, std::vector<Box> boxes) {
  for (bool isLess = true; isLess;) {
    isLess = false;
    for (int64_t index = 0; index < indices; ++index) {
      isLess |= joinAlong(boxes, size_t(2 * index));
    }
  }
  llvm::sort(boxes);
  std::vector<int64_t> row = {indices};
  for (const Box &box : boxes) {
    row.insert(row.end(), box.begin(), box.end());
  }
  return rows.numberOf(row);
}

uint32_t Regions::box(ArrayRef<std::pair<int64_t, int64_t>> intervals) {
  Box box;
  for (auto [first, end] : intervals) {
    if (first >= end) {
      return empty(int64_t(intervals.size()));
    }
    box.push_back(first);
    box.push_back(end);
  }
  return numberOf(int64_t(intervals.size()), {box});
}

uint32_t Regions::empty(int64_t indices) { return rows.numberOf({indices}); }

uint32_t Regions::product(uint32_t left, uint32_t right) {
  auto found = products.find({left, right});
  if (found != products.end()) {
    return found->second;
  }
  std::vector<Box> boxes;
  for (const Box &one : boxesOf(left)) {
    for (const Box &other : boxesOf(right)) {
      Box box = one;
      box.insert(box.end(), other.begin(), other.end());
      boxes.push_back(std::move(box));
    }
  }
  uint32_t number = numberOf(indicesOf(left) + indicesOf(right), std::move(boxes));
  products.insert({{left, right}, number});
  return number;
}

std::optional<uint32_t> Regions::join(ArrayRef<uint32_t> parts, bool mustBeDisjoint) {
  std::pair<bool, std::vector<uint32_t>> key(mustBeDisjoint, parts.vec());
  auto found = joins.find(key);
  if (found != joins.end()) {
    return found->second;
  }
  std::vector<Box> all;
  bool isFine = true;
  for (uint32_t part : parts) {
    for (Box &box : boxesOf(part)) {
      all.push_back(std::move(box));
    }
  }
  // Sorted by the first index, a box overlaps only with those that begin before it ends.
  llvm::sort(all);
  std::vector<Box> kept;
  for (size_t one = 0; one < all.size() && isFine; ++one) {
    bool isCovered = false;
    for (size_t other = one + 1;
         other < all.size() && isFine && all[one].size() && all[other][0] < all[one][1]; ++other) {
      if (!overlap(all[one], all[other])) {
        continue;
      }
      // A maximum may count an element twice. Partly overlapping boxes do not occur.
      isFine =
          !mustBeDisjoint && (contains(all[other], all[one]) || contains(all[one], all[other]));
      isCovered |= contains(all[other], all[one]);
    }
    if (!isCovered) {
      bool isKnown = llvm::any_of(kept, [&](const Box &box) { return contains(box, all[one]); });
      isKnown ? void() : kept.push_back(all[one]);
    }
  }
  std::optional<uint32_t> result;
  if (isFine) {
    result = numberOf(parts.empty() ? 0 : indicesOf(parts.front()), std::move(kept));
  }
  joins.insert({std::move(key), result});
  return result;
}

} // namespace weft::meaning
