//===- NarrowProducts.cpp - products that round their results ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_NARROWPRODUCTSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// The cast of `product` to its operands' type that is all that reads it, or null.
MapOp findRounding(ContractOp product) {
  Value output = product.getOutput();
  auto map = output.hasOneUse() ? dyn_cast<MapOp>(*output.getUsers().begin()) : MapOp();
  bool rounds =
      map && isCast(map) &&
      map.getOutputType().getElementType() == getElementTypeOrSelf(product.getInputs().front()) &&
      map.getOutputType() != output.getType();
  return rounds ? map : MapOp();
}

struct NarrowProductsPass : impl::NarrowProductsPassBase<NarrowProductsPass> {
  void runOnOperation() override {
    SmallVector<ContractOp> products;
    getOperation().walk([&](ContractOp op) { products.push_back(op); });
    for (ContractOp product : products) {
      MapOp rounding = isProduct(product) ? findRounding(product) : MapOp();
      if (!rounding) {
        continue;
      }
      product.getOutput().setType(rounding.getOutputType());
      rounding.getResult(0).replaceAllUsesWith(product.getOutput());
      rounding.erase();
      ++narrowed;
    }
  }
};

} // namespace
} // namespace weft
