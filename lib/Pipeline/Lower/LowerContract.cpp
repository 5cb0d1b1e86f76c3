//===- LowerContract.cpp - sums of products ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Contraction.h"
#include "Models.h"
#include "Tiles.h"

#include <cmath>

namespace weft::lower {

using namespace mlir;

namespace {

/// How a contraction with reuse is computed: `width` consecutive indices of each tile dimension
/// at once, each by vectors along `vectorDim`. If that is a dimension of the output, the vectors
/// are elements of the output; otherwise they are added up in the end.
struct TilePlan {
  struct Tile {
    unsigned dim;
    int64_t width;
  };
  unsigned vectorDim;
  int64_t lanes;
  llvm::SmallVector<Tile, 2> tiles;
};

/// The largest of the output's dimensions that `accept` takes.
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

/// Vectors along the output's last dimension, where all operands allow it and some operand's
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

/// Vectors along a dimension that is summed over and last in both operands, for a tile of rows
/// of both.
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

std::optional<TilePlan> makeTilePlan(const Contraction &shape, Type type) {
  if (shape.inputs.size() != 2 || shape.output.size() == shape.sizes.size()) {
    return std::nullopt;
  }
  auto plan = planAlongOutput(shape, type);
  return plan ? plan : planAlongSum(shape, type);
}

/// Builds the code of one contraction.
class Contractor {
public:
  Contractor(Code &code, const Contraction &shape, ValueRange operands, Value result)
      : code(code), shape(shape), output(code.buffer(result).view(shape.shapeOf(shape.output))),
        at(shape.sizes.size(), Num()) {
    for (auto [operand, term] : llvm::zip_equal(operands, shape.inputs)) {
      inputs.push_back(code.buffer(operand).view(shape.shapeOf(term)));
    }
  }

  void emitTiled(const TilePlan &tilePlan);
  void emitStreamed();
  void emitRounded();
  void emitPermuted();

private:
  bool isVectorOverOutput() const { return !shape.isReduced(plan->vectorDim); }
  Nums indicesOf(const Contraction::Dims &term) const {
    return llvm::map_to_vector<4>(term, [&](unsigned dim) { return at[dim]; });
  }
  Num productAt();

  void overTiles(ArrayRef<TilePlan::Tile> tiles);
  void emitTile();
  Nums reduce(ArrayRef<unsigned> dims, ArrayRef<Num> carried);
  Nums reduceVectorDim(ArrayRef<unsigned> others, ArrayRef<Num> start);
  Nums addProducts(ArrayRef<Num> carried);
  void forEachInTile(function_ref<void()> body, size_t depth = 0);

  /// Adds all products over `outer` and then `last`, from `from` to before `to` or its end.
  void addOver(const Contraction::Dims &outer, unsigned last, Num from, Num to = {});
  Num sumOverLast(unsigned dim);

  Code &code;
  const Contraction &shape;
  llvm::SmallVector<Buffer> inputs;
  Buffer output;
  /// The index of each dimension at the place where code is being built.
  Nums at;

  const TilePlan *plan = nullptr;
  /// How many indices of each dimension the tile spans at that place (absent: one).
  llvm::SmallDenseMap<unsigned, int64_t> span;
  /// Lanes of the vectors there, 0 for plain numbers.
  int64_t lanes = 0;
};

//===----------------------------------------------------------------------===//
// With reuse: tiles in registers
//===----------------------------------------------------------------------===//

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
  // Columns outside of rows: the columns of the operand that is shared stay in the cache.
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
  forPieces(code, shape.sizes[dim], width, [&, dim = dim](Num start, int64_t piece) {
    at[dim] = start;
    span[dim] = piece;
    overTiles(tiles.drop_front());
  });
}

/// Runs `body` with `at` on each row of the tile.
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

/// Loops over `dims` and adds up products; the vector dimension is where `at` says.
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

/// Sums over the vector dimension by vectors, then over what is left of it by numbers.
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

/// One product for each row of the tile. Rows load shared operands again, in the text: equal loads
/// become one when the code is optimized.
Nums Contractor::addProducts(ArrayRef<Num> carried) {
  Nums sums;
  forEachInTile([&] {
    Nums factors;
    for (auto [input, term] : llvm::zip_equal(inputs, shape.inputs)) {
      bool isVector = lanes != 0 && llvm::is_contained(term, plan->vectorDim);
      Num value = isVector ? input.loadVector(lanes, indicesOf(term)) : input.load(indicesOf(term));
      factors.push_back(isVector || lanes == 0 ? value : code.spread(value, lanes));
    }
    sums.push_back(code.multiplyAdd(factors[0], factors[1], carried[sums.size()]));
  });
  return sums;
}

//===----------------------------------------------------------------------===//
// Without reuse: once over memory
//===----------------------------------------------------------------------===//

Num Contractor::productAt() {
  Num product;
  for (auto [input, term] : llvm::zip_equal(inputs, shape.inputs)) {
    Num factor = input.load(indicesOf(term));
    product = product ? product * factor : factor;
  }
  return product;
}

/// A sum over a long dimension is one of sums over about as many elements as there are sums:
/// float32 then loses little.
Num Contractor::sumOverLast(unsigned dim) {
  constexpr int64_t kPiece = 4096;
  Type type = output.getElementType();
  int64_t size = shape.sizes[dim];
  int64_t piece = kPiece * (1 + static_cast<int64_t>(std::sqrt(double(size))) / kPiece);
  auto sumFrom = [&](Num start, int64_t length) {
    return code.sum(type, 0, length, [&](Num i) {
      at[dim] = start + i;
      return productAt();
    });
  };
  if (size <= 4 * piece) {
    return sumFrom(code.index(0), size);
  }
  Num whole =
      code.carry(code.index(0), code.index(size / piece * piece), piece, {code.real(type, 0)},
                 [&](Num start, ArrayRef<Num> carried) {
                   return Nums{carried.front() + sumFrom(start, piece)};
                 })
          .front();
  return whole + sumFrom(code.index(size / piece * piece), size % piece);
}

/// Follows the largest of operands and result, so that memory is read in order, and adds to the
/// result.
void Contractor::emitStreamed() {
  Contraction::Dims order = shape.output;
  Buffer largest = output;
  for (auto [input, term] : llvm::zip_equal(inputs, shape.inputs)) {
    if (input.getElementCount() >= largest.getElementCount()) {
      largest = input;
      order = term;
    }
  }
  for (unsigned dim = 0; dim < shape.sizes.size(); ++dim) {
    if (!llvm::is_contained(order, dim)) {
      order.insert(order.begin(), dim);
    }
  }
  if (order.empty()) {
    output.store(productAt());
    return;
  }

  code.fillParallel(output, 0);
  unsigned last = order.pop_back_val();
  // What threads share must be a dimension of the output: no two may add to one element. Sums over
  // all but a dimension inside, as a channel, go through memory by that one.
  if (shape.isReduced(last)) {
    auto kept = llvm::find_if(order, [&](unsigned dim) { return !shape.isReduced(dim); });
    if (kept != order.end()) {
      std::rotate(order.begin(), kept, kept + 1);
    }
  }
  if (!order.empty() && !shape.isReduced(order.front())) {
    unsigned first = order.front();
    code.parallel(shape.sizes[first], [&](Num i) {
      at[first] = i;
      addOver(Contraction::Dims(llvm::drop_begin(order)), last, code.index(0));
    });
  } else if (!shape.isReduced(last)) {
    forColumns(code, shape.sizes[last], [&](Num from, Num to) { addOver(order, last, from, to); });
  } else {
    addOver(order, last, code.index(0));
  }
}

void Contractor::addOver(const Contraction::Dims &outer, unsigned last, Num from, Num to) {
  code.nest(shape.shapeOf(outer), [&](ArrayRef<Num> indices) {
    for (auto [dim, index] : llvm::zip_equal(outer, indices)) {
      at[dim] = index;
    }
    auto add = [&](Num value) {
      Nums place = indicesOf(shape.output);
      output.store(output.load(place) + value, place);
    };
    if (shape.isReduced(last)) {
      add(sumOverLast(last));
      return;
    }
    code.loop(from, to ? to : code.index(shape.sizes[last]), [&](Num i) {
      at[last] = i;
      add(productAt());
    });
  });
}

/// Each result is whole before it is rounded.
void Contractor::emitRounded() {
  Contraction::Dims reduced;
  for (unsigned dim = 0; dim < shape.sizes.size(); ++dim) {
    if (shape.isReduced(dim)) {
      reduced.push_back(dim);
    }
  }
  auto setPlace = [&](ArrayRef<unsigned> dims, ArrayRef<Num> indices) {
    for (auto [dim, index] : llvm::zip_equal(dims, indices)) {
      at[dim] = index;
    }
  };
  code.nest(shape.shapeOf(shape.output), [&](ArrayRef<Num> place) {
    setPlace(shape.output, place);
    Num zero = code.real(output.getElementType(), 0);
    Nums sum = code.carryNest(shape.shapeOf(reduced), {zero},
                              [&](ArrayRef<Num> indices, ArrayRef<Num> carried) {
                                setPlace(reduced, indices);
                                return Nums{carried.front() + productAt()};
                              });
    setPlace(shape.output, place);
    output.store(sum.front(), indicesOf(shape.output));
  });
}

/// A transposition, in the order of the result.
void Contractor::emitPermuted() {
  code.parallelNest(shape.shapeOf(shape.output), [&](ArrayRef<Num> place) {
    for (auto [dim, index] : llvm::zip_equal(shape.output, place)) {
      at[dim] = index;
    }
    output.store(productAt(), place);
  });
}

struct LowerContract : HostModel<LowerContract, ContractOp> {
  static void lower(Code &code, ContractOp op, ContractOp::Adaptor operands, ValueRange results) {
    Contraction shape(op);
    Contractor contractor(code, shape, operands.getInputs(), results.front());
    Buffer output = code.buffer(results.front());
    if (op.getInputs().size() == 1 && shape.output.size() == shape.sizes.size()) {
      contractor.emitPermuted();
    } else if (auto plan = makeTilePlan(shape, output.getElementType())) {
      contractor.emitTiled(*plan);
    } else if (output.rounds()) {
      contractor.emitRounded();
    } else {
      contractor.emitStreamed();
    }
  }
};

} // namespace

void attachContractModels(MLIRContext &context) {
  ContractOp::attachInterface<LowerContract>(context);
}

} // namespace weft::lower
