//===- SubstituteBatch.cpp - the batch as a number ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SubstituteBatch.h"

#include "weft/Pipeline/Plan/Passes.h"

#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SUBSTITUTEBATCHPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

void substituteBatch(ModuleOp module, int64_t batch) {
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](RankedTensorType type) -> std::optional<Type> {
    SmallVector<int64_t> shape(type.getShape());
    llvm::replace(shape, ShapedType::kDynamic, batch);
    return RankedTensorType::get(shape, type.getElementType(), type.getEncoding());
  });
  replacer.recursivelyReplaceElementsIn(module, /*replaceAttrs=*/true, /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

namespace {

struct SubstituteBatchPass : impl::SubstituteBatchPassBase<SubstituteBatchPass> {
  using Base::Base;

  void runOnOperation() override {
    if (batch < 1) {
      getOperation().emitError("substitute-batch: expected a batch of at least 1, got ")
          << static_cast<int64_t>(batch);
      return signalPassFailure();
    }
    substituteBatch(getOperation(), batch);
  }
};

} // namespace
} // namespace weft
