//===- GraphBuilder.cpp - the nodes of an ONNX graph as ops ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "weft/Onnx/Slices.h"

using namespace mlir;
using namespace weft;

const std::map<std::string, GraphBuilder::Handler> &GraphBuilder::handlers() {
  static const std::map<std::string, Handler> table = {
      {"Abs", &GraphBuilder::unary},
      {"Add", &GraphBuilder::binary},
      {"AveragePool", &GraphBuilder::pool},
      {"BatchNormalization", &GraphBuilder::batchNorm},
      {"Cast", &GraphBuilder::cast},
      {"CastLike", &GraphBuilder::cast},
      {"Clip", &GraphBuilder::clip},
      {"Concat", &GraphBuilder::concat},
      {"Conv", &GraphBuilder::convolution},
      {"Cos", &GraphBuilder::unary},
      {"Div", &GraphBuilder::binary},
      {"Dropout", &GraphBuilder::dropout},
      {"Einsum", &GraphBuilder::einsum},
      {"Erf", &GraphBuilder::unary},
      {"Exp", &GraphBuilder::unary},
      {"Expand", &GraphBuilder::expand},
      {"Flatten", &GraphBuilder::flatten},
      {"Gather", &GraphBuilder::gather},
      {"Gelu", &GraphBuilder::gelu},
      {"Gemm", &GraphBuilder::gemm},
      {"GlobalAveragePool", &GraphBuilder::globalPool},
      {"HardSigmoid", &GraphBuilder::unary},
      {"HardSwish", &GraphBuilder::unary},
      {"Identity", &GraphBuilder::identity},
      {"LayerNormalization", &GraphBuilder::layerNorm},
      {"LeakyRelu", &GraphBuilder::leakyRelu},
      {"Log", &GraphBuilder::unary},
      {"MatMul", &GraphBuilder::matMul},
      {"Max", &GraphBuilder::binary},
      {"MaxPool", &GraphBuilder::pool},
      {"Min", &GraphBuilder::binary},
      {"Mul", &GraphBuilder::binary},
      {"Neg", &GraphBuilder::unary},
      {"Pow", &GraphBuilder::power},
      {"RMSNormalization", &GraphBuilder::layerNorm},
      {"Reciprocal", &GraphBuilder::unary},
      {"ReduceMean", &GraphBuilder::reduce},
      {"ReduceSum", &GraphBuilder::reduce},
      {"Relu", &GraphBuilder::unary},
      {"Reshape", &GraphBuilder::reshape},
      {"SequenceAt", &GraphBuilder::sequenceAt},
      {"Shape", &GraphBuilder::shape},
      {"Sigmoid", &GraphBuilder::unary},
      {"Sin", &GraphBuilder::unary},
      {"Slice", &GraphBuilder::slice},
      {"Softmax", &GraphBuilder::softmax},
      {"Split", &GraphBuilder::split},
      {"SplitToSequence", &GraphBuilder::splitToSequence},
      {"Sqrt", &GraphBuilder::unary},
      {"Squeeze", &GraphBuilder::squeeze},
      {"Sub", &GraphBuilder::binary},
      {"Swish", &GraphBuilder::unary},
      {"Tanh", &GraphBuilder::unary},
      {"Transpose", &GraphBuilder::transpose},
      {"Unsqueeze", &GraphBuilder::unsqueeze},
      {"Where", &GraphBuilder::where},
  };
  return table;
}

bool GraphBuilder::fail(const onnx::Node &node, std::string message) {
  problems.push_back(onnx::problem(graph.path, node.describe(), std::move(message)));
  return false;
}

/// Returns the error of a value of the graph, or null.
static const char *faultOf(const View &view) {
  double elements = 1;
  int64_t batches = 0;
  for (const Parts &parts : view.dims) {
    for (const Part &part : parts) {
      bool isBatch = part.size == ShapedType::kDynamic;
      batches += isBatch;
      elements *= isBatch ? 1.0 : static_cast<double>(part.size);
    }
  }
  if (elements > 0x1p40) {
    return "makes more than 2^40 numbers of a sample";
  }
  if (batches > 1) {
    return "makes numbers of pairs of samples, which is not supported";
  }
  constexpr int64_t kMostDimensions = 16;
  bool isDeep = view.rank() > kMostDimensions ||
                llvm::cast<RankedTensorType>(view.tensor.getType()).getRank() > kMostDimensions;
  return isDeep ? "makes a tensor of more than 16 dimensions" : nullptr;
}

bool GraphBuilder::give(const onnx::Node &node, View view, size_t output) {
  if (const char *fault = faultOf(view)) {
    return fail(node, fault);
  }
  if (output < node.outputs.size()) {
    known[node.outputs[output]] = std::move(view);
  }
  return true;
}

bool GraphBuilder::give(const onnx::Node &node, onnx::Constant constant) {
  known[node.outputs[0]] = std::make_shared<const onnx::Constant>(std::move(constant));
  return true;
}

bool GraphBuilder::give(const onnx::Node &node, std::optional<View> view, const char *otherwise) {
  return view ? give(node, std::move(*view)) : fail(node, otherwise);
}

std::string GraphBuilder::nameOf(const onnx::Node &node) const {
  return node.outputs.empty() ? node.name : node.outputs.front();
}

const onnx::Node *GraphBuilder::producer(llvm::StringRef name) const {
  return producers.lookup(name);
}

/// Adds an error for every unsupported op, at its first node.
bool GraphBuilder::checkOps(llvm::ArrayRef<const onnx::Node *> nodes) {
  std::set<std::string> told;
  for (const onnx::Node *node : nodes) {
    if (!handlers().contains(node->op) && !onnx::canFold(node->op) &&
        told.insert(node->op).second) {
      fail(*node, "op '" + node->op + "' is not supported; docs/Onnx.md lists those that are");
    }
  }
  return told.empty();
}

Value GraphBuilder::buildLogits(Value input) {
  std::vector<const onnx::Node *> nodes = onnx::liveNodes(graph);
  if (!checkOps(nodes)) {
    return {};
  }
  for (const onnx::Node *node : nodes) {
    for (const std::string &name : node->outputs) {
      producers[name] = node;
    }
    for (const std::string &name : node->inputs) {
      lastUsers[name] = node;
    }
  }
  known[graph.inputs.front().name] = ViewBuilder::whole(input);
  for (const onnx::Node *node : nodes) {
    if (!build(*node)) {
      return {};
    }
    release(*node);
  }
  const std::string &name = graph.outputs.front().name;
  const auto *view = std::get_if<View>(&lookup(name));
  std::optional<Value> logits = view ? views.materialize(name, *view) : std::nullopt;
  if (!logits || !llvm::isa<FloatType>(getElementTypeOrSelf(logits->getType()))) {
    problems.push_back(onnx::problem(graph.path, "output '" + name + "'",
                                     "expected logits that depend on the input"));
    return {};
  }
  return *logits;
}

bool GraphBuilder::hold(const onnx::Node &node, const onnx::Constant &constant) {
  constexpr int64_t kMostFolded = int64_t(1) << 30, kMostHeld = int64_t(1) << 27;
  folded += static_cast<int64_t>(constant.values.size());
  held += static_cast<int64_t>(constant.values.size());
  if (held > kMostHeld) {
    return fail(node, "constants that are computed have more than 2^27 elements at a time");
  }
  return folded <= kMostFolded ||
         fail(node, "constants that are computed have more than 2^30 elements in all");
}

void GraphBuilder::release(const onnx::Node &node) {
  constexpr size_t kLarge = 1 << 16;
  for (const std::string &name : node.inputs) {
    auto found = known.find(name);
    const auto *constant = found == known.end() || lastUsers.lookup(name) != &node
                               ? nullptr
                               : std::get_if<std::shared_ptr<const onnx::Constant>>(&found->second);
    // A table that will become a part of another value is counted there.
    if (constant && (*constant)->values.size() >= kLarge && constant->use_count() == 1) {
      held -= graph.initializer(name) ? 0 : static_cast<int64_t>((*constant)->values.size());
      known.erase(found);
    }
  }
}

bool GraphBuilder::foldNode(const onnx::Node &node, bool &isFolded) {
  std::vector<const onnx::Constant *> inputs;
  isFolded = onnx::canFold(node.op);
  for (size_t i = 0; isFolded && i < node.inputs.size(); ++i) {
    inputs.push_back(constantOf(node, i));
    isFolded = inputs.back() || node.inputs[i].empty();
  }
  if (!isFolded) {
    return true;
  }
  rt::Result<std::vector<onnx::Constant>> results = onnx::fold(node, inputs);
  if (!results) {
    return fail(node, results.error().message);
  }
  for (auto [name, result] : llvm::zip(node.outputs, *results)) {
    if (!hold(node, result)) {
      return false;
    }
    known[name] = std::make_shared<const onnx::Constant>(std::move(result));
  }
  return true;
}

bool GraphBuilder::build(const onnx::Node &node) {
  bool isFolded = false;
  if (!foldNode(node, isFolded)) {
    return false;
  }
  if (isFolded) {
    return true;
  }
  auto handler = handlers().find(node.op);
  if (handler == handlers().end()) {
    return fail(node, "op '" + node.op +
                          "' is only supported where all of its inputs are known at "
                          "compile time");
  }
  return (this->*handler->second)(node);
}

const Known &GraphBuilder::lookup(llvm::StringRef name) {
  Known &value = known[name.str()];
  if (!std::holds_alternative<std::monostate>(value)) {
    return value;
  }
  const onnx::Initializer *initializer = graph.initializer(std::string_view(name));
  if (!initializer) {
    return value;
  }
  if (parameters.isParameter(name)) {
    value = ViewBuilder::whole(ops.read(name, ops.wideType(initializer->shape)));
  } else {
    value = std::make_shared<const onnx::Constant>(initializer->read());
  }
  return value;
}

const onnx::Constant *GraphBuilder::constantOf(const onnx::Node &node, size_t number) {
  std::string_view name = node.input(number);
  if (name.empty()) {
    return nullptr;
  }
  const auto *constant = std::get_if<std::shared_ptr<const onnx::Constant>>(&lookup(name));
  return constant ? constant->get() : nullptr;
}

std::optional<int64_t> GraphBuilder::integerOf(const onnx::Node &node, size_t number) {
  const onnx::Constant *constant = constantOf(node, number);
  return constant && constant->isScalar() ? std::optional(onnx::clampedInteger(constant->values[0]))
                                          : std::nullopt;
}

const View *GraphBuilder::viewOf(const onnx::Node &node, size_t number, bool takesIntegers) {
  std::string_view name = node.input(number);
  if (name.empty()) {
    fail(node, "expected input " + std::to_string(number));
    return nullptr;
  }
  const Known &value = lookup(name);
  if (const auto *view = std::get_if<View>(&value)) {
    if (takesIntegers || llvm::isa<FloatType>(getElementTypeOrSelf(view->tensor.getType()))) {
      return view;
    }
    fail(node, "input '" + std::string(name) +
                   "' is the graph's input, whose whole numbers are supported only as indices of "
                   "a table");
    return nullptr;
  }
  if (std::holds_alternative<WithTable>(value)) {
    fail(node, "input '" + std::string(name) +
                   "' has been added to, or multiplied by, a table of "
                   "numbers, which is supported only for rotary positions and causal masks");
  } else if (std::holds_alternative<std::shared_ptr<const onnx::Constant>>(value)) {
    fail(node, "expected input '" + std::string(name) +
                   "' to depend on the graph's input or on a "
                   "parameter, but it is constant");
  } else {
    fail(node, "input '" + std::string(name) + "' is no tensor");
  }
  return nullptr;
}

std::optional<std::vector<int64_t>> GraphBuilder::integersOf(const onnx::Node &node, size_t number,
                                                             const char *attribute) {
  if (const onnx::Constant *constant = constantOf(node, number)) {
    std::vector<int64_t> integers;
    for (double value : constant->values) {
      integers.push_back(onnx::clampedInteger(value));
    }
    return integers;
  }
  return onnx::integersAttribute(node, attribute);
}

bool GraphBuilder::isParameter(const View &view) const {
  Operation *op = view.tensor.getDefiningOp();
  while (op && llvm::isa<ReshapeOp>(op)) {
    op = op->getOperand(0).getDefiningOp();
  }
  return op && llvm::isa<ReadOp>(op) &&
         parameters.isParameter(llvm::cast<ReadOp>(op).getVariable());
}

void GraphBuilder::nameDimension(const View &view, int64_t dim, llvm::StringRef name) {
  auto read = view.tensor.getDefiningOp<ReadOp>();
  const Parts &parts = view.dims[static_cast<size_t>(dim)];
  if (!read || parts.size() != 1 || parts[0].isSpread()) {
    return;
  }
  auto variable = variables.lookupSymbolIn<VariableOp>(read->getParentOfType<ModuleOp>(),
                                                       read.getVariableAttr().getAttr());
  llvm::SmallVector<Attribute> names(variable.getDimensions().getAsRange<Attribute>());
  auto axis = static_cast<size_t>(parts[0].axis);
  Attribute attribute = ops.builder.getStringAttr(name);
  bool isNamed = llvm::cast<StringAttr>(names[axis]).getValue() != "d" + std::to_string(axis);
  if (!isNamed && !llvm::is_contained(names, attribute)) {
    names[axis] = attribute;
    variable.setDimensionsAttr(ops.builder.getArrayAttr(names));
  }
}

void GraphBuilder::nameWeight(const onnx::Node &node, const View &input, const View &weight,
                              int64_t inDim, int64_t outDim, View &output) {
  bool isHead = false;
  for (const std::string *name = &graph.outputs.front().name; !isHead;) {
    const onnx::Node *last = producer(*name);
    isHead = last == &node;
    if (!last || (last->op != "Add" && last->op != "Identity")) {
      break;
    }
    bool isBiasFirst = last->inputs.size() > 1 && parameters.isParameter(last->inputs[0]);
    name = &last->inputs[isBiasFirst ? 1 : 0];
  }
  nameDimension(weight, inDim, input.isInner ? "ffn" : "hidden");
  if (isHead) {
    nameDimension(weight, outDim,
                  graph.inputs.front().type == onnx::ElementType::F32 ? "classes" : "vocab");
    return;
  }
  nameDimension(weight, outDim, input.isInner ? "hidden" : "ffn");
  output.isInner = !input.isInner;
}
