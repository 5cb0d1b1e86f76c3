//===- ContractTiles.cpp - contractions with reuse, by tiles in registers -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contractor.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// Returns the largest of the output's dimensions that `accept` allows.
std::optional<unsigned> largestOutputDim(const Contraction &shape,
                                         function_ref<bool(unsigned)> accept) {
  std::optional<unsigned> best;
  for (unsigned dim : shape.output) {
    if (accept(dim) && (!best || shape.sizes[dim] >= shape.sizes[*best])) {
      best = dim;
    }
  }
  return best;
}

/// Plans vectors along the output's last dimension, if all operands allow it and some operand's
/// vector serves several rows of the output.
std::optional<TilePlan> planAlongOutput(const Contraction &shape, Type type) {
  if (shape.output.empty()) {
    return std::nullopt;
  }
  unsigned vectorDim = shape.output.back();
  for (const auto &input : shape.inputs) {
    if (llvm::is_contained(input, vectorDim) && input.back() != vectorDim) {
      return std::nullopt;
    }
  }
  auto row = largestOutputDim(shape, [&](unsigned dim) {
    return llvm::any_of(shape.inputs, [&](const auto &input) {
      return llvm::is_contained(input, vectorDim) && !llvm::is_contained(input, dim);
    });
  });
  if (!row) {
    return std::nullopt;
  }
  return TilePlan{vectorDim, vectorLanes(type), {{*row, kTileRows}}};
}

/// Plans vectors along a summed dimension that is last in both operands, for a tile of rows of
/// both.
std::optional<TilePlan> planAlongSum(const Contraction &shape, Type type) {
  const auto &a = shape.inputs[0], &b = shape.inputs[1];
  if (a.empty() || b.empty() || a.back() != b.back() || !shape.isReduced(a.back())) {
    return std::nullopt;
  }
  auto rowA = largestOutputDim(shape, [&](unsigned dim) { return !llvm::is_contained(b, dim); });
  auto rowB = largestOutputDim(shape, [&](unsigned dim) { return !llvm::is_contained(a, dim); });
  if (!rowA || !rowB) {
    return std::nullopt;
  }
  return TilePlan{a.back(), vectorLanes(type) / 2, {{*rowA, kTileRows}, {*rowB, 2}}};
}

} // namespace

std::optional<TilePlan> makeTilePlan(const Contraction &shape, Type type) {
  if (shape.inputs.size() != 2 || shape.output.size() == shape.sizes.size()) {
    return std::nullopt;
  }
  auto plan = planAlongOutput(shape, type);
  return plan ? plan : planAlongSum(shape, type);
}

void Contractor::emitTiled(const TilePlan &tilePlan) {
  plan = &tilePlan;
  llvm::SmallVector<TilePlan::Tile> tiles;
  auto isTiled = [&](unsigned dim) {
    return dim == plan->vectorDim ||
           llvm::any_of(plan->tiles, [&](auto tile) { return tile.dim == dim; });
  };
  for (unsigned dim : shape.output) {
    if (!isTiled(dim)) {
      tiles.push_back({dim, 1});
    }
  }
  // Columns are the outer loop, rows the inner: the shared operand's columns stay in the cache.
  if (isVectorOverOutput()) {
    tiles.push_back({plan->vectorDim, plan->lanes});
  }
  llvm::append_range(tiles, llvm::reverse(plan->tiles));
  overTiles(tiles);
}

void Contractor::overTiles(ArrayRef<TilePlan::Tile> tiles) {
  if (tiles.empty()) {
    emitTile();
    return;
  }
  auto [dim, width] = tiles.front();
  forParts(code, shape.sizes[dim], width, [&, dim = dim](Num start, int64_t part) {
    at[dim] = start;
    span[dim] = part;
    overTiles(tiles.drop_front());
  });
}

/// Runs `body` with `at` set to each row of the tile.
void Contractor::forEachInTile(function_ref<void()> body, size_t depth) {
  if (depth == plan->tiles.size()) {
    body();
    return;
  }
  unsigned dim = plan->tiles[depth].dim;
  Num start = at[dim];
  for (int64_t i = 0, width = span.lookup(dim); i < width; ++i) {
    at[dim] = i == 0 ? start : start + i;
    forEachInTile(body, depth + 1);
  }
  at[dim] = start;
}

void Contractor::emitTile() {
  llvm::SmallVector<unsigned> reduced;
  for (unsigned dim = 0; dim < shape.sizes.size(); ++dim) {
    if (shape.isReduced(dim) && dim != plan->vectorDim) {
      reduced.push_back(dim);
    }
  }
  Num zero = code.real(output.getElementType(), 0);
  lanes = isVectorOverOutput() ? span.lookup(plan->vectorDim) : plan->lanes;
  Nums start;
  forEachInTile([&] { start.push_back(code.spread(zero, lanes)); });
  Nums sums = isVectorOverOutput() ? reduce(reduced, start) : reduceVectorDim(reduced, start);
  const Num *next = sums.begin();
  forEachInTile([&] {
    if (isVectorOverOutput()) {
      output.storeVector(*next++, indicesOf(shape.output));
    } else {
      output.store(*next++, indicesOf(shape.output));
    }
  });
}

/// Loops over `dims` and adds up products; `at` holds the place in the vector dimension.
Nums Contractor::reduce(ArrayRef<unsigned> dims, ArrayRef<Num> carried) {
  if (dims.empty()) {
    return addProducts(carried);
  }
  unsigned dim = dims.front();
  return code.carry(code.index(0), code.index(shape.sizes[dim]), 1, carried,
                    [&](Num i, ArrayRef<Num> inner) {
                      at[dim] = i;
                      return reduce(dims.drop_front(), inner);
                    });
}

/// Sums over the vector dimension by vectors, then over the remainder by numbers.
Nums Contractor::reduceVectorDim(ArrayRef<unsigned> others, ArrayRef<Num> start) {
  int64_t size = shape.sizes[plan->vectorDim], whole = size / lanes * lanes;
  auto along = [&](int64_t from, int64_t to, int64_t step, ArrayRef<Num> carried) {
    return code.carry(code.index(from), code.index(to), step, carried,
                      [&](Num i, ArrayRef<Num> inner) {
                        at[plan->vectorDim] = i;
                        return reduce(others, inner);
                      });
  };
  Nums sums = along(0, whole, lanes, start);
  for (Num &sum : sums) {
    sum = code.sumLanes(sum);
  }
  if (whole != size) {
    lanes = 0;
    sums = along(whole, size, 1, sums);
  }
  return sums;
}

/// Returns one product for each row of the tile. Rows load shared operands again; the optimizer
/// merges equal loads.
Nums Contractor::addProducts(ArrayRef<Num> carried) {
  Nums sums;
  forEachInTile([&] {
    Nums factors;
    for (auto [input, term] : llvm::zip_equal(inputs, shape.inputs)) {
      bool isVector = lanes != 0 && llvm::is_contained(term, plan->vectorDim);
      Num value =
          factor(isVector ? input.loadVector(lanes, indicesOf(term)) : input.load(indicesOf(term)));
      factors.push_back(isVector || lanes == 0 ? value : code.spread(value, lanes));
    }
    sums.push_back(code.multiplyAdd(factors[0], factors[1], carried[sums.size()]));
  });
  return sums;
}

} // namespace weft::lower
