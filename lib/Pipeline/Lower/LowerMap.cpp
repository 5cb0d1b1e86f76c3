//===- LowerMap.cpp - elementwise functions ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BlockSums.h"
#include "Models.h"
#include "mlir/IR/IRMapping.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// The iteration space of a map in as few loops as possible: without dimensions of size one, and
/// with neighbours merged that every operand has or lacks together.
struct IterationSpace {
  llvm::SmallVector<int64_t> sizes;
  /// For each dimension of the map, its loop, or -1.
  llvm::SmallVector<int64_t> loopOf;
  /// For each operand, and last for the kept dimensions, its loops in order.
  llvm::SmallVector<llvm::SmallVector<unsigned>> inputLoops;
};

/// Makes the space of operands with the dimensions `terms` and of another with the dimensions
/// `kept`.
IterationSpace makeIterationSpace(ArrayRef<int64_t> shape, mlir::ArrayAttr terms,
                                  ArrayRef<int64_t> kept) {
  llvm::SmallVector<llvm::BitVector> has;
  for (AffineMap term : terms.getAsValueRange<AffineMapAttr>()) {
    has.emplace_back(shape.size());
    for (AffineExpr expr : term.getResults()) {
      has.back().set(cast<AffineDimExpr>(expr).getPosition());
    }
  }
  has.emplace_back(shape.size());
  for (int64_t dim : kept) {
    has.back().set(static_cast<unsigned>(dim));
  }
  IterationSpace space;
  space.loopOf.assign(shape.size(), -1);
  int64_t previous = -1;
  for (int64_t dim = 0, rank = shape.size(); dim < rank; ++dim) {
    if (shape[dim] == 1) {
      continue;
    }
    bool joins = previous >= 0 && llvm::all_of(has, [&](const llvm::BitVector &dims) {
                   return dims[dim] == dims[previous];
                 });
    if (joins) {
      space.sizes.back() *= shape[dim];
    } else {
      space.sizes.push_back(shape[dim]);
    }
    space.loopOf[dim] = static_cast<int64_t>(space.sizes.size()) - 1;
    previous = dim;
  }
  for (const llvm::BitVector &dims : has) {
    auto &loops = space.inputLoops.emplace_back();
    for (unsigned dim : dims.set_bits()) {
      int64_t loop = space.loopOf[dim];
      if (loop >= 0 && (loops.empty() || loops.back() != loop)) {
        loops.push_back(loop);
      }
    }
  }
  return space;
}

/// Clones the ops of a map's body that have known operands and no results yet.
void cloneKnown(Code &code, Block &body, IRMapping &known) {
  for (Operation &op : body.without_terminator()) {
    bool ready = llvm::all_of(op.getOperands(), [&](Value v) { return known.contains(v); });
    if (ready && !known.contains(op.getResult(0))) {
      code.getBuilder().clone(op, known);
    }
  }
}

/// Builds the scalar code of a map.
class ScalarCode {
public:
  ScalarCode(Code &code, IterationSpace given, Block &body, ValueRange operands)
      : space(std::move(given)), code(code), body(body) {
    for (auto [number, value] : llvm::enumerate(operands)) {
      inputs.push_back(code.buffer(value).view(sizesOf(space.inputLoops[number])));
    }
    // Code that depends on single elements only runs once.
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), inputs)) {
      if (input.getRank() == 0) {
        once.map(argument, Value(input.loadStored({})));
      }
    }
    cloneKnown(code, body, once);
  }

  llvm::SmallVector<int64_t> sizesOf(ArrayRef<unsigned> loops) const {
    return llvm::map_to_vector(loops, [&](unsigned loop) { return space.sizes[loop]; });
  }

  /// Returns the results of the body at one place of the space.
  Nums at(ArrayRef<Num> indices) {
    IRMapping known(once);
    for (auto [number, input] : llvm::enumerate(inputs)) {
      if (input.getRank() != 0) {
        Nums own = llvm::map_to_vector<4>(space.inputLoops[number],
                                          [&](unsigned loop) { return indices[loop]; });
        known.map(body.getArgument(number), Value(input.loadStored(own)));
      }
    }
    cloneKnown(code, body, known);
    return llvm::map_to_vector<4>(body.getTerminator()->getOperands(),
                                  [&](Value value) { return code.num(known.lookup(value)); });
  }

  const IterationSpace space;

private:
  Code &code;
  Block &body;
  llvm::SmallVector<Buffer> inputs;
  IRMapping once;
};

struct LowerMap : HostModel<LowerMap, MapOp> {
  static void lower(Code &code, MapOp map, MapOp::Adaptor operands, ValueRange results) {
    ScalarCode scalars(code, makeIterationSpace(map.getOutputType().getShape(), map.getMaps(), {}),
                       map.getBody().front(), operands.getInputs());
    llvm::SmallVector<Buffer> outputs;
    for (Value value : results) {
      outputs.push_back(code.buffer(value).view(scalars.space.sizes));
    }
    code.elements(scalars.space.sizes, [&](ArrayRef<Num> indices) {
      for (auto [value, output] : llvm::zip_equal(scalars.at(indices), outputs)) {
        output.storeStored(value, indices);
      }
    });
  }

  /// The code writes an element after it has read all operands' elements at that place.
  bool mayReuse(Operation *op, unsigned operand, unsigned result) const {
    return op->getOperand(operand).getType() == op->getResult(result).getType();
  }
};

/// Threads of a host share the kept dimensions; one thread computes a sum, row by row.
struct LowerMapSum : HostModel<LowerMapSum, MapSumOp> {
  static void lower(Code &code, MapSumOp op, MapSumOp::Adaptor operands, ValueRange results) {
    ScalarCode scalars(code, makeIterationSpace(op.getSpace(), op.getMaps(), op.getKept()),
                       op.getBody().front(), operands.getInputs());
    ArrayRef<int64_t> sizes = scalars.space.sizes;
    ArrayRef<unsigned> kept = scalars.space.inputLoops.back();
    llvm::SmallVector<unsigned> summed;
    for (unsigned loop = 0; loop < sizes.size(); ++loop) {
      if (!llvm::is_contained(kept, loop)) {
        summed.push_back(loop);
      }
    }
    llvm::SmallVector<Buffer> outputs;
    for (Value value : results) {
      outputs.push_back(code.buffer(value).view(scalars.sizesOf(kept)));
    }
    Type type = outputs.front().getElementType();
    if (code.isForDevice() && !summed.empty()) {
      sumByBlocks(code, scalars, kept, summed, outputs);
      return;
    }
    code.parallelAll(scalars.sizesOf(kept), [&](ArrayRef<Num> place) {
      Nums at(sizes.size(), Num());
      for (auto [loop, index] : llvm::zip_equal(kept, place)) {
        at[loop] = index;
      }
      Nums sums = sumAll(code, scalars, summed, at, type, results.size());
      for (auto [sum, output] : llvm::zip_equal(sums, outputs)) {
        output.store(sum, place);
      }
    });
  }

  static void sumByBlocks(Code &code, ScalarCode &scalars, ArrayRef<unsigned> kept,
                          ArrayRef<unsigned> summed, ArrayRef<Buffer> outputs) {
    llvm::SmallVector<int64_t> keptSizes = scalars.sizesOf(kept), sizes = scalars.sizesOf(summed);
    BlockSums sums{outputs.front().getElementType(), static_cast<int64_t>(outputs.size())};
    auto termsAt = [&](Num place, Num i) {
      Nums at(scalars.space.sizes.size(), Num());
      for (auto [loops, indices] : {std::pair(kept, code.placeOf(place, keptSizes)),
                                    std::pair(summed, code.placeOf(i, sizes))}) {
        for (auto [loop, index] : llvm::zip_equal(loops, indices)) {
          at[loop] = index;
        }
      }
      return scalars.at(at);
    };
    auto store = [&](Num place, ArrayRef<Num> totals) {
      for (auto [total, output] : llvm::zip_equal(totals, outputs)) {
        output.store(total, code.placeOf(place, keptSizes));
      }
    };
    int64_t rows = Code::countOf(keptSizes), count = Code::countOf(sizes);
    if (kept.empty()) {
      sumWhole(
          code, sums, count, [&](Num i) { return termsAt(code.index(0), i); },
          [&](ArrayRef<Num> totals) { store(code.index(0), totals); });
    } else if (kept.back() < summed.back()) { // Neighbors are in one sum.
      sumRows(code, sums, rows, count, termsAt, store);
    } else {
      sumColumns(
          code, sums, count, rows, [&](Num i, Num place) { return termsAt(place, i); }, store);
    }
  }

  /// Over the loops `summed`, the last of which is a row.
  static Nums sumAll(Code &code, ScalarCode &scalars, ArrayRef<unsigned> summed, Nums at, Type type,
                     size_t count) {
    if (summed.empty()) {
      return scalars.at(at);
    }
    unsigned row = summed.back();
    summed = summed.drop_back();
    Nums zeros(count, code.real(type, 0));
    return code.carryNest(
        scalars.sizesOf(summed), zeros, [&](ArrayRef<Num> indices, ArrayRef<Num> carried) {
          for (auto [loop, index] : llvm::zip_equal(summed, indices)) {
            at[loop] = index;
          }
          Nums sums = code.sums(type, code.index(0), code.index(scalars.space.sizes[row]),
                                static_cast<int64_t>(count), [&](Num i) {
                                  at[row] = i;
                                  return scalars.at(at);
                                });
          for (auto [sum, before] : llvm::zip_equal(sums, carried)) {
            sum = before + sum;
          }
          return sums;
        });
  }
};

} // namespace

void attachMapModels(MLIRContext &context) {
  MapOp::attachInterface<LowerMap>(context);
  MapSumOp::attachInterface<LowerMapSum>(context);
}

} // namespace weft::lower
