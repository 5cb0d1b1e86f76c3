//===- Localize.cpp - one rank's shards ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_LOCALIZEPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

Value constant(OpBuilder &builder, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(builder, loc, value);
}

/// Returns this rank's number in its group over `axes`, the first axis major.
Value groupIndex(OpBuilder &builder, Location loc, MeshAttr mesh, ArrayAttr axes) {
  Value index;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    Value coordinate = AxisIndexOp::create(builder, loc, builder.getIndexType(), axis, mesh);
    if (index) {
      Value size = constant(builder, loc, mesh.getSize(axis));
      Value major = arith::MulIOp::create(builder, loc, index, size);
      index = arith::AddIOp::create(builder, loc, major, coordinate);
    } else {
      index = coordinate;
    }
  }
  return index;
}

/// Gives an op the offsets of its shard.
void setPosition(PositionOpInterface op, MeshAttr mesh, const FactorRule &rule,
                 ArrayRef<ArrayAttr> axes) {
  SmallVector<unsigned> factors = op.getPositionFactors();
  if (llvm::all_of(factors, [&](unsigned factor) { return axes[factor].empty(); })) {
    return; // The shard is the whole.
  }
  OpBuilder builder(op);
  Location loc = op->getLoc();
  Position whole = op.getPosition();
  SmallVector<Value> offsets;
  SmallVector<int64_t> sizes;
  for (auto [number, factor] : llvm::enumerate(factors)) {
    int64_t size = rule.factors[factor].size;
    sizes.push_back(whole.globalSizes.empty() ? size : whole.globalSizes[number]);
    Value offset = whole.offsets.empty() ? Value() : whole.offsets[number];
    if (!axes[factor].empty()) {
      Value index = groupIndex(builder, loc, mesh, axes[factor]);
      Value length = constant(builder, loc, size / mesh.getSize(axes[factor]));
      Value shard = arith::MulIOp::create(builder, loc, index, length);
      offset = offset ? arith::AddIOp::create(builder, loc, offset, shard).getResult() : shard;
    }
    offsets.push_back(offset ? offset : constant(builder, loc, 0));
  }
  op.setPosition(offsets, sizes);
}

/// Gives an op the information that the types of its shards lack.
void localize(ShardableOpInterface op, MeshAttr mesh) {
  FactorRule rule = op.getFactorRule();
  SmallVector<ArrayAttr> axes = axesOfFactors(op, rule);
  if (auto positional = dyn_cast<PositionOpInterface>(op.getOperation())) {
    setPosition(positional, mesh, rule, axes);
  }
  if (auto permuted = findPermutation(rule); permuted && !axes[*permuted].empty()) {
    cast<PermutationOpInterface>(op.getOperation()).setPermutation(mesh, axes[*permuted]);
  }
}

struct LocalizePass : impl::LocalizePassBase<LocalizePass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    module.walk([&](Operation *op) { tellPosition(op); });
    // Types lose their shardings last, as the ops above read them.
    module.walk([&](Operation *op) {
      for (Value result : op->getResults()) {
        makeLocal(result);
      }
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          makeLocal(argument);
        }
      }
      if (auto function = dyn_cast<func::FuncOp>(op)) {
        makeLocal(function);
      }
    });
  }

  void tellPosition(Operation *op) {
    OpBuilder builder(op);
    if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
      for (Type type : op->getResultTypes()) {
        if (ShardingAttr sharding = getSharding(type)) {
          return localize(shardable, sharding.getMesh());
        }
      }
    } else if (auto slice = dyn_cast<SliceOp>(op)) {
      slice.getIndexMutable().assign(
          groupIndex(builder, op->getLoc(), slice.getMesh(), slice.getAxes()));
    } else if (auto partial = dyn_cast<PartialOp>(op)) {
      partial.getIndexMutable().assign(
          groupIndex(builder, op->getLoc(), partial.getMesh(), partial.getAxes()));
    } else if (auto observe = dyn_cast<ObserveOp>(op)) {
      observe.setLayout(observe.getValue().getType());
    }
  }

  static void makeLocal(Value value) {
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      value.setType(getLocalType(type));
    }
  }

  static void makeLocal(func::FuncOp function) {
    auto local = [](TypeRange types) {
      return llvm::map_to_vector(types, [](Type type) -> Type {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return tensor ? getLocalType(tensor) : type;
      });
    };
    function.setFunctionType(FunctionType::get(function.getContext(),
                                               local(function.getArgumentTypes()),
                                               local(function.getResultTypes())));
  }
};

} // namespace
} // namespace weft
