//===- ModuleSizes.cpp - the model's sizes in a module --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/ModuleSizes.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/StageMarks.h"
#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;
using namespace weft;

namespace {

int64_t dimensionOf(ModuleOp module, llvm::StringRef name, int64_t dimension) {
  auto variable = module.lookupSymbol<VariableOp>(name);
  if (!variable || variable.getTensorType().getRank() <= dimension ||
      variable.getTensorType().isDynamicDim(dimension)) {
    return 0;
  }
  return variable.getUnpadded().value_or(variable.getTensorType().getShape())[dimension];
}

} // namespace

ModuleSizes weft::sizesOf(ModuleOp whole) {
  ModuleOp module = stageModulesOf(whole).front(); // The first stage has the embedding.
  auto tokens = module.lookupSymbol<VariableOp>("tokens");
  // The batch is one dimension, or two of them.
  bool isDivided = tokens && tokens.getTensorType().getRank() > 2;
  int64_t microBatches = isDivided ? dimensionOf(module, "tokens", 0) : 1;
  auto classes = module->getAttrOfType<IntegerAttr>(kClassesAttrName);
  return {microBatches * dimensionOf(module, "tokens", isDivided),
          dimensionOf(module, "tokens", isDivided + 1), microBatches,
          classes ? classes.getInt() : dimensionOf(module, "embed.tokens.weight", 0)};
}
