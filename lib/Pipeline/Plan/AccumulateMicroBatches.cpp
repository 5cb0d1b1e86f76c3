//===- AccumulateMicroBatches.cpp - a batch, part after part --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BatchRoles.h"
#include "MicroBatch.h"

#include "weft/Pipeline/Plan/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ACCUMULATEMICROBATCHESPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

struct AccumulateMicroBatchesPass
    : impl::AccumulateMicroBatchesPassBase<AccumulateMicroBatchesPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (accumulation < 1 || samples < 1 || samples % accumulation != 0) {
      module.emitError("accumulate-micro-batches: expected an accumulation that divides the batch "
                       "of ")
          << static_cast<int64_t>(samples) << ", got " << static_cast<int64_t>(accumulation);
      return signalPassFailure();
    }
    if (accumulation == 1) {
      return;
    }
    SmallVector<func::FuncOp> roots;
    BatchRoles roles(module);
    for (auto function : module.getOps<func::FuncOp>()) {
      bool isRoot = !function.isPrivate();
      if (isRoot && (failed(roles.compute(function)) || failed(checkRoot(function, roles)))) {
        return signalPassFailure();
      }
      if (isRoot &&
          llvm::any_of(function.getOps(), [](Operation &op) { return isPerSample(&op); })) {
        roots.push_back(function);
      }
    }
    for (VariableOp variable : module.getOps<VariableOp>()) {
      if (failed(divide(variable))) {
        return signalPassFailure();
      }
    }
    SumFunctions sums(module);
    auto parts = llvm::map_to_vector(
        roots, [&](func::FuncOp root) { return buildMicroBatch(root, roles, accumulation, sums); });
    numberSamples(module, parts, accumulation, samples);
  }

  /// Results of a root that have a row for each sample, or are no numbers, cannot be joined.
  static LogicalResult checkRoot(func::FuncOp root, const BatchRoles &roles) {
    for (Operation &op : root.getOps()) {
      // A limit holds for every micro-batch by itself.
      auto observe = dyn_cast<ObserveOp>(op);
      bool isSplit =
          isa<CallOp, ReadOp, ShardableOpInterface>(op) || (observe && observe.getLimit());
      if (isPerSample(&op) && !isSplit) {
        return op.emitError("accumulate-micro-batches: has a row for each sample, expected a sum "
                            "over samples or an accumulation of 1");
      }
      for (Value result : op.getResults()) {
        bool isLeft = isPerSample(&op) && !result.use_empty() && !isPerSample(result.getType());
        if (isLeft && (roles.of(result) == BatchRole::Mixed ||
                       !isa<FloatType>(getElementTypeOrSelf(result)))) {
          return op.emitError("accumulate-micro-batches: result ")
                 << cast<OpResult>(result).getResultNumber()
                 << " needs all samples of a step at once, expected a sum or the greatest of "
                    "samples or an accumulation of 1";
        }
      }
    }
    return success();
  }

  /// The first dimension of an input counts its micro-batches.
  LogicalResult divide(VariableOp variable) {
    RankedTensorType type = variable.getTensorType();
    if (!isPerSample(type)) {
      return success();
    }
    if (variable.getRole() != VariableRole::Input || !type.isDynamicDim(0)) {
      return variable.emitError("accumulate-micro-batches: '")
             << variable.getSymName() << "' of " << type
             << " has a row for each sample, expected an input whose first dimension is the batch";
    }
    SmallVector<int64_t> shape = {accumulation};
    llvm::append_range(shape, type.getShape());
    SmallVector<Attribute> names = {StringAttr::get(&getContext(), "micro_batch")};
    llvm::append_range(names, variable.getDimensions());
    variable.setType(type.clone(shape));
    variable.setDimensionsAttr(ArrayAttr::get(&getContext(), names));
    return success();
  }
};

} // namespace
} // namespace weft
