//===- NarrowMatmuls.cpp - matmuls that round their results --------------===//
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
#define GEN_PASS_DEF_NARROWMATMULSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Returns the only reader of `matmul`, perhaps behind a reshape, if that casts to the type of the
/// matmul's operands; else null.
MapOp findRounding(ContractOp matmul) {
  Value output = matmul.getOutput();
  while (output.hasOneUse() && isa<ReshapeOp>(*output.getUsers().begin())) {
    output = output.getUsers().begin()->getResult(0);
  }
  auto map = output.hasOneUse() ? dyn_cast<MapOp>(*output.getUsers().begin()) : MapOp();
  bool rounds =
      map && isCast(map) &&
      map.getOutputType().getElementType() == getElementTypeOrSelf(matmul.getInputs().front()) &&
      map.getOutputType() != output.getType();
  return rounds ? map : MapOp();
}

struct NarrowMatmulsPass : impl::NarrowMatmulsPassBase<NarrowMatmulsPass> {
  void runOnOperation() override {
    SmallVector<ContractOp> matmuls;
    getOperation().walk([&](ContractOp op) { matmuls.push_back(op); });
    for (ContractOp matmul : matmuls) {
      std::optional<MatmulForm> form = classifyMatmul(matmul);
      bool isOne = form && !form->matmul.isSum(); // A sum of several is of float32.
      MapOp rounding = isOne ? findRounding(matmul) : MapOp();
      if (!rounding) {
        continue;
      }
      Value read = rounding.getInputs().front();
      Type element = rounding.getOutputType().getElementType();
      for (Value value = matmul.getOutput();; value = value.getUsers().begin()->getResult(0)) {
        value.setType(cast<RankedTensorType>(value.getType()).clone(element));
        if (value == read) {
          break;
        }
      }
      rounding.getResult(0).replaceAllUsesWith(read);
      rounding.erase();
      ++narrowed;
    }
  }
};

} // namespace
} // namespace weft
