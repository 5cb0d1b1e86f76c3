//===- Import.h - from a description to the graph -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first phase: a model and a recipe become a module of the weft dialect.
//
//   weft.variable …              parameters in model order, then the inputs of a
//                                step: tokens, targets, document_starts if the recipe has
//                                documents, seed, step_number
//   weft.optimizer …             how gradients update parameters
//   func private @layer(…)       one block of the model; all layers call it
//   func @loss() -> tensor<fXX>  the loss of one batch
//   func @init()                 initial values of all parameters
//   func private @layer_evaluate(…), func @evaluate()
//                                the same without dropout and z-loss, for validation;
//                                @evaluate observes the loss as "validation_loss" and,
//                                if asked for, the logits as "logits"
//
// The batch is a dimension of unknown size until Plan chooses the size; the mean of
// the loss is over the global batch of the recipe in any case. The location of an op
// is the name of its part of the model ("attention.query"), for reports.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_IMPORT_IMPORT_H
#define WEFT_PIPELINE_IMPORT_IMPORT_H

#include "weft/Description/Model.h"
#include "weft/Description/Recipe.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft {

struct ImportOptions {
  /// If true, `@evaluate` also observes the logits, as "logits", which takes memory for all of
  /// them.
  bool observesLogits = false;
};

/// Builds the module with the loss, the initial values, the optimizer and the validation of `model`
/// trained by `recipe`, as docs/Numerics.md defines them. Loads the dialects that it needs into
/// `context`. Cannot fail: all descriptions that were read and checked can be imported.
///
/// REQUIRES: `validateTogether` accepts the two.
mlir::OwningOpRef<mlir::ModuleOp> importModel(mlir::MLIRContext &context,
                                              const desc::ModelSpec &model,
                                              const desc::RecipeSpec &recipe,
                                              const ImportOptions &options = {});

} // namespace weft

#endif // WEFT_PIPELINE_IMPORT_IMPORT_H
