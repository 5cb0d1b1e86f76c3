//===- KeepKernels.cpp - drops everything but kernel functions -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "weft/Pipeline/Lower/HostLowering.h"
#include "weft/Pipeline/Lower/Passes.h"

#include "llvm/ADT/DenseSet.h"

namespace weft {

#define GEN_PASS_DEF_KEEPKERNELSPASS
#include "weft/Pipeline/Lower/Passes.h.inc"

namespace {

struct KeepKernelsPass : impl::KeepKernelsPassBase<KeepKernelsPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    llvm::DenseSet<mlir::StringAttr> names;
    for (auto stage : module.getOps<mlir::ModuleOp>()) {
      for (auto kernel : llvm::make_early_inc_range(stage.getOps<mlir::func::FuncOp>())) {
        if (kernel->hasAttr(kTiedAttrName) && names.insert(kernel.getSymNameAttr()).second) {
          kernel->moveBefore(module.getBody(), module.getBody()->end());
        }
      }
    }
    for (mlir::Operation &op : llvm::make_early_inc_range(module.getOps())) {
      if (!mlir::isa<mlir::func::FuncOp>(op) || !op.hasAttr(kTiedAttrName)) {
        op.erase();
      }
    }
  }
};

} // namespace

} // namespace weft
