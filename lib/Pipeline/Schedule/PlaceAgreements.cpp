//===- PlaceAgreements.cpp - where ranks agree to go on -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "program/ProgramCheck.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PLACEAGREEMENTSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

struct PlaceAgreementsPass : impl::PlaceAgreementsPassBase<PlaceAgreementsPass> {
  void runOnOperation() override {
    ObserveOp last;
    bool mayEnd = false;
    for (auto observe : getOperation().getOps<ObserveOp>()) {
      // The host reads all scalars where ranks agree.
      if (cast<RankedTensorType>(observe.getValue().getType()).getRank() == 0) {
        last = observe;
        mayEnd |= rt::decidesRun({observe.getName().str(), {}});
      }
    }
    if (mayEnd && getOperation().getOps<AgreeOp>().empty()) {
      OpBuilder builder(last->getContext());
      builder.setInsertionPointAfter(last);
      AgreeOp::create(builder, last.getLoc());
    }
  }
};

} // namespace
} // namespace weft
