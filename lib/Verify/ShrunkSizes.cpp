//===- ShrunkSizes.cpp - small sizes that divide as the large ones do -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShrunkSizes.h"

#include <algorithm>
#include <numeric>

namespace weft::verify {

/// What is no larger need not be smaller.
static constexpr int64_t kSmall = 64;

ShrunkSizes::ShrunkSizes(const std::vector<desc::AxisSpec> &large,
                         const std::vector<desc::AxisSpec> &small) {
  products.insert({1, 1});
  for (size_t i = 0; i < large.size(); ++i) {
    std::set<std::pair<int64_t, int64_t>> more;
    for (auto [before, after] : products) {
      more.insert({before * large[i].size, after * small[i].size});
    }
    products.merge(more);
  }
}

bool ShrunkSizes::fits(int64_t size, int64_t chosen, bool exactly) const {
  return std::all_of(products.begin(), products.end(), [&](auto product) {
    bool divided = size % product.first == 0, divides = chosen % product.second == 0;
    return divides == divided || (divides && !exactly);
  });
}

bool ShrunkSizes::dividesAlike(int64_t size, int64_t chosen) const {
  return fits(size, chosen, true);
}

int64_t ShrunkSizes::choose(int64_t size, int64_t least, int64_t multipleOf, bool halves) {
  const Products before = products;
  if (halves) {
    for (auto [large, small] : before) {
      products.insert({2 * large, 2 * small});
    }
  }
  int64_t chosen = chooseBy(size, least, multipleOf);
  products = before;
  return chosen;
}

int64_t ShrunkSizes::chooseBy(int64_t size, int64_t least, int64_t multipleOf) {
  int64_t step = multipleOf, most = 1;
  for (auto [before, after] : products) {
    if (size % before == 0) {
      step = std::lcm(step, after);
      most = std::max(most, after);
    }
  }
  // Two elements on each rank, that one for another be a mistake that shows; at worst a small size
  // that stays as it is, and at the very worst one that more axes divide than should.
  int64_t chosen = find(size, std::max(least, 2 * most), step, true);
  chosen = chosen > 0 ? chosen : find(size, least, step, true);
  chosen = chosen > 0 || size <= kSmall ? chosen : find(size, least, step, false);
  chosen = chosen > 0 ? chosen : size;
  taken.insert(chosen);
  return chosen;
}

int64_t ShrunkSizes::find(int64_t size, int64_t least, int64_t step, bool exactly) const {
  // Enough multiples to miss what must not divide, and what is taken.
  constexpr int64_t tries = 64;
  int64_t chosen = (least + step - 1) / step * step;
  for (int64_t i = 0; i < tries && chosen < size; ++i, chosen += step) {
    if (!taken.count(chosen) && fits(size, chosen, exactly)) {
      return chosen;
    }
  }
  return 0;
}

} // namespace weft::verify
