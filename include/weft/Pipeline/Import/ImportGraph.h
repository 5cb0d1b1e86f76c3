//===- ImportGraph.h - from an ONNX graph to a module ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first phase for a model that is an ONNX graph. The module is like that of a
// described model (Import.h), but it has no functions for layers, and a graph of
// images has the inputs `images` and `labels` instead of `tokens` and `targets`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_IMPORT_IMPORTGRAPH_H
#define WEFT_PIPELINE_IMPORT_IMPORTGRAPH_H

#include "weft/Description/Model.h"
#include "weft/Description/Recipe.h"
#include "weft/Onnx/Graph.h"
#include "weft/Pipeline/Import/Import.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace weft {

/// Builds the module of `graph` trained by `recipe`; `model` says which of the graph's tensors are
/// trained. Loads the dialects that it needs into `context`. Adds to `problems` each unsupported
/// node, with its name, its op and its place in the file; the module is then null.
///
/// REQUIRES: `model.graph`, and `validateTogether` accepts model and recipe.
mlir::OwningOpRef<mlir::ModuleOp> importGraph(mlir::MLIRContext &context, const onnx::Graph &graph,
                                              const desc::ModelSpec &model,
                                              const desc::RecipeSpec &recipe,
                                              const ImportOptions &options,
                                              desc::Diagnostics &problems);

} // namespace weft

#endif // WEFT_PIPELINE_IMPORT_IMPORTGRAPH_H
