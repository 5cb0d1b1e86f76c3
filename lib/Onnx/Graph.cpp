//===- Graph.cpp - an ONNX model after it is read and checked -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Graph.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace weft::onnx {

static_assert(std::endian::native == std::endian::little, "ONNX's bytes are little-endian");

const char *nameOf(ElementType type) {
  switch (type) {
  case ElementType::F32:
    return "float32";
  case ElementType::F64:
    return "float64";
  case ElementType::I64:
    return "int64";
  case ElementType::I32:
    return "int32";
  case ElementType::Bool:
    return "bool";
  }
  return "";
}

int64_t sizeOf(ElementType type) {
  switch (type) {
  case ElementType::F64:
  case ElementType::I64:
    return 8;
  case ElementType::F32:
  case ElementType::I32:
    return 4;
  case ElementType::Bool:
    return 1;
  }
  return 0;
}

bool isFloat(ElementType type) { return type == ElementType::F32 || type == ElementType::F64; }

bool isReasonable(const std::vector<int64_t> &shape) {
  constexpr int64_t kMost = int64_t(1) << 40;
  int64_t product = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > kMost / product) {
      return false;
    }
    product *= std::max<int64_t>(size, 1);
  }
  return shape.size() <= 16;
}

int64_t elementCount(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape) {
    count *= size;
  }
  return count;
}

std::string Node::describe() const {
  return "node " + std::to_string(number) + " (" + op + (name.empty() ? "" : " '" + name + "'") +
         ")";
}

std::string_view Node::input(size_t index) const {
  return index < inputs.size() ? std::string_view(inputs[index]) : std::string_view();
}

int64_t Initializer::elementCount() const { return onnx::elementCount(shape); }

template <typename T>
static void copyNumbers(std::span<const char> bytes, std::vector<double> &values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T number; // Bytes of a file lie at any address.
    std::memcpy(&number, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(number);
  }
}

Constant Initializer::read() const {
  Constant constant{type, shape, std::vector<double>(static_cast<size_t>(elementCount()))};
  switch (type) {
  case ElementType::F32:
    copyNumbers<float>(bytes, constant.values);
    break;
  case ElementType::F64:
    copyNumbers<double>(bytes, constant.values);
    break;
  case ElementType::I64:
    copyNumbers<int64_t>(bytes, constant.values);
    break;
  case ElementType::I32:
    copyNumbers<int32_t>(bytes, constant.values);
    break;
  case ElementType::Bool:
    copyNumbers<char>(bytes, constant.values);
    break;
  }
  return constant;
}

bool Initializer::isUniform() const {
  auto width = static_cast<size_t>(sizeOf(type));
  for (size_t i = width; i < bytes.size(); i += width) {
    if (std::memcmp(bytes.data(), bytes.data() + i, width) != 0) {
      return false;
    }
  }
  return true;
}

const Initializer *Graph::initializer(std::string_view name) const {
  auto found = initializers.find(name);
  return found == initializers.end() ? nullptr : &found->second;
}

std::vector<const Node *> liveNodes(const Graph &graph) {
  std::set<std::string_view> wanted{graph.outputs.front().name};
  std::vector<const Node *> nodes;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (std::any_of(node->outputs.begin(), node->outputs.end(), [&](const std::string &name) {
          return !name.empty() && wanted.contains(name);
        })) {
      nodes.push_back(&*node);
      wanted.insert(node->inputs.begin(), node->inputs.end());
    }
  }
  std::reverse(nodes.begin(), nodes.end());
  return nodes;
}

desc::Diagnostic problem(const std::string &path, std::string where, std::string message) {
  // Names may have any characters, but a message is one line.
  for (std::string *text : {&where, &message}) {
    std::replace_if(
        text->begin(), text->end(), [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  }
  return {{path, 0, 0}, std::move(where), "", std::move(message)};
}

} // namespace weft::onnx
