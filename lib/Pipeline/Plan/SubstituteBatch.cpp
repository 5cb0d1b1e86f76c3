//===- SubstituteBatch.cpp - the batch as a number ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/BatchSize.h"
#include "weft/Pipeline/Plan/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_SUBSTITUTEBATCHPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

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
