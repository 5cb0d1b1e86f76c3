//===- ImportModel.cpp - from descriptions to a module --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Translations.h"

#include "weft/InitAll.h"
#include "weft/Pipeline/Import/Import.h"
#include "weft/Pipeline/Import/ImportGraph.h"

#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {

/// The import of the model that is the main file of `sources`, by the recipe in file `recipePath`.
OwningOpRef<Operation *> translate(llvm::SourceMgr &sources, MLIRContext *context,
                                   const std::string &recipePath) {
  if (recipePath.empty()) {
    llvm::errs() << "expected --recipe=FILE beside --import-model\n";
    return nullptr;
  }
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(sources.getMainFileID());
  auto model = weft::desc::parseModel(buffer->getBuffer(), buffer->getBufferIdentifier().str());
  auto recipe = weft::desc::loadRecipe(recipePath);
  if (!model || !recipe) {
    llvm::errs() << str(model.diagnostics()) << str(recipe.diagnostics());
    return nullptr;
  }
  if (!model->graph) {
    return weft::importModel(*context, *model, *recipe);
  }
  auto graph = weft::onnx::loadGraph(model->graph->path);
  if (!graph) {
    llvm::errs() << str(graph.diagnostics());
    return nullptr;
  }
  weft::desc::Diagnostics problems;
  OwningOpRef<ModuleOp> imported =
      weft::importGraph(*context, *graph, *model, *recipe, {}, problems);
  llvm::errs() << weft::desc::str(problems);
  return imported;
}

} // namespace

void weft::registerImportTranslation() {
  static llvm::cl::opt<std::string> recipePath(
      "recipe", llvm::cl::desc("recipe of the model that --import-model reads"),
      llvm::cl::value_desc("file"));
  TranslateToMLIRRegistration registration(
      "import-model", "description of a model to a module",
      [](llvm::SourceMgr &sources, MLIRContext *context) {
        return translate(sources, context, recipePath);
      },
      registerAllWeft);
}
