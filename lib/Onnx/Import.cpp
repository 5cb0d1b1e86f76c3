//===- Import.cpp - splits an ONNX file into graph and parameters ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Import.h"

#include "ModelFile.h"
#include "Schema.h"

#include "support/OutputFile.h"
#include "support/Safetensors.h"
#include "support/Text.h"

#include <algorithm>
#include <filesystem>

namespace weft::onnx {

namespace {

using Proto = ::onnx::TensorProto;

/// Splits parameters that the exporter has merged because all of their elements are the same
/// number: each use gets its own tensor, named after the value that is computed from it.
class Parting {
public:
  Parting(::onnx::GraphProto &graph, const Graph &read) : graph(graph), read(read) {}

  int64_t run();

private:
  bool isUniform(const std::string &name) const;
  void addCopy(const std::string &of, const std::string &name);

  ::onnx::GraphProto &graph;
  const Graph &read;
  int64_t parted = 0;
};

bool Parting::isUniform(const std::string &name) const {
  const Initializer *initializer = read.initializer(name);
  return initializer && isFloat(initializer->type) && initializer->elementCount() > 1 &&
         initializer->isUniform();
}

void Parting::addCopy(const std::string &of, const std::string &name) {
  for (const Proto &tensor : graph.initializer()) {
    if (tensor.name() == of) {
      Proto copy = tensor;
      copy.set_name(name);
      *graph.add_initializer() = std::move(copy);
      ++parted;
      return;
    }
  }
}

int64_t Parting::run() {
  // The TorchScript exporter merges tensors by Identity nodes.
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> kept;
  for (::onnx::NodeProto &node : *graph.mutable_node()) {
    if (node.op_type() == "Identity" && node.input_size() == 1 && isUniform(node.input(0))) {
      addCopy(node.input(0), node.output(0));
    } else {
      *kept.Add() = std::move(node);
    }
  }
  graph.mutable_node()->Swap(&kept);
  // The other exporter uses one tensor several times.
  std::set<std::string> seen;
  for (::onnx::NodeProto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input()) {
      if (isUniform(input) && !seen.insert(input).second) {
        std::string name = input + "@" + node.output(0);
        addCopy(input, name);
        input = name;
      }
    }
  }
  return parted;
}

/// Writes `tensors` of `graph` one after another, and records their places in their messages.
rt::Status writeWeights(const std::string &path, const std::vector<Proto *> &tensors,
                        const Graph &graph) {
  std::vector<rt::TensorHeader> headers;
  for (const Proto *tensor : tensors) {
    const Initializer &initializer = *graph.initializer(tensor->name());
    headers.push_back(
        {tensor->name(),
         initializer.type == ElementType::F64 ? rt::ElementType::F64 : rt::ElementType::F32,
         initializer.shape});
  }
  std::string header = rt::safetensorsHeader(headers, {{"format", "weft"}});
  rt::OutputFile file;
  rt::Status status = file.open(path);
  status = status ? file.write(header) : status;
  size_t offset = header.size();
  for (Proto *tensor : tensors) {
    std::span<const char> bytes = graph.initializer(tensor->name())->bytes;
    status = status ? file.write(bytes) : status;
    clearElements(*tensor);
    tensor->set_data_location(Proto::EXTERNAL);
    auto add = [&](const char *key, const std::string &value) {
      ::onnx::StringStringEntryProto *entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    };
    add("location", std::filesystem::path(path).filename().string());
    add("offset", std::to_string(offset));
    add("length", std::to_string(bytes.size()));
    offset += bytes.size();
  }
  return status ? file.commit() : status;
}

/// Moves the elements of `tensor` into the message itself.
void writeInside(Proto &tensor, const Initializer &initializer) {
  std::string bytes(initializer.bytes.begin(), initializer.bytes.end());
  clearElements(tensor);
  tensor.clear_data_location();
  tensor.set_raw_data(std::move(bytes));
}

rt::Status writeModel(const std::string &path, const ::onnx::ModelProto &model) {
  std::string bytes;
  if (!model.SerializeToString(&bytes)) {
    return rt::makeError("the graph without its parameters is too large to be written");
  }
  return rt::writeFile(path, bytes);
}

/// Finds the tensors for the safetensors file: parameters, and the statistics of batch norms.
std::vector<Proto *> keptTensors(::onnx::GraphProto &to, const Graph &graph,
                                 const std::vector<std::string> &constants) {
  std::set<std::string, std::less<>> used, statistics;
  std::set<std::string> excluded(constants.begin(), constants.end());
  for (const Node *node : liveNodes(graph)) {
    used.insert(node->inputs.begin(), node->inputs.end());
    if (node->op == "BatchNormalization") {
      statistics.insert({std::string(node->input(3)), std::string(node->input(4))});
    }
  }
  std::vector<Proto *> tensors;
  for (Proto &tensor : *to.mutable_initializer()) {
    const Initializer &initializer = *graph.initializer(tensor.name());
    bool isTrained = initializer.elementCount() > 1 && used.contains(tensor.name()) &&
                     !excluded.contains(tensor.name());
    if (isFloat(initializer.type) && (isTrained || statistics.contains(tensor.name()))) {
      tensors.push_back(&tensor);
    } else {
      writeInside(tensor, initializer);
    }
  }
  return tensors;
}

} // namespace

desc::Result<Imported> importFile(const std::string &source, const std::string &folder) {
  desc::Result<Graph> merged = loadGraph(source);
  if (!merged) {
    return merged.diagnostics();
  }
  auto fail = [&](const std::string &error) {
    return desc::Diagnostics{problem(source, "", error)};
  };
  if (merged->outputs.empty()) {
    return fail("has no output");
  }
  rt::Result<std::shared_ptr<::onnx::ModelProto>> model = parseModel(source);
  if (!model) {
    return fail(model.error().message);
  }
  Imported result;
  result.parted = Parting(*(*model)->mutable_graph(), *merged).run();
  desc::Result<Graph> graph = readGraph(source, *model);
  if (!graph) {
    return graph.diagnostics();
  }
  result.constants = guessConstants(*graph);
  result.nodes = static_cast<int64_t>(graph->nodes.size());
  result.opset = graph->opset;
  // The graph's tensors refer to the messages, which are changed below.
  auto written = std::make_shared<::onnx::ModelProto>(**model);
  std::vector<Proto *> tensors = keptTensors(*written->mutable_graph(), *graph, result.constants);
  for (const Proto *tensor : tensors) {
    ++result.tensors;
    result.elements += graph->initializer(tensor->name())->elementCount();
  }
  std::filesystem::path target(folder);
  rt::Status status = writeWeights((target / "weights.safetensors").string(), tensors, *graph);
  status = status ? writeModel((target / "model.onnx").string(), *written) : status;
  if (!status) {
    return fail(status.error().message);
  }
  return result;
}

} // namespace weft::onnx
