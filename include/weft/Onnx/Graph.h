//===- Graph.h - an ONNX model after it is read and checked ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The nodes of an ONNX model, each after the nodes that it uses, and its tensors by name. Nothing
// here defines the meaning of ops; lib/Pipeline/Import does.
//
// https://github.com/onnx/onnx/blob/main/docs/IR.md defines the format.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_ONNX_GRAPH_H
#define WEFT_ONNX_GRAPH_H

#include "weft/Description/Diagnostic.h"
#include "weft/Onnx/Constant.h"

#include <map>
#include <memory>
#include <set>
#include <span>
#include <variant>

namespace weft::onnx {

/// The value of an attribute.
using Attribute =
    std::variant<int64_t, double, std::string, std::vector<int64_t>, std::vector<double>, Constant>;

/// One op of the graph.
struct Node {
  /// Its number in the file, from 0, and its name, which may be empty.
  int64_t number = 0;
  std::string op, name;
  /// Names of values; empty for an omitted input or output.
  std::vector<std::string> inputs, outputs;
  std::map<std::string, Attribute> attributes;

  /// Returns "node 12 (Conv '/conv1/Conv')".
  std::string describe() const;
  /// Returns the name of input `index`; empty if it is omitted.
  std::string_view input(size_t index) const;
};

/// A dimension of an input or output: its length, or a name that stands for it.
using Dimension = std::variant<int64_t, std::string>;

/// An input or output of the graph. An output whose shape is not in the file has no dimensions.
struct Port {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<Dimension> dimensions;
};

/// A tensor that comes with the model: a weight, a buffer or a constant.
struct Initializer {
  std::string name;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  /// The elements, row-major and little-endian; not aligned. Owned by the graph.
  std::span<const char> bytes;

  int64_t elementCount() const;
  /// The elements as numbers.
  Constant read() const;
  /// Returns true if all elements are the same number.
  bool isUniform() const;
};

/// A model that has been read and checked. Immutable; any number of threads may read.
struct Graph {
  /// The file, as the user gave it.
  std::string path;
  int64_t opset = 0;
  /// Inputs do not include initializers, which older files list among them.
  std::vector<Port> inputs, outputs;
  std::vector<Node> nodes;
  std::map<std::string, Initializer, std::less<>> initializers;
  /// Names of `initializers` in the order of the file.
  std::vector<std::string> order;
  /// Owns the bytes of initializers.
  std::vector<std::shared_ptr<const void>> storage;

  const Initializer *initializer(std::string_view name) const;
};

/// Returns the nodes that the first output depends on, in the order of the file.
/// REQUIRES: there is an output.
std::vector<const Node *> liveNodes(const Graph &graph);

/// The operator sets that Weft reads: versions of ai.onnx from `kOldestOpset` to `kNewestOpset`.
inline constexpr int64_t kOldestOpset = 13, kNewestOpset = 23;

/// Reads an ONNX file and its external data. Fails if a file cannot be read, is damaged, is too
/// large for protobuf, or has unsupported parts: functions, quantized or sparse tensors, ops of
/// other domains. Then lists all errors.
desc::Result<Graph> loadGraph(const std::string &path);

/// Makes an error in the file `path` at `where` ("node 12 (Conv '/conv1/Conv')").
desc::Diagnostic problem(const std::string &path, std::string where, std::string message);

} // namespace weft::onnx

#endif // WEFT_ONNX_GRAPH_H
