//===- OnnxGraphs.cpp - ONNX files, imported and differentiated -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is an ONNX model, as text or, if it begins with the field ir_version, in
// binary. Beside the model is a file of zeros, "data.bin", that it may name as external
// data, and in the parent folder a secret, which it may not read. A model that can be
// imported is read again, built and differentiated.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "tests/TemporaryFolder.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Onnx/Import.h"
#include "weft/Pipeline/Differentiate/Passes.h"
#include "weft/Pipeline/Import/ImportGraph.h"
#include "weft/Pipeline/Import/Passes.h"

#include "mlir/Pass/PassManager.h"

#include <random>

using namespace weft;

namespace {

/// The model's folder, with what lies beside it and above it.
struct Place {
  rt::TemporaryFolder above;
  std::string secret;

  Place() {
    std::random_device random;
    for (int i = 0; i < 4; ++i) {
      secret += std::to_string(random()) + "/";
    }
    secret.resize(64, '/');
    above.write("secret.bin", secret);
    std::filesystem::create_directories(above.path / "in");
    std::filesystem::create_directories(above.path / "out");
    above.write("in/data.bin", std::string(256, '\0'));
  }
};

/// Expects errors, each of one line.
void checkProblems(const desc::Diagnostics &problems, bool isFine) {
  require(problems.empty() == isFine, "either a result or a reason");
  for (const desc::Diagnostic &problem : problems) {
    std::string text = problem.str();
    require(!text.empty() && text.find('\n') == std::string::npos,
            "each mistake is explained in one line");
  }
}

desc::RecipeSpec recipeFor(const onnx::Graph &graph) {
  std::string text = "version: 1 steps: 1 adamw {} precision: F32 "
                     "schedule { peak_learning_rate: 1 decay: CONSTANT } ";
  bool readsTokens = !graph.inputs.empty() && !onnx::isFloat(graph.inputs[0].type);
  const auto &dimensions = graph.inputs.empty() ? std::vector<onnx::Dimension>() //
                                                : graph.inputs[0].dimensions;
  const int64_t *length = dimensions.size() > 1 ? std::get_if<int64_t>(&dimensions[1]) : nullptr;
  text += readsTokens ? "global_batch_sequences: 4 sequence_length: " +
                            std::to_string(length && *length < 1000 ? *length : 4)
                      : "global_batch_samples: 4";
  desc::Result<desc::RecipeSpec> recipe = desc::parseRecipe(text);
  require(bool(recipe), "a good recipe is accepted");
  return *recipe;
}

/// Builds the module of `graph`, and its derivative.
void compile(const onnx::Graph &graph, const std::vector<std::string> &constants) {
  desc::ModelSpec model;
  model.name = "model";
  model.graph = desc::GraphSpec{graph.path, constants, 0, {}};
  mlir::DialectRegistry registry;
  registerScalarOpModels(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  desc::Diagnostics problems;
  mlir::OwningOpRef<mlir::ModuleOp> imported =
      importGraph(context, graph, model, recipeFor(graph), {}, problems);
  checkProblems(problems, bool(imported));
  if (!imported) {
    return;
  }
  mlir::PassManager manager(&context);
  buildImportPipeline(manager);
  buildDifferentiatePipeline(manager, nullptr);
  require(mlir::succeeded(manager.run(*imported)),
          "what is imported is a legal module with a derivative");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Place place;
  bool isBinary = size > 0 && data[0] == 0x08;
  std::string source = place.above.write(isBinary ? "in/model.onnx" : "in/model.textproto",
                                         std::string(reinterpret_cast<const char *>(data), size));
  desc::Result<onnx::Imported> imported = onnx::importFile(source, place.above.file("out"));
  checkProblems(imported.diagnostics(), bool(imported));
  if (!imported) {
    return 0;
  }
  for (const char *name : {"out/model.onnx", "out/weights.safetensors"}) {
    require(place.above.read(name).find(place.secret) == std::string::npos,
            "nothing is read from outside of the folder");
  }
  desc::Result<onnx::Graph> graph = onnx::loadGraph(place.above.file("out/model.onnx"));
  require(bool(graph), "what is written can be read");
  compile(*graph, imported->constants);
  return 0;
}
