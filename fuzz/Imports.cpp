//===- Imports.cpp - import of valid descriptions -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text is a model, a line "---", and a recipe.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "weft/Description/Validate.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Pipeline/Import/Import.h"

#include "mlir/IR/Verifier.h"

using namespace weft;

/// Each layer is a call, and many are as one.
static constexpr int64_t kMostLayers = 16;

/// One that can do all that a recipe may ask for.
static desc::MachineSpec makeMachine() {
  auto machine = desc::parseMachine(
      "version: 1 name: 'm' nodes: 1 devices_per_node: 1 device { name: 'd' "
      "peak_flops { precision: F64 flops: 1e9 } peak_flops { precision: F32 flops: 1e9 } "
      "memory_bytes: 1048576 memory_bandwidth_bytes_per_second: 1e9 }");
  require(bool(machine), "a good description is accepted");
  return *machine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const desc::MachineSpec machine = makeMachine();
  auto [modelText, recipeText] =
      llvm::StringRef(reinterpret_cast<const char *>(data), size).split("\n---\n");
  auto model = desc::parseModel(modelText);
  auto recipe = desc::parseRecipe(recipeText);
  if (!model || !recipe || model->layers > kMostLayers ||
      !desc::validateTogether(*model, *recipe, machine).empty()) {
    return 0;
  }
  mlir::DialectRegistry registry;
  registerScalarOpModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  mlir::OwningOpRef<mlir::ModuleOp> module = importModel(context, *model, *recipe);
  require(mlir::succeeded(mlir::verify(*module)), "what is imported is a legal module");
  return 0;
}
