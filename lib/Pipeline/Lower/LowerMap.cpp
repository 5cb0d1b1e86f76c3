//===- LowerMap.cpp - elementwise functions ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"
#include "mlir/IR/IRMapping.h"

namespace weft::lower {

using namespace mlir;

namespace {

/// The iteration space of a map in as few loops as there can be: dimensions of size one are left
/// out, and neighbours that every operand has or lacks together are one.
struct IterationSpace {
  llvm::SmallVector<int64_t> sizes;
  /// For each dimension of the map, the loop that it is in, or -1.
  llvm::SmallVector<int64_t> loopOf;
  /// For each operand, its loops in order.
  llvm::SmallVector<llvm::SmallVector<unsigned>> inputLoops;
};

IterationSpace makeIterationSpace(MapOp map) {
  ArrayRef<int64_t> shape = map.getOutputType().getShape();
  llvm::SmallVector<llvm::BitVector> has;
  for (unsigned i = 0; i < map.getInputs().size(); ++i) {
    has.emplace_back(shape.size());
    for (unsigned dim : map.getInputDims(i)) {
      has.back().set(dim);
    }
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
  for (unsigned i = 0; i < has.size(); ++i) {
    auto &loops = space.inputLoops.emplace_back();
    for (unsigned dim : map.getInputDims(i)) {
      int64_t loop = space.loopOf[dim];
      if (loop >= 0 && (loops.empty() || loops.back() != loop)) {
        loops.push_back(loop);
      }
    }
  }
  return space;
}

/// Clones the ops of the map's body whose operands are known already and whose results are not.
void cloneKnown(Code &code, MapOp map, IRMapping &known) {
  for (Operation &op : map.getBody().front().without_terminator()) {
    bool ready = llvm::all_of(op.getOperands(), [&](Value v) { return known.contains(v); });
    if (ready && !known.contains(op.getResult(0))) {
      code.getBuilder().clone(op, known);
    }
  }
}

struct LowerMap : HostModel<LowerMap, MapOp> {
  static void lower(Code &code, MapOp map, MapOp::Adaptor operands, ValueRange results) {
    IterationSpace space = makeIterationSpace(map);
    Block &body = map.getBody().front();
    llvm::SmallVector<Buffer> inputs, outputs;
    for (auto [value, loops] : llvm::zip_equal(operands.getInputs(), space.inputLoops)) {
      auto sizes = llvm::map_to_vector(loops, [&](unsigned loop) { return space.sizes[loop]; });
      inputs.push_back(code.buffer(value).view(sizes));
    }
    for (Value value : results) {
      outputs.push_back(code.buffer(value).view(space.sizes));
    }

    // What depends on single elements only is computed once.
    IRMapping once;
    for (auto [argument, input] : llvm::zip_equal(body.getArguments(), inputs)) {
      if (input.getRank() == 0) {
        once.map(argument, Value(input.loadStored({})));
      }
    }
    cloneKnown(code, map, once);

    code.parallelNest(space.sizes, [&](ArrayRef<Num> indices) {
      IRMapping known(once);
      for (auto [argument, input, loops] :
           llvm::zip_equal(body.getArguments(), inputs, space.inputLoops)) {
        if (input.getRank() != 0) {
          Nums own = llvm::map_to_vector<4>(loops, [&](unsigned loop) { return indices[loop]; });
          known.map(argument, Value(input.loadStored(own)));
        }
      }
      cloneKnown(code, map, known);
      for (auto [value, output] : llvm::zip_equal(body.getTerminator()->getOperands(), outputs)) {
        output.storeStored(code.num(known.lookup(value)), indices);
      }
    });
  }

  /// An element is written after all operands' elements at its place were read.
  bool mayReuse(Operation *op, unsigned operand, unsigned result) const {
    return op->getOperand(operand).getType() == op->getResult(result).getType();
  }
};

} // namespace

void attachMapModels(MLIRContext &context) { MapOp::attachInterface<LowerMap>(context); }

} // namespace weft::lower
