//===- NarrowResults.cpp - ops that round their results ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/MatmulForm.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_NARROWRESULTSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Returns the only reader of `result`, perhaps behind reshapes, if that casts to `narrow`; else
/// null.
MapOp findRounding(Value result, Type narrow) {
  Value output = result;
  while (output.hasOneUse() && isa<ReshapeOp>(*output.getUsers().begin())) {
    output = output.getUsers().begin()->getResult(0);
  }
  auto map = output.hasOneUse() ? dyn_cast<MapOp>(*output.getUsers().begin()) : MapOp();
  bool rounds = map && isCast(map) && map.getOutputType().getElementType() == narrow &&
                map.getOutputType() != output.getType();
  return rounds ? map : MapOp();
}

/// Gives `result`, and its reshapes, the type that `rounding` casts to, and removes the cast.
void roundItself(Value result, MapOp rounding) {
  Value read = rounding.getInputs().front();
  Type element = rounding.getOutputType().getElementType();
  for (Value value = result;; value = value.getUsers().begin()->getResult(0)) {
    value.setType(cast<RankedTensorType>(value.getType()).clone(element));
    if (value == read) {
      break;
    }
  }
  rounding.getResult(0).replaceAllUsesWith(read);
  rounding.erase();
}

struct NarrowResultsPass : impl::NarrowResultsPassBase<NarrowResultsPass> {
  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) { ops.push_back(op); });
    for (Operation *op : ops) {
      if (mayRound(op)) {
        narrow(op);
      }
    }
  }

private:
  /// Returns true if the code of `op` sums in float32 and may round when a sum is whole.
  static bool mayRound(Operation *op) {
    if (auto contract = dyn_cast<ContractOp>(op)) {
      std::optional<MatmulForm> form = classifyMatmul(contract);
      return form && !form->matmul.isSum(); // A sum of several is of float32.
    }
    // On the host, gradients of queries are summed in the memory of the result.
    return isa<AttentionGradOp>(op) && isForDevices(op);
  }

  void narrow(Operation *op) {
    Type narrow = getElementTypeOrSelf(op->getOperand(0));
    SmallVector<MapOp> roundings;
    for (Value result : op->getResults()) {
      roundings.push_back(findRounding(result, narrow));
    }
    if (!llvm::all_of(roundings, [](MapOp rounding) { return bool(rounding); })) {
      return;
    }
    for (auto [result, rounding] : llvm::zip_equal(op->getResults(), roundings)) {
      roundItself(result, rounding);
    }
    ++narrowed;
  }
};

} // namespace
} // namespace weft
