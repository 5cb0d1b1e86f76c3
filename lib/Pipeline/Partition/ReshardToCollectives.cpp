//===- ReshardToCollectives.cpp - from one sharding to another ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_RESHARDTOCOLLECTIVESPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

/// Axes of `from` that `to` lacks.
ArrayAttr without(ArrayAttr from, ArrayAttr to) {
  SmallVector<Attribute> left;
  for (Attribute axis : from) {
    if (!llvm::is_contained(to, axis)) {
      left.push_back(axis);
    }
  }
  return ArrayAttr::get(from.getContext(), left);
}

/// Number of axes that both begin with.
size_t commonPrefix(ArrayAttr a, ArrayAttr b) {
  size_t length = 0;
  while (length < a.size() && length < b.size() && a[length] == b[length]) {
    ++length;
  }
  return length;
}

/// What `axes` has behind its first `count`.
ArrayAttr dropFront(ArrayAttr axes, size_t count) {
  return ArrayAttr::get(axes.getContext(), axes.getValue().drop_front(count));
}

/// Walks one value from its sharding to the wanted one, a collective at a time.
class ReshardExpansion {
public:
  explicit ReshardExpansion(ReshardOp op)
      : builder(op), loc(op.getLoc()), value(op.getInput()),
        mesh(getSharding(op.getInput().getType()).getMesh()),
        to(getSharding(op.getOutput().getType())) {}

  Value expand() {
    reduce();
    exchange();
    gather();
    slice();
    makePartial();
    return value;
  }

private:
  ShardingAttr current() { return getSharding(value.getType()); }

  RankedTensorType typeWith(ShardingAttr sharding) {
    return withSharding(cast<RankedTensorType>(value.getType()), sharding);
  }

  /// Axes of dimension `dim` that have to go, and those that have to come.
  ArrayAttr leaving(int64_t dim) {
    ArrayAttr from = current().getDims()[dim];
    return dropFront(from, commonPrefix(from, to.getDims()[dim]));
  }
  ArrayAttr coming(int64_t dim) {
    ArrayAttr wanted = to.getDims()[dim];
    return dropFront(wanted, commonPrefix(current().getDims()[dim], wanted));
  }

  void reduce() {
    ShardingAttr from = current();
    ArrayAttr axes = without(from.getUnreduced(), to.getUnreduced());
    if (axes.empty()) {
      return;
    }
    ArrayAttr left = without(from.getUnreduced(), axes);
    ShardingAttr reduced = withUnreduced(from, left.getValue(),
                                         left.empty() ? ReductionKind::Sum : from.getReduction());
    value = AllReduceOp::create(builder, loc, typeWith(reduced), value, mesh, axes,
                                from.getReduction());
  }

  /// The same axes leave one dimension and come to another that has lost what it had to.
  void exchange() {
    int64_t rank = to.getDims().size();
    for (int64_t from = 0; from < rank; ++from) {
      for (int64_t dim = 0; dim < rank; ++dim) {
        ArrayAttr axes = leaving(from);
        if (axes.empty() || dim == from || coming(dim) != axes || !leaving(dim).empty()) {
          continue;
        }
        ShardingAttr sharding = current();
        sharding = withDim(sharding, from, dropBack(sharding.getDims()[from], axes.size()));
        sharding = withDim(sharding, dim, appendAxes(sharding.getDims()[dim], axes));
        value = AllToAllOp::create(builder, loc, typeWith(sharding), value, mesh, axes,
                                   /*split=*/dim, /*concat=*/from);
      }
    }
  }

  void gather() {
    for (int64_t dim = 0, rank = to.getDims().size(); dim < rank; ++dim) {
      ArrayAttr axes = leaving(dim);
      if (axes.empty()) {
        continue;
      }
      ArrayAttr left = dropBack(current().getDims()[dim], axes.size());
      value = AllGatherOp::create(builder, loc, typeWith(withDim(current(), dim, left)), value,
                                  mesh, axes, dim);
    }
  }

  void slice() {
    for (int64_t dim = 0, rank = to.getDims().size(); dim < rank; ++dim) {
      ArrayAttr axes = coming(dim);
      if (axes.empty()) {
        continue;
      }
      ArrayAttr all = appendAxes(current().getDims()[dim], axes);
      value = SliceOp::create(builder, loc, typeWith(withDim(current(), dim, all)), value, Value(),
                              mesh, axes, dim);
    }
  }

  void makePartial() {
    ArrayAttr axes = without(to.getUnreduced(), current().getUnreduced());
    if (!axes.empty()) {
      value = PartialOp::create(builder, loc, typeWith(to), value, Value(), mesh, axes);
    }
  }

  OpBuilder builder;
  Location loc;
  Value value;
  MeshAttr mesh;
  ShardingAttr to;
};

struct ReshardToCollectivesPass : impl::ReshardToCollectivesPassBase<ReshardToCollectivesPass> {
  void runOnOperation() override {
    getOperation().walk([](ReshardOp op) {
      op.replaceAllUsesWith(ReshardExpansion(op).expand());
      op.erase();
    });
  }
};

} // namespace
} // namespace weft
