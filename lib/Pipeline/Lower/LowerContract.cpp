//===- LowerContract.cpp - sums of products ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"
#include "Contractor.h"
#include "Models.h"
#include "SharedTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cmath>

namespace weft::lower {

using namespace mlir;

/// Rounds to the nearest number with 10 bits of fraction, ties away from zero, as devices convert.
/// Infinities and NaN stay as they are.
Num Contractor::factor(Num loaded) {
  if (!isTF32) {
    return loaded;
  }
  OpBuilder &builder = code.getBuilder();
  Location loc = code.getLoc();
  Type type = loaded.getType(), integers = builder.getI32Type();
  if (auto vector = dyn_cast<VectorType>(type)) {
    integers = vector.clone(integers);
  }
  auto constant = [&](int32_t value) -> Value {
    Attribute element = builder.getI32IntegerAttr(value);
    auto vector = dyn_cast<VectorType>(integers);
    return code.constant(integers, vector ? DenseElementsAttr::get(vector, element) : element);
  };
  Value bits = arith::BitcastOp::create(builder, loc, integers, loaded);
  Value exponent = arith::AndIOp::create(builder, loc, bits, constant(0x7f800000));
  Value isFinite =
      arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ne, exponent, constant(0x7f800000));
  Value sum = arith::AddIOp::create(builder, loc, bits, constant(0x1000));
  Value kept = arith::AndIOp::create(builder, loc, sum, constant(~0x1fff));
  Value rounded = arith::BitcastOp::create(builder, loc, type, kept);
  return code.num(arith::SelectOp::create(builder, loc, isFinite, rounded, loaded));
}

Num Contractor::productAt() {
  Num product;
  for (auto [input, term] : llvm::zip_equal(inputs, shape.inputs)) {
    Num next = factor(input.load(indicesOf(term)));
    product = product ? product * next : next;
  }
  return product;
}

/// Returns the products at `width` indices of `dim`, starting at that of `at`.
Num Contractor::productsAt(unsigned dim, int64_t width) {
  Num product;
  for (auto [input, term] : llvm::zip_equal(inputs, shape.inputs)) {
    Num next = llvm::is_contained(term, dim)
                   ? factor(input.loadVector(width, indicesOf(term)))
                   : code.spread(factor(input.load(indicesOf(term))), width);
    product = product ? product * next : next;
  }
  return product;
}

/// Splits a sum over a long dimension into partial sums, about as many as each has elements, so
/// that float32 loses little precision.
Num Contractor::sumOverLast(unsigned dim) {
  constexpr int64_t kPart = 4096;
  Type type = output.getElementType();
  int64_t size = shape.sizes[dim];
  int64_t part = kPart * (1 + static_cast<int64_t>(std::sqrt(double(size))) / kPart);
  auto sumFrom = [&](Num start, int64_t length) {
    return code.sum(type, 0, length, [&](Num i) {
      at[dim] = start + i;
      return productAt();
    });
  };
  if (size <= 4 * part) {
    return sumFrom(code.index(0), size);
  }
  Num whole = code.carry(code.index(0), code.index(size / part * part), part, {code.real(type, 0)},
                         [&](Num start, ArrayRef<Num> carried) {
                           return Nums{carried.front() + sumFrom(start, part)};
                         })
                  .front();
  return whole + sumFrom(code.index(size / part * part), size % part);
}

Contraction::Dims Contractor::orderOfLargest() const {
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
  return order;
}

void Contractor::emitByBlocks() {
  Contraction::Dims order = orderOfLargest(), kept, summed;
  for (unsigned dim : order) {
    (shape.isReduced(dim) ? summed : kept).push_back(dim);
  }
  if (summed.empty()) {
    emitPermuted();
    return;
  }
  SmallVector<int64_t> keptSizes(shape.shapeOf(kept)), summedSizes(shape.shapeOf(summed));
  auto moveTo = [&](const Contraction::Dims &dims, ArrayRef<int64_t> sizes, Num number) {
    for (auto [dim, index] : llvm::zip_equal(dims, code.placeOf(number, sizes))) {
      at[dim] = index;
    }
  };
  auto termAt = [&](Num place, Num i) {
    moveTo(kept, keptSizes, place);
    moveTo(summed, summedSizes, i);
    return Nums{productAt()};
  };
  auto store = [&](Num place, ArrayRef<Num> totals) {
    moveTo(kept, keptSizes, place);
    output.store(totals.front(), indicesOf(shape.output));
  };
  BlockSums sums{output.getElementType()};
  int64_t rows = Code::countOf(keptSizes), count = Code::countOf(summedSizes);
  Num zero = code.index(0);
  if (kept.empty()) {
    sumWhole(
        code, sums, count, [&](Num i) { return termAt(zero, i); },
        [&](ArrayRef<Num> totals) { store(zero, totals); });
  } else if (shape.isReduced(order.back())) { // Neighbors are in one sum.
    sumRows(code, sums, rows, count, termAt, store);
  } else {
    sumColumns(code, sums, count, rows, [&](Num i, Num place) { return termAt(place, i); }, store);
  }
}

/// Follows the order of the largest operand or result, so that memory is read in order, and adds to
/// the result.
void Contractor::emitStreamed() {
  Contraction::Dims order = orderOfLargest();
  if (order.empty()) {
    output.store(productAt());
    return;
  }

  unsigned last = order.pop_back_val();
  if (sumsColumns(order, last)) {
    emitColumnSums(order, last);
    return;
  }
  code.fillParallel(output, 0);
  // Threads may share only a dimension of the output: no two may add to one element. Sums over all
  // dimensions but an inner one, as a channel, read memory along that one.
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

/// Returns true if only rows of matrices are summed, and columns, which the output keeps, are
/// contiguous in all operands that have them.
bool Contractor::sumsColumns(const Contraction::Dims &outer, unsigned last) const {
  auto isReduced = [&](unsigned dim) { return shape.isReduced(dim); };
  return !outer.empty() && llvm::all_of(outer, isReduced) && !isReduced(last) &&
         llvm::all_of(shape.inputs, [&](const auto &input) {
           return !llvm::is_contained(input, last) || input.back() == last;
         });
}

/// Keeps the sums of some neighbouring columns in registers. Rows are far apart, so memory latency
/// dominates, and many rows are loaded at once to hide it.
void Contractor::emitColumnSums(const Contraction::Dims &outer, unsigned last) {
  int64_t most = vectorLanes(output.getElementType());
  forParts(code, shape.sizes[last], 4 * most, [&](Num first, int64_t count) {
    int64_t width = std::min(count, most);
    Num zero = code.real(output.getElementType(), 0);
    Nums start(count / width, code.spread(zero, width));
    Nums sums = code.carryNest(shape.shapeOf(outer), start,
                               [&](ArrayRef<Num> indices, ArrayRef<Num> carried) {
                                 for (auto [dim, index] : llvm::zip_equal(outer, indices)) {
                                   at[dim] = index;
                                 }
                                 Nums next;
                                 for (auto [i, sum] : llvm::enumerate(carried)) {
                                   at[last] = first + static_cast<int64_t>(i) * width;
                                   next.push_back(sum + productsAt(last, width));
                                 }
                                 return next;
                               });
    for (auto [i, sum] : llvm::enumerate(sums)) {
      at[last] = first + static_cast<int64_t>(i) * width;
      output.storeVector(sum, indicesOf(shape.output));
    }
  });
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

/// Completes each result before it is rounded.
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

/// Permutes in the order of the result.
void Contractor::emitPermuted() {
  code.elements(shape.shapeOf(shape.output), [&](ArrayRef<Num> place) {
    for (auto [dim, index] : llvm::zip_equal(shape.output, place)) {
      at[dim] = index;
    }
    output.store(productAt(), place);
  });
}

/// Blocks move tiles through shared memory: threads read neighbors of the operand, and write
/// neighbors of the result.
bool Contractor::emitTransposed() {
  constexpr int64_t kSide = kTileSide, kLeast = 16;
  if (shape.output.size() < 2 || shape.inputs.front().back() == shape.output.back()) {
    return false;
  }
  unsigned from = shape.inputs.front().back(), to = shape.output.back();
  int64_t columns = shape.sizes[from], rows = shape.sizes[to];
  if (std::min(columns, rows) < kLeast) {
    return false;
  }
  Contraction::Dims outer;
  llvm::copy_if(shape.output, std::back_inserter(outer),
                [&](unsigned dim) { return dim != from && dim != to; });
  SmallVector<int64_t> sizes = shape.shapeOf(outer);
  sizes.push_back(llvm::divideCeil(rows, kSide));
  sizes.push_back(llvm::divideCeil(columns, kSide));
  Type type = inputs.front().getStoredType();
  bool isSame = type == output.getStoredType();
  code.blocks(Code::countOf(sizes), kSide * kSide, [&](Num block) {
    Nums place = code.placeOf(block, sizes);
    for (auto [dim, index] : llvm::zip(outer, place)) {
      at[dim] = index;
    }
    Num firstColumn = place.pop_back_val() * kSide, firstRow = place.pop_back_val() * kSide;
    Buffer tile = sharedTile(code, type);
    overTile(code, {firstRow, rows}, {firstColumn, columns}, [&](Num row, Num column) {
      at[to] = firstRow + row;
      at[from] = firstColumn + column;
      tile.storeStored(inputs.front().loadStored(indicesOf(shape.inputs.front())), {row, column});
    });
    code.barrier();
    overTile(code, {firstColumn, columns}, {firstRow, rows}, [&](Num column, Num row) {
      at[to] = firstRow + row;
      at[from] = firstColumn + column;
      if (isSame) {
        output.storeStored(tile.loadStored({row, column}), indicesOf(shape.output));
      } else { // Wider.
        output.store(tile.load({row, column}), indicesOf(shape.output));
      }
    });
    // The next tile may reuse the memory.
    code.barrier();
  });
  return true;
}

namespace {

struct LowerContract : HostModel<LowerContract, ContractOp> {
  static void lower(Code &code, ContractOp op, ContractOp::Adaptor operands, ValueRange results) {
    Contraction shape(op);
    Contractor contractor(code, shape, operands.getInputs(), results.front(), op.getTf32());
    Buffer output = code.buffer(results.front());
    if (op.getInputs().size() == 1 && shape.output.size() == shape.sizes.size()) {
      if (!code.isForDevice() || !contractor.emitTransposed()) {
        contractor.emitPermuted();
      }
    } else if (auto plan = makeTilePlan(shape, output.getElementType())) {
      contractor.emitTiled(*plan);
    } else if (code.isForDevice()) {
      contractor.emitByBlocks();
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
