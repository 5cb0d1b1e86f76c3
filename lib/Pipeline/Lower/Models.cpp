//===- Models.cpp - the lowering of each family of ops -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Models.h"

#include "weft/Pipeline/Lower/HostLowering.cpp.inc"

void weft::registerHostLoweringModels(mlir::DialectRegistry &registry) {
  registry.addExtension(+[](mlir::MLIRContext *context, WeftDialect *) {
    lower::attachMapModels(*context);
    lower::attachContractModels(*context);
    lower::attachNormModels(*context);
    lower::attachAttentionModels(*context);
    lower::attachAttentionGradModels(*context);
    lower::attachEmbeddingModels(*context);
    lower::attachExpertModels(*context);
    lower::attachCrossEntropyModels(*context);
    lower::attachRandomModels(*context);
    lower::attachRotaryModels(*context);
    lower::attachRoutingModels(*context);
    lower::attachMovementModels(*context);
    lower::attachOrderModels(*context);
    lower::attachShapeModels(*context);
    lower::attachConvolutionModels(*context);
    lower::attachPoolModels(*context);
    lower::attachQuantizeModels(*context);
  });
}

mlir::Operation *weft::findInlinedMap(mlir::OpResult value, mlir::OpOperand &use) {
  auto isElementwise = [](MapOp map) {
    return map && map->getNumResults() == 1 &&
           llvm::all_of(
               map.getMaps().getAsValueRange<mlir::AffineMapAttr>(),
               [](mlir::AffineMap own) { return own.isIdentity() || own.getNumResults() == 0; });
  };
  auto writer = llvm::dyn_cast<HostLoweringOpInterface>(value.getOwner());
  auto reader = llvm::dyn_cast<HostLoweringOpInterface>(use.getOwner());
  if (!writer || !reader) {
    return nullptr;
  }
  if (isElementwise(llvm::dyn_cast<MapOp>(*reader)) && writer.storesOnce(value.getResultNumber())) {
    return reader;
  }
  if (isElementwise(llvm::dyn_cast<MapOp>(*writer)) && reader.loadsSingly(use.getOperandNumber())) {
    return writer;
  }
  return nullptr;
}
