//===- ConvertWeftToShard.cpp - shardings in types to shard.shard ops ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Conversion/Shard/Passes.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "mlir/Dialect/Shard/IR/ShardOps.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_CONVERTWEFTTOSHARDPASS
#include "weft/Conversion/Shard/Passes.h.inc"

namespace {

/// Converts one function, whose module has `grid` for its mesh.
class FunctionConversion {
public:
  FunctionConversion(func::FuncOp function, shard::GridOp grid, bool refusePending)
      : function(function), grid(grid), refusePending(refusePending),
        builder(function.getContext()) {}

  LogicalResult run() {
    Block &block = function.getBody().front();
    Operation *first = block.empty() ? nullptr : &block.front();
    for (BlockArgument argument : block.getArguments()) {
      builder.setInsertionPoint(first);
      if (failed(describe(argument, function))) {
        return failure();
      }
    }
    for (Operation &op : llvm::make_early_inc_range(
             llvm::make_range(first ? first->getIterator() : block.end(), block.end()))) {
      if (failed(convert(op))) {
        return failure();
      }
    }
    function.setFunctionType(FunctionType::get(function.getContext(), block.getArgumentTypes(),
                                               block.getTerminator()->getOperandTypes()));
    return success();
  }

private:
  LogicalResult convert(Operation &op) {
    builder.setInsertionPointAfter(&op);
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      return convertReshard(reshard);
    }
    for (Value result : op.getResults()) {
      if (failed(describe(result, &op))) {
        return failure();
      }
    }
    return success();
  }

  /// A reshard changes the sharding for the users of its result.
  LogicalResult convertReshard(ReshardOp reshard) {
    ShardingAttr target = getSharding(reshard.getOutput().getType());
    if (!target.isReduced() && failed(reportPending(reshard, target))) {
      return failure();
    }
    target = target.getReduced();
    Value value = reshard.getInput();
    if (lies.lookup(value) != target) {
      value = shard::ShardOp::create(builder, reshard.getLoc(), value, shardingOp(target),
                                     /*annotate_for_users=*/true);
      lies[value] = target;
    }
    reshard.getOutput().replaceAllUsesWith(value);
    reshard.erase();
    return success();
  }

  /// Removes the sharding from the type of `value`, a result of `op`, and states it by a
  /// shard.shard after `op`.
  LogicalResult describe(Value value, Operation *op) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type) {
      return success();
    }
    ShardingAttr sharding = getSharding(type);
    if (!sharding) {
      return op->emitError("convert-weft-to-shard: ")
             << type << " has no sharding, expected a module after phase plan";
    }
    if (!sharding.isReduced()) {
      if (ShardingAttr next = onlyReshard(value)) {
        sharding = next;
      } else if (failed(reportPending(op, sharding))) {
        return failure();
      }
      sharding = sharding.getReduced();
    }
    value.setType(withSharding(type, {}));
    auto described = shard::ShardOp::create(builder, value.getLoc(), value, shardingOp(sharding));
    value.replaceAllUsesExcept(described.getResult(), described);
    lies[described.getResult()] = sharding;
    return success();
  }

  /// Returns the sharding, not pending, to which the only user of `value` reshards it, or null.
  ShardingAttr onlyReshard(Value value) {
    auto reshard = value.hasOneUse() ? dyn_cast<ReshardOp>(*value.user_begin()) : nullptr;
    ShardingAttr target = reshard ? getSharding(reshard.getOutput().getType()) : ShardingAttr();
    return target && target.isReduced() ? target : ShardingAttr();
  }

  LogicalResult reportPending(Operation *op, ShardingAttr sharding) {
    std::string axes;
    for (auto axis : sharding.getUnreduced().getAsRange<StringAttr>()) {
      axes += (axes.empty() ? "" : ", ") + axis.getValue().str();
    }
    InFlightDiagnostic diagnostic = refusePending ? op->emitError() : op->emitRemark();
    diagnostic << "convert-weft-to-shard: pending "
               << stringifyReductionKind(sharding.getReduction()) << " over " << axes
               << " has no form in the shard dialect";
    if (!refusePending) {
      diagnostic << ": it is reduced here";
    }
    return failure(refusePending);
  }

  /// Returns the one op of this function that defines `sharding`.
  Value shardingOp(ShardingAttr sharding) {
    auto splitAxes = shard::GridAxesArrayAttr::get(function.getContext(), splitAxesOf(sharding));
    Operation *&op = shardings[splitAxes];
    if (!op) {
      OpBuilder::InsertionGuard guard(builder);
      if (last) {
        builder.setInsertionPointAfter(last);
      } else {
        builder.setInsertionPointToStart(&function.getBody().front());
      }
      op = last = shard::ShardingOp::create(builder, function.getLoc(),
                                            FlatSymbolRefAttr::get(grid.getSymNameAttr()),
                                            splitAxes.getAxes());
    }
    return op->getResult(0);
  }

  /// Returns the numbers of the axes of each dimension up to the last that is cut, and of at least
  /// one.
  SmallVector<shard::GridAxesAttr> splitAxesOf(ShardingAttr sharding) {
    SmallVector<shard::GridAxesAttr> dims;
    for (ArrayAttr axes : sharding.getDims()) {
      auto numbers = llvm::map_to_vector(axes.getAsRange<StringAttr>(), [&](StringAttr axis) {
        return static_cast<int16_t>(sharding.getMesh().getIndex(axis));
      });
      dims.push_back(shard::GridAxesAttr::get(function.getContext(), numbers));
    }
    while (dims.size() > 1 && dims.back().empty()) {
      dims.pop_back();
    }
    if (dims.empty()) {
      dims.push_back(shard::GridAxesAttr::get(function.getContext(), {}));
    }
    return dims;
  }

  func::FuncOp function;
  shard::GridOp grid;
  bool refusePending;
  OpBuilder builder;
  /// The shardings of results of shard.shard ops.
  DenseMap<Value, ShardingAttr> lies;
  DenseMap<Attribute, Operation *> shardings;
  Operation *last = nullptr;
};

struct ConvertWeftToShardPass : impl::ConvertWeftToShardPassBase<ConvertWeftToShardPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttrName);
    if (!mesh) {
      module.emitError("convert-weft-to-shard: the module has no mesh, expected a module after "
                       "phase plan");
      return signalPassFailure();
    }
    shard::GridOp grid = createGrid(module, mesh);
    for (VariableOp variable : module.getOps<VariableOp>()) {
      variable.setType(withSharding(variable.getTensorType(), {}));
    }
    for (auto function : module.getOps<func::FuncOp>()) {
      if (!function.getBody().hasOneBlock()) {
        function.emitError("convert-weft-to-shard: expected a function with a body of one block");
        return signalPassFailure();
      }
      if (failed(FunctionConversion(function, grid, refusePending).run())) {
        return signalPassFailure();
      }
    }
  }

  /// One rank becomes a grid of one axis, because a grid has at least one.
  shard::GridOp createGrid(ModuleOp module, MeshAttr mesh) {
    SmallVector<int64_t> shape(mesh.getSizes());
    OpBuilder builder(module.getBodyRegion());
    auto grid = shard::GridOp::create(builder, module.getLoc(), "mesh",
                                      shape.empty() ? ArrayRef<int64_t>(1) : ArrayRef(shape));
    if (!shape.empty()) {
      auto names =
          llvm::map_to_vector(mesh.getNames(), [](StringAttr name) -> Attribute { return name; });
      grid->setAttr(kAxesAttrName, builder.getArrayAttr(names));
    }
    SymbolTable(module).insert(grid); // Under another name where `mesh` is taken.
    module->removeAttr(kMeshAttrName);
    return grid;
  }
};

} // namespace
} // namespace weft
