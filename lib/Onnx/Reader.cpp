//===- Reader.cpp - reads ONNX files --------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelFile.h"
#include "Tensors.h"

namespace weft::onnx {

namespace {

/// Reads the Graph of one file, and lists its errors.
class Reader {
public:
  Reader(const std::string &path, Graph &graph, desc::Diagnostics &problems)
      : path(path), graph(graph), problems(problems) {}

  void read(const std::shared_ptr<const ::onnx::ModelProto> &model);

private:
  void readOpsets(const ::onnx::ModelProto &model);
  void readPorts(const ::onnx::GraphProto &from);
  std::optional<Port> readPort(const ::onnx::ValueInfoProto &from, const char *what);
  void readInitializers(const ::onnx::GraphProto &from);
  void readNodes(const ::onnx::GraphProto &from);
  void readAttribute(const ::onnx::AttributeProto &from, Node &node);
  void checkNames();

  void error(std::string where, std::string message) {
    problems.push_back(problem(path, std::move(where), std::move(message)));
  }

  const std::string &path;
  Graph &graph;
  desc::Diagnostics &problems;
};

void Reader::read(const std::shared_ptr<const ::onnx::ModelProto> &model) {
  graph.path = path;
  graph.storage.push_back(model);
  readOpsets(*model);
  const ::onnx::GraphProto &from = model->graph();
  if (model->functions_size() > 0) {
    error("", "has functions of its own ('" + model->functions(0).name() +
                  "'), which are not supported; inline them with onnx.inliner");
  }
  if (from.sparse_initializer_size() > 0) {
    error("", "has sparse initializers, which are not supported");
  }
  readInitializers(from);
  readPorts(from);
  readNodes(from);
  if (problems.empty()) {
    checkNames();
  }
}

void Reader::readOpsets(const ::onnx::ModelProto &model) {
  for (const ::onnx::OperatorSetIdProto &set : model.opset_import()) {
    if (set.domain().empty() || set.domain() == "ai.onnx") {
      graph.opset = set.version();
    }
  }
  if (graph.opset < kOldestOpset || graph.opset > kNewestOpset) {
    error("", "expected operator set " + std::to_string(kOldestOpset) + " to " +
                  std::to_string(kNewestOpset) + ", got " + std::to_string(graph.opset));
  }
}

std::optional<Port> Reader::readPort(const ::onnx::ValueInfoProto &from, const char *what) {
  Port port;
  port.name = from.name();
  std::string where = what + (" '" + from.name() + "'");
  if (!from.type().has_tensor_type()) {
    error(where, "expected a tensor");
    return std::nullopt;
  }
  const ::onnx::TypeProto_Tensor &type = from.type().tensor_type();
  std::optional<ElementType> element = elementTypeOf(type.elem_type());
  if (!element) {
    error(where, "expected elements of type FLOAT, DOUBLE, INT64, INT32 or BOOL, got " +
                     typeName(type.elem_type()));
    return std::nullopt;
  }
  port.type = *element;
  int number = 0;
  for (const ::onnx::TensorShapeProto_Dimension &dimension : type.shape().dim()) {
    if (dimension.has_dim_value()) {
      if (dimension.dim_value() < 1 || dimension.dim_value() > (int64_t(1) << 32)) {
        error(where, "expected dimension " + std::to_string(number) + " of 1 to 2^32, got " +
                         std::to_string(dimension.dim_value()));
        return std::nullopt;
      }
      port.dimensions.emplace_back(dimension.dim_value());
    } else {
      std::string name = dimension.dim_param();
      port.dimensions.emplace_back(name.empty() ? from.name() + ":" + std::to_string(number)
                                                : name);
    }
    ++number;
  }
  std::vector<int64_t> known;
  for (const Dimension &dimension : port.dimensions) {
    const auto *length = std::get_if<int64_t>(&dimension);
    known.push_back(length ? *length : 1);
  }
  if (!isReasonable(known)) {
    error(where, "has an impossible shape");
    return std::nullopt;
  }
  return port;
}

void Reader::readPorts(const ::onnx::GraphProto &from) {
  for (const ::onnx::ValueInfoProto &value : from.input()) {
    if (graph.initializer(value.name())) {
      continue;
    }
    if (std::optional<Port> port = readPort(value, "input")) {
      graph.inputs.push_back(std::move(*port));
    }
  }
  for (const ::onnx::ValueInfoProto &value : from.output()) {
    if (std::optional<Port> port = readPort(value, "output")) {
      graph.outputs.push_back(std::move(*port));
    }
  }
}

void Reader::readInitializers(const ::onnx::GraphProto &from) {
  TensorReader tensors(path, graph.storage);
  for (const ::onnx::TensorProto &tensor : from.initializer()) {
    if (tensor.name().empty()) {
      error("initializer " + std::to_string(graph.order.size()), "has no name");
    } else if (rt::Result<Initializer> initializer = tensors.read(tensor); !initializer) {
      error("initializer '" + tensor.name() + "'", initializer.error().message);
    } else if (!graph.initializers.emplace(tensor.name(), *initializer).second) {
      error("initializer '" + tensor.name() + "'", "occurs twice in the file");
    } else {
      graph.order.push_back(tensor.name());
    }
  }
}

void Reader::readAttribute(const ::onnx::AttributeProto &from, Node &node) {
  using Proto = ::onnx::AttributeProto;
  Attribute &attribute = node.attributes[from.name()];
  switch (from.type()) {
  case Proto::INT:
    attribute = static_cast<int64_t>(from.i());
    return;
  case Proto::FLOAT:
    attribute = static_cast<double>(from.f());
    return;
  case Proto::STRING:
    attribute = from.s();
    return;
  case Proto::INTS:
    attribute = std::vector<int64_t>(from.ints().begin(), from.ints().end());
    return;
  case Proto::FLOATS:
    attribute = std::vector<double>(from.floats().begin(), from.floats().end());
    return;
  case Proto::TENSOR: {
    rt::Result<Initializer> initializer = TensorReader(path, graph.storage).read(from.t());
    if (initializer) {
      attribute = initializer->read();
    } else {
      error(node.describe(), "attribute '" + from.name() + "': " + initializer.error().message);
    }
    return;
  }
  default:
    error(node.describe(), "attribute '" + from.name() + "' of type " +
                               Proto::AttributeType_Name(from.type()) + " is not supported");
  }
}

void Reader::readNodes(const ::onnx::GraphProto &from) {
  for (const ::onnx::NodeProto &proto : from.node()) {
    Node node;
    node.number = static_cast<int64_t>(graph.nodes.size());
    node.op = proto.op_type();
    node.name = proto.name();
    node.inputs.assign(proto.input().begin(), proto.input().end());
    node.outputs.assign(proto.output().begin(), proto.output().end());
    if (!proto.domain().empty() && proto.domain() != "ai.onnx") {
      error(node.describe(),
            "ops of domain '" + proto.domain() + "' are not supported, only those of ai.onnx");
    }
    if (node.outputs.empty()) {
      error(node.describe(), "has no output");
    }
    for (const ::onnx::AttributeProto &attribute : proto.attribute()) {
      readAttribute(attribute, node);
    }
    graph.nodes.push_back(std::move(node));
  }
}

/// Checks that every value is defined once, before its uses.
void Reader::checkNames() {
  std::set<std::string, std::less<>> known(graph.order.begin(), graph.order.end());
  auto define = [&](const std::string &name, const std::string &where) {
    if (!name.empty() && !known.insert(name).second) {
      error(where, "value '" + name + "' is defined twice");
    }
  };
  for (const Port &port : graph.inputs) {
    define(port.name, "input '" + port.name + "'");
  }
  for (const Node &node : graph.nodes) {
    for (const std::string &name : node.inputs) {
      if (!name.empty() && !known.contains(name)) {
        error(node.describe(), "uses value '" + name + "', which no earlier node computes");
      }
    }
    for (const std::string &name : node.outputs) {
      define(name, node.describe());
    }
  }
  for (const Port &port : graph.outputs) {
    if (!known.contains(port.name)) {
      error("output '" + port.name + "'", "no node computes this value");
    }
  }
}

} // namespace

desc::Result<Graph> readGraph(const std::string &path,
                              const std::shared_ptr<const ::onnx::ModelProto> &model) {
  Graph graph;
  desc::Diagnostics problems;
  Reader(path, graph, problems).read(model);
  if (!problems.empty()) {
    return problems;
  }
  return graph;
}

desc::Result<Graph> loadGraph(const std::string &path) {
  rt::Result<std::shared_ptr<::onnx::ModelProto>> model = parseModel(path);
  if (!model) {
    return desc::Diagnostics{problem(path, "", model.error().message)};
  }
  return readGraph(path, *model);
}

} // namespace weft::onnx
