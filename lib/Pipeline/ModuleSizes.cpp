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

/// Returns the variable of that name, which may be in the module of any pipeline stage.
VariableOp findVariable(ModuleOp whole, llvm::StringRef name) {
  for (ModuleOp module : stageModulesOf(whole)) {
    if (auto variable = module.lookupSymbol<VariableOp>(name)) {
      return variable;
    }
  }
  return {};
}

int64_t dimensionOf(VariableOp variable, int64_t dimension) {
  if (!variable || variable.getTensorType().getRank() <= dimension ||
      variable.getTensorType().isDynamicDim(dimension)) {
    return 0;
  }
  return variable.getUnpadded().value_or(variable.getTensorType().getShape())[dimension];
}

} // namespace

ModuleSizes weft::sizesOf(ModuleOp whole) {
  VariableOp tokens = findVariable(whole, "tokens");
  // The batch is one dimension, or two of them.
  bool isDivided = tokens && tokens.getTensorType().getRank() > 2;
  int64_t microBatches = isDivided ? dimensionOf(tokens, 0) : 1;
  auto classes = stageModulesOf(whole).front()->getAttrOfType<IntegerAttr>(kClassesAttrName);
  return {microBatches * dimensionOf(tokens, isDivided), dimensionOf(tokens, isDivided + 1),
          microBatches,
          classes ? classes.getInt() : dimensionOf(findVariable(whole, "embed.tokens.weight"), 0)};
}
