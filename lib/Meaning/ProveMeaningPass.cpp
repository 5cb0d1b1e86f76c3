//===- ProveMeaningPass.cpp - the proof as a pass ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Meaning/Passes.h"
#include "weft/Meaning/ProveMeaning.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PROVEMEANINGPASS
#include "weft/Meaning/Passes.h.inc"

namespace {

struct ProveMeaningPass : impl::ProveMeaningPassBase<ProveMeaningPass> {
  using Base::Base;

  void runOnOperation() override {
    OwningOpRef<ModuleOp> before = parseSourceFile<ModuleOp>(whole, &getContext());
    if (!before) {
      getOperation().emitError("prove-meaning: expected a module before Plan in the file '")
          << whole << "' of the option 'whole'";
      return signalPassFailure();
    }
    if (failed(proveMeaning(*before, getOperation()))) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace weft
