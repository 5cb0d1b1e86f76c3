//===- RankNumbers.cpp - one number for each rank ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankNumbers.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace mlir;

namespace weft::meaning {

/// The last axis varies fastest.
RankNumbers::RankNumbers(MeshAttr mesh, int64_t microBatches) : mesh(mesh), ranks(microBatches) {
  for (int64_t size : mesh ? mesh.getSizes() : ArrayRef<int64_t>()) {
    ranks *= size;
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    SmallVector<int64_t> at(mesh ? mesh.getSizes().size() : 0);
    int64_t rest = rank;
    for (size_t axis = mesh ? at.size() : 0; axis-- > 0;) {
      at[axis] = rest % mesh.getSizes()[axis];
      rest /= mesh.getSizes()[axis];
    }
    at.push_back(rest); // The micro-batch.
    coordinates.push_back(std::move(at));
  }
}

uint32_t RankNumbers::once(Key key, llvm::function_ref<uint32_t()> make) {
  auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, make()).first->second;
}

uint32_t RankNumbers::constant(int64_t value) {
  return once({0, 0, 0, value}, [&] { return of(std::vector<int64_t>(ranks, value)); });
}

std::pair<int64_t, int64_t> RankNumbers::boundsOf(uint32_t number) {
  if (bounds.size() <= number) {
    bounds.resize(rows.size());
  }
  if (!bounds[number]) {
    auto [least, greatest] = std::minmax_element(values(number).begin(), values(number).end());
    bounds[number] = {*least, *greatest};
  }
  return *bounds[number];
}

std::optional<int64_t> RankNumbers::asConstant(uint32_t number) {
  auto [least, greatest] = boundsOf(number);
  return least == greatest ? std::optional(least) : std::nullopt;
}

int64_t RankNumbers::greatest(uint32_t number) { return boundsOf(number).second; }

uint32_t RankNumbers::microBatch() {
  return once({6, 0, 0, 0}, [&] {
    std::vector<int64_t> numbers(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      numbers[rank] = coordinates[rank].back();
    }
    return of(numbers);
  });
}

uint32_t RankNumbers::add(uint32_t left, uint32_t right, int64_t factor) {
  return once({1, left, right, factor}, [&] {
    std::vector<int64_t> sums(values(left));
    for (auto [sum, more] : llvm::zip_equal(sums, values(right))) {
      sum += more * factor;
    }
    return of(sums);
  });
}

uint32_t RankNumbers::multiply(uint32_t left, uint32_t right) {
  return once({2, left, right, 0}, [&] {
    std::vector<int64_t> products(values(left));
    for (auto [product, more] : llvm::zip_equal(products, values(right))) {
      product *= more;
    }
    return of(products);
  });
}

std::optional<uint32_t> RankNumbers::divide(uint32_t number, int64_t divisor) {
  if (llvm::any_of(values(number), [&](int64_t value) { return value % divisor != 0; })) {
    return std::nullopt;
  }
  return once({3, number, 0, divisor}, [&] {
    std::vector<int64_t> parts(values(number));
    for (int64_t &part : parts) {
      part /= divisor;
    }
    return of(parts);
  });
}

std::optional<uint32_t> RankNumbers::coordinate(StringAttr axis) {
  return shard(ArrayAttr::get(axis.getContext(), {axis}));
}

std::optional<uint32_t> RankNumbers::shard(ArrayAttr axes) {
  if (axes.empty()) {
    return constant(0);
  }
  const Groups *found = groups(axes);
  return found ? std::optional(places(*found)) : std::nullopt;
}

const Groups *RankNumbers::groups(ArrayAttr axes) {
  auto found = groupsOf.find(axes.getAsOpaquePointer());
  if (found != groupsOf.end()) {
    return &found->second;
  }
  SmallVector<size_t> varying;
  for (Attribute axis : axes) {
    ArrayRef<StringAttr> names = mesh ? mesh.getNames() : ArrayRef<StringAttr>();
    const auto *place = llvm::find(names, axis);
    if (place == names.end() || llvm::is_contained(varying, size_t(place - names.begin()))) {
      return nullptr;
    }
    varying.push_back(place - names.begin());
  }
  Groups made;
  made.number = static_cast<uint32_t>(groupsOf.size());
  made.groupOf.resize(ranks);
  made.placeOf.resize(ranks);
  std::map<std::vector<int64_t>, int64_t> groupWith;
  int64_t size = 1;
  for (size_t axis : varying) {
    size *= mesh.getSizes()[axis];
  }
  for (int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<int64_t> others(coordinates[rank].begin(), coordinates[rank].end());
    int64_t place = 0;
    for (size_t axis : varying) {
      place = place * mesh.getSizes()[axis] + coordinates[rank][axis];
      others[axis] = 0;
    }
    auto [group, isNew] = groupWith.try_emplace(others, int64_t(groupWith.size()));
    if (isNew) {
      made.ranksOf.emplace_back(size);
    }
    made.groupOf[rank] = group->second;
    made.placeOf[rank] = place;
    made.ranksOf[group->second][place] = rank;
  }
  return &groupsOf.emplace(axes.getAsOpaquePointer(), std::move(made)).first->second;
}

uint32_t RankNumbers::fromPlaces(uint32_t number, const Groups &groups, uint32_t key,
                                 llvm::function_ref<int64_t(int64_t)> place) {
  return once({4, number, key, groups.number}, [&] {
    std::vector<int64_t> moved(ranks);
    for (int64_t rank = 0; rank < ranks; ++rank) {
      int64_t source = groups.ranksOf[groups.groupOf[rank]][place(groups.placeOf[rank])];
      moved[rank] = values(number)[source];
    }
    return of(moved);
  });
}

bool RankNumbers::isEqualIn(uint32_t number, const Groups &groups) {
  return risesIn(number, groups, 0);
}

bool RankNumbers::risesIn(uint32_t number, const Groups &groups, int64_t step) {
  return once({5, number, groups.number, step}, [&] {
           ArrayRef<int64_t> all = values(number);
           for (int64_t rank = 0; rank < ranks; ++rank) {
             int64_t first = all[groups.ranksOf[groups.groupOf[rank]].front()];
             if (all[rank] != first + groups.placeOf[rank] * step) {
               return 0U;
             }
           }
           return 1U;
         }) != 0;
}

} // namespace weft::meaning
