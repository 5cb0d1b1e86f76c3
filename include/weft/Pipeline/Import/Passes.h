//===- Passes.h - the passes that close Import ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_IMPORT_PASSES_H
#define WEFT_PIPELINE_IMPORT_PASSES_H

#include "weft/Dialect/Weft/IR/Weft.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"

namespace weft {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "weft/Pipeline/Import/Passes.h.inc"

/// Appends the verifier that ends the phase, after `importModel`.
void buildImportPipeline(mlir::OpPassManager &manager);

} // namespace weft

#endif // WEFT_PIPELINE_IMPORT_PASSES_H
