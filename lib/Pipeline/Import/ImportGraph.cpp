//===- ImportGraph.cpp - from an ONNX graph to the loss -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Import/ImportGraph.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "GraphBuilder.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"

#include <cmath>

using namespace mlir;
using namespace weft;

namespace {

/// Builds the module of one graph.
class GraphImporter {
public:
  GraphImporter(ModelBuilder &builder, const GraphParameters &parameters,
                const ImportOptions &options, desc::Diagnostics &problems)
      : builder(builder), parameters(parameters), graph(parameters.graph), options(options),
        problems(problems) {}

  bool checkInput();
  /// Checks that no parameter has a name that programs use themselves, and that initial values are
  /// finite.
  bool checkTensors();
  void declare();
  /// Builds the loss of the graph's logits in the current function; returns null after an error.
  Value buildLoss(ModelBuilder &ops, bool isTraining);
  void buildInit();
  int64_t getClasses() const { return classes; }

private:
  bool fail(std::string where, std::string message) {
    problems.push_back(onnx::problem(graph.path, std::move(where), std::move(message)));
    return false;
  }
  bool readsTokens() const { return !onnx::isFloat(graph.inputs.front().type); }
  RankedTensorType inputType(ModelBuilder &ops) const;
  RankedTensorType targetType(ModelBuilder &ops) const;
  Value fill(const onnx::Initializer &initializer, Value seed);

  ModelBuilder &builder;
  const GraphParameters &parameters;
  const onnx::Graph &graph;
  const ImportOptions &options;
  desc::Diagnostics &problems;
  /// The shape without the batch.
  llvm::SmallVector<int64_t> sampleShape;
  int64_t classes = 0;
};

bool GraphImporter::checkInput() {
  if (graph.inputs.size() != 1 || graph.outputs.empty()) {
    std::string names;
    for (const onnx::Port &port : graph.inputs) {
      names += (names.empty() ? "'" : ", '") + port.name + "'";
    }
    return fail("", "expected one input, tokens or images, and logits as the first output, got " +
                        std::to_string(graph.inputs.size()) + " inputs" +
                        (names.empty() ? "" : ": " + names));
  }
  const onnx::Port &input = graph.inputs.front();
  std::string where = "input '" + input.name + "'";
  size_t rank = input.dimensions.size();
  if (readsTokens() ? rank != 2 : rank < 2) {
    return fail(where, "expected tokens [batch, sequence], or numbers of at least two dimensions, "
                       "of which the first is the batch, got " +
                           std::to_string(rank) + " dimensions of " + onnx::nameOf(input.type));
  }
  if (const auto *size = std::get_if<int64_t>(&input.dimensions[0])) {
    return fail(where, "expected a first dimension of any length, the batch, got " +
                           std::to_string(*size) + "; export with a dynamic batch");
  }
  int64_t length = builder.recipe.sequenceLength;
  for (size_t i = 1; i < rank; ++i) {
    const auto *size = std::get_if<int64_t>(&input.dimensions[i]);
    if (!size && !readsTokens()) {
      return fail(where, "expected dimension " + std::to_string(i) + " of a known length, got '" +
                             std::get<std::string>(input.dimensions[i]) + "'");
    }
    sampleShape.push_back(size ? *size : length);
  }
  if (readsTokens() && length == 0) {
    return fail(where, "takes tokens; the recipe lacks a sequence_length");
  }
  if (readsTokens() && sampleShape[0] != length) {
    return fail(where, "takes sequences of " + std::to_string(sampleShape[0]) +
                           " tokens; the recipe's sequence_length is " + std::to_string(length));
  }
  return readsTokens() || length == 0 ||
         fail(where, "takes no tokens; the recipe's sequence_length of " + std::to_string(length) +
                         " has no effect");
}

bool GraphImporter::checkTensors() {
  static const std::set<llvm::StringRef> taken = {
      "tokens", "targets", "images", "labels", "seed", "step_number", "loss", "init", "evaluate"};
  for (const auto *list : {&parameters.inOrder, &parameters.statisticsInOrder}) {
    for (const onnx::Initializer *initializer : *list) {
      std::string where = "initializer '" + initializer->name + "'";
      std::vector<double> values = initializer->read().values;
      auto wrong = llvm::find_if(values, [](double value) { return !std::isfinite(value); });
      if (wrong != values.end()) {
        return fail(where, "expected finite numbers, got " + std::to_string(*wrong));
      }
      if (taken.contains(initializer->name)) {
        return fail(where, "has a name that programs use themselves; rename it");
      }
    }
  }
  return true;
}

RankedTensorType GraphImporter::inputType(ModelBuilder &ops) const {
  llvm::SmallVector<int64_t> shape{ShapedType::kDynamic};
  shape.append(sampleShape);
  return readsTokens() ? RankedTensorType::get(shape, ops.builder.getI32Type())
                       : ops.wideType(shape);
}

RankedTensorType GraphImporter::targetType(ModelBuilder &ops) const {
  llvm::SmallVector<int64_t> shape{ShapedType::kDynamic};
  if (readsTokens()) {
    shape.append(sampleShape);
  }
  return RankedTensorType::get(shape, ops.builder.getI32Type());
}

void GraphImporter::declare() {
  for (const onnx::Initializer *initializer : parameters.inOrder) {
    llvm::SmallVector<std::string> names;
    int64_t wide = 0;
    for (auto [axis, size] : llvm::enumerate(initializer->shape)) {
      names.push_back("d" + std::to_string(axis)); // GraphBuilder names those it knows.
      wide += size > 1;
    }
    llvm::SmallVector<llvm::StringRef> dimensions(names.begin(), names.end());
    declareVariable(builder, VariableRole::Parameter, initializer->name, dimensions,
                    /*decays=*/wide > 1, builder.wideType(initializer->shape));
  }
  for (const onnx::Initializer *initializer : parameters.statisticsInOrder) {
    declareVariable(builder, VariableRole::Statistic, initializer->name, {"channel"}, false,
                    builder.wideType(initializer->shape));
  }
  llvm::SmallVector<llvm::StringRef> dimensions{"batch"};
  if (readsTokens()) {
    dimensions.push_back("sequence");
    declareVariable(builder, VariableRole::Input, "tokens", dimensions, false, inputType(builder));
    declareVariable(builder, VariableRole::Input, "targets", dimensions, false,
                    targetType(builder));
  } else {
    declareVariable(builder, VariableRole::Input, "labels", dimensions, false, targetType(builder));
    for (llvm::StringRef name : {"channel", "height", "width", "depth"}) {
      if (dimensions.size() <= sampleShape.size()) {
        dimensions.push_back(name);
      }
    }
    declareVariable(builder, VariableRole::Input, "images", dimensions, false, inputType(builder));
  }
  declareCounters(builder);
  declareOptimizer(builder);
}

/// Erases ops that were built before a pattern was recognized, and are not needed after.
void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isOpTriviallyDead(&op)) {
      op.erase();
    }
  }
}

Value GraphImporter::buildLoss(ModelBuilder &ops, bool isTraining) {
  llvm::StringRef input = readsTokens() ? "tokens" : "images";
  GraphBuilder nodes(ops, parameters, isTraining, problems);
  Value given = ops.read(input, inputType(ops));
  Value logits = nodes.buildLogits(readsTokens() ? given : ops.round(input, given));
  if (!logits) {
    return {};
  }
  logits = ops.round("logits", logits);
  RankedTensorType target = targetType(ops);
  auto shape = llvm::cast<RankedTensorType>(logits.getType()).getShape();
  if (shape.empty() || shape.drop_back() != target.getShape() ||
      ShapedType::isDynamic(shape.back())) {
    fail("output '" + graph.outputs.front().name + "'",
         readsTokens() ? "expected logits [batch, sequence, vocabulary]"
                       : "expected logits [batch, class]");
    return {};
  }
  classes = shape.back();
  if (options.observesLogits && !isTraining) {
    ObserveOp::create(ops.builder, ops.location("logits"), "logits", logits);
  }
  Value targets = ops.read(readsTokens() ? "targets" : "labels", target);
  return buildCrossEntropy(ops, logits, targets);
}

/// Builds random values with the same deviation as those in the file, or a constant if all are
/// equal.
Value GraphImporter::fill(const onnx::Initializer &initializer, Value seed) {
  Location location = builder.location(initializer.name);
  RankedTensorType type = builder.wideType(initializer.shape);
  onnx::Constant values = initializer.read();
  double largest = 0, squares = 0;
  for (double value : values.values) {
    largest = std::max(largest, std::fabs(value));
  }
  for (double value : values.values) {
    squares += largest == 0 ? 0 : (value / largest) * (value / largest);
  }
  double deviation = largest * std::sqrt(squares / static_cast<double>(values.values.size()));
  if (initializer.isUniform() || largest == 0) {
    return FillOp::create(builder.builder, location, type, values.values.front());
  }
  Value stream = builder.index(initializer.name, static_cast<int64_t>(streamOf(initializer.name)));
  return FillOp::create(builder.builder, location, type, deviation, seed, stream);
}

void GraphImporter::buildInit() {
  builder.function("init", {}, {}, /*isPrivate=*/false);
  Value seed = builder.read("seed", builder.counterType());
  auto assign = [&](const onnx::Initializer &initializer, Value value) {
    AssignOp::create(builder.builder, builder.location(initializer.name), initializer.name, value);
  };
  for (const onnx::Initializer *initializer : parameters.inOrder) {
    assign(*initializer, fill(*initializer, seed));
  }
  for (const onnx::Initializer *initializer : parameters.statisticsInOrder) {
    bool isVariance = parameters.isVariance(initializer->name);
    assign(*initializer,
           FillOp::create(builder.builder, builder.location(initializer->name),
                          builder.wideType(initializer->shape), isVariance ? 1.0 : 0.0));
  }
  func::ReturnOp::create(builder.builder, builder.location("init"));
}

} // namespace

OwningOpRef<ModuleOp> weft::importGraph(MLIRContext &context, const onnx::Graph &graph,
                                        const desc::ModelSpec &model,
                                        const desc::RecipeSpec &recipe,
                                        const ImportOptions &options, desc::Diagnostics &problems) {
  context.loadDialect<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context), model.name);
  OpBuilder ops(module->getBodyRegion());
  ModelBuilder builder(ops, model, recipe);
  GraphParameters parameters(graph, *model.graph);
  GraphImporter importer(builder, parameters, options, problems);
  if (!importer.checkInput() || !importer.checkTensors()) {
    return {};
  }
  importer.declare();

  func::FuncOp loss = builder.function("loss", {}, builder.wideType({}), /*isPrivate=*/false);
  Value value = importer.buildLoss(builder, /*isTraining=*/true);
  if (!value) {
    return {};
  }
  func::ReturnOp::create(ops, builder.location("loss"), value);
  eraseUnused(loss.getBody().front());
  importer.buildInit();

  desc::RecipeSpec plain = forEvaluation(recipe);
  ModelBuilder evaluation(ops, model, plain);
  func::FuncOp evaluate = evaluation.function("evaluate", {}, {}, /*isPrivate=*/false);
  value = importer.buildLoss(evaluation, /*isTraining=*/false);
  if (!value) {
    return {};
  }
  ObserveOp::create(ops, evaluation.location("loss"), "validation_loss", value);
  func::ReturnOp::create(ops, evaluation.location("loss"));
  eraseUnused(evaluate.getBody().front());
  module.get()->setAttr(kClassesAttrName, ops.getI64IntegerAttr(importer.getClasses()));
  return module;
}
