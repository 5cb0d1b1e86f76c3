//===- ShrunkSizes.cpp - small sizes with the divisibilities of large ones -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShrunkSizes.h"

#include <algorithm>
#include <numeric>

namespace weft::verify {

/// Sizes up to this need not become smaller.
static constexpr int64_t kSmall = 64;

/// Returns true if inputs have the dimension.
static bool isOfInputs(const std::string &name) { return name == "batch" || name == "sequence"; }

ShrunkSizes::ShrunkSizes(const desc::PlanSpec &large, const desc::PlanSpec &small)
    : large(large), small(small) {
  products.insert({1, 1});
  for (size_t i = 0; i < large.mesh.size(); ++i) {
    std::set<Product> more;
    for (auto [before, after] : products) {
      more.insert({before * large.mesh[i].size, after * small.mesh[i].size});
    }
    products.merge(more);
  }
}

/// Finds the cuts like pad-dimensions: by any sharding that names the dimension, and if these pad
/// it, by homes too. Other homes pad variables alone.
ShrunkSizes::Cuts ShrunkSizes::cutsOf(const LargeDimension &dimension) const {
  Cuts cuts;
  for (const auto *entries : {&large.shardings, &large.homes}) {
    bool areHomes = entries == &large.homes;
    if (areHomes && dimension.size % cuts.unit.first == 0 && !isOfInputs(dimension.name)) {
      continue;
    }
    for (const desc::ShardingSpec &entry : *entries) {
      // Keys are the sequence of attention's keys and values.
      if ((entry.dimension == "keys" ? "sequence" : entry.dimension) != dimension.name) {
        continue;
      }
      Product shards = {1, 1};
      for (const std::string &axis : entry.axes) {
        shards.first *= large.axis(axis)->size;
        shards.second *= small.axis(axis)->size;
      }
      cuts.shards.insert(shards);
      cuts.unit = {std::lcm(cuts.unit.first, shards.first),
                   std::lcm(cuts.unit.second, shards.second)};
    }
  }
  return cuts;
}

bool ShrunkSizes::dividesAlike(const LargeDimension &dimension, const Cuts &cuts, int64_t chosen,
                               bool exactly) const {
  auto alike = [&](int64_t before, int64_t after, int64_t of) {
    return std::all_of(products.begin(), products.end(), [&](Product product) {
      bool divided = before % (of * product.first) == 0;
      bool divides = after % (of * product.second) == 0;
      return divides == divided || (divides && !exactly);
    });
  };
  int64_t before = cuts.padLarge(dimension.size), after = cuts.padSmall(chosen);
  return alike(before, after, 1) && (!dimension.halves || alike(before, after, 2)) &&
         alike(before / dimension.largeParts, after / dimension.smallParts, 1);
}

bool ShrunkSizes::isPaddedAlike(const LargeDimension &dimension, const Cuts &cuts, int64_t chosen,
                                bool exactly) {
  int64_t before = cuts.padLarge(dimension.size), after = cuts.padSmall(chosen);
  if ((before == dimension.size) != (after == chosen)) {
    return false;
  }
  // Whether some rank of `shards` has nothing but padding.
  auto hasEmpty = [](int64_t size, int64_t padded, int64_t shards) {
    return padded - size >= padded / shards;
  };
  return std::all_of(cuts.shards.begin(), cuts.shards.end(), [&](Product shards) {
    bool had = hasEmpty(dimension.size, before, shards.first);
    bool has = hasEmpty(chosen, after, shards.second);
    return had == has || !exactly;
  });
}

std::string ShrunkSizes::difference(const LargeDimension &dimension, int64_t chosen) const {
  const Cuts cuts = cutsOf(dimension);
  std::string sizes = std::to_string(dimension.size) + " is ";
  if (!isPaddedAlike(dimension, cuts, chosen, true)) {
    return sizes + "padded in another way than " + std::to_string(chosen);
  }
  return dividesAlike(dimension, cuts, chosen, true)
             ? ""
             : sizes + "not divided by products of axes that divide " + std::to_string(chosen);
}

int64_t ShrunkSizes::unitOf(int64_t size) const {
  int64_t unit = 1;
  for (auto [before, after] : products) {
    unit = size % before == 0 ? std::lcm(unit, after) : unit;
  }
  return unit;
}

int64_t ShrunkSizes::nearest(const LargeDimension &dimension, int64_t wanted, int64_t most) const {
  const Cuts cuts = cutsOf(dimension);
  for (int64_t size = wanted; size <= most; ++size) {
    if (dividesAlike(dimension, cuts, size, true)) {
      return size;
    }
  }
  for (int64_t size = wanted - 1; 3 * size >= 2 * wanted; --size) {
    if (dividesAlike(dimension, cuts, size, true)) {
      return size;
    }
  }
  return wanted;
}

int64_t ShrunkSizes::choose(const LargeDimension &dimension) {
  const Cuts cuts = cutsOf(dimension);
  int64_t padded = cuts.padLarge(dimension.size), most = 1;
  for (auto [before, after] : products) {
    if (padded % before == 0) {
      most = std::max(most, after);
    }
  }
  // Tries two elements on each rank, so that a swap is a visible mistake; one of them may be
  // padding. Failing that, keeps a small size as it is, and failing that, takes one that more axes
  // divide than should.
  int64_t least = dimension.least, two = padded == dimension.size ? 2 * most : most + 1;
  int64_t chosen = find(dimension, cuts, std::max(least, two), true);
  chosen = chosen > 0 ? chosen : find(dimension, cuts, least, true);
  if (chosen == 0 && dimension.most < dimension.size) {
    chosen = find(dimension, cuts, least, true, /*mayBeTaken=*/true);
  }
  if (chosen == 0 && dimension.most < dimension.size) {
    LargeDimension free = dimension;
    free.most = dimension.size;
    return choose(free);
  }
  bool mayStay = dimension.size <= kSmall && dimension.size % dimension.multipleOf == 0 &&
                 isPaddedAlike(dimension, cuts, dimension.size, false);
  chosen = chosen > 0 || mayStay ? chosen : find(dimension, cuts, least, false);
  chosen = chosen > 0 ? chosen : dimension.size;
  taken.insert(chosen);
  return chosen;
}

int64_t ShrunkSizes::find(const LargeDimension &dimension, const Cuts &cuts, int64_t least,
                          bool exactly, bool mayBeTaken) const {
  // Enough tries to avoid forbidden divisors and sizes that are taken.
  constexpr int64_t tries = 1024;
  int64_t step = std::lcm(dimension.multipleOf, dimension.smallParts);
  int64_t chosen = (least + step - 1) / step * step;
  int64_t most = std::min(dimension.most, dimension.size - 1);
  mayBeTaken |= dimension.least == dimension.most;
  for (int64_t i = 0; i < tries && chosen <= most; ++i, chosen += step) {
    if ((mayBeTaken || !taken.count(chosen)) && isPaddedAlike(dimension, cuts, chosen, exactly) &&
        dividesAlike(dimension, cuts, chosen, exactly)) {
      return chosen;
    }
  }
  return 0;
}

} // namespace weft::verify
