//===- CopyForDevices.cpp - copies kernels for devices --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Pipeline/Lower/Passes.h"

namespace weft {

#define GEN_PASS_DEF_COPYFORDEVICESPASS
#include "weft/Pipeline/Lower/Passes.h.inc"

namespace {

struct CopyForDevicesPass : impl::CopyForDevicesPassBase<CopyForDevicesPass> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    auto builder = mlir::OpBuilder::atBlockEnd(module.getBody());
    auto devices = mlir::ModuleOp::create(builder, module.getLoc(), kDevicesName);
    for (mlir::Operation &op : *module.getBody()) {
      if (&op != devices) {
        devices.push_back(op.clone());
      }
    }
  }
};

} // namespace

} // namespace weft
