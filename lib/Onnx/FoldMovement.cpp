//===- FoldMovement.cpp - evaluates ops that move elements of constants ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FoldParts.h"

#include "support/Text.h"
#include "weft/Onnx/Slices.h"

#include <algorithm>

namespace weft::onnx {

namespace {

using Shape = std::vector<int64_t>;
using Outputs = std::vector<Constant>;

/// Returns the integers of an optional input.
std::optional<Shape> integersOf(const std::vector<const Constant *> &inputs, size_t number) {
  if (number >= inputs.size() || !inputs[number]) {
    return std::nullopt;
  }
  Shape integers;
  for (double value : inputs[number]->values) {
    integers.push_back(clampedInteger(value));
  }
  return integers;
}

class Movement {
public:
  Movement(const Node &node, const std::vector<const Constant *> &inputs)
      : node(node), inputs(inputs), input(*inputs.front()) {}

  rt::Status identity() { return give(input); }
  rt::Status shape();
  rt::Status reshape();
  rt::Status flatten();
  rt::Status unsqueeze();
  rt::Status squeeze();
  rt::Status transpose();
  rt::Status gather();
  rt::Status concat();
  rt::Status slice();
  rt::Status split();

  Outputs outputs;

private:
  rt::Status give(Constant constant) {
    outputs.push_back(std::move(constant));
    return {};
  }
  /// Gives a constant of `shape` whose element at `index` is the input's at
  /// `offset` + sum of index[d] * strides[d].
  rt::Status giveElements(const Shape &shape, int64_t offset, const Shape &strides);
  rt::Status giveReshaped(const Shape &shape);
  /// `offsets[d] + i * strides[d]` of each dimension, `shape[d]` of them.
  rt::Status giveSlice(const Shape &shape, const Shape &offsets, const Shape &strides);

  const Node &node;
  const std::vector<const Constant *> &inputs;
  const Constant &input;
};

rt::Status Movement::giveReshaped(const Shape &shape) {
  if (!isReasonable(shape) || elementCount(shape) != static_cast<int64_t>(input.values.size())) {
    return rt::makeError("shape " + textOf(input.shape) + " does not reshape to " + textOf(shape));
  }
  return give({input.type, shape, input.values});
}

rt::Status Movement::shape() {
  ShapeRange range = shapeRange(node, input.rank());
  Constant result{ElementType::I64, {}, {}};
  for (int64_t i = range.begin; i < range.end; ++i) {
    result.values.push_back(static_cast<double>(input.shape[static_cast<size_t>(i)]));
  }
  result.shape = {static_cast<int64_t>(result.values.size())};
  return give(result);
}

rt::Status Movement::reshape() {
  if (inputs.size() < 2 || !inputs[1]) {
    return rt::makeError("expected a shape");
  }
  std::vector<double> lengths(input.shape.begin(), input.shape.end());
  rt::Result<std::vector<double>> asked =
      reshapedLengths(lengths, inputs[1]->values, integerAttribute(node, "allowzero", 0) != 0);
  if (!asked) {
    return asked.error();
  }
  return giveReshaped(Shape(asked->begin(), asked->end()));
}

rt::Status Movement::flatten() {
  std::optional<int64_t> axis = integerAttribute(node, "axis", 1) == input.rank()
                                    ? std::optional(input.rank())
                                    : axisOf(integerAttribute(node, "axis", 1), input.rank());
  if (!axis) {
    return rt::makeError("has an axis out of range");
  }
  Shape outer(input.shape.begin(), input.shape.begin() + *axis);
  return giveReshaped({elementCount(outer), static_cast<int64_t>(input.values.size()) /
                                                std::max<int64_t>(elementCount(outer), 1)});
}

rt::Status Movement::unsqueeze() {
  std::optional<Shape> axes = integersOf(inputs, 1);
  if (!axes) {
    return rt::makeError("expected axes");
  }
  std::vector<bool> isNew;
  if (!newAxes(*axes, input.rank(), isNew)) {
    return rt::makeError("has an axis out of range");
  }
  Shape shape;
  auto old = input.shape.begin();
  for (bool fresh : isNew) {
    shape.push_back(fresh ? 1 : *old++);
  }
  return giveReshaped(shape);
}

rt::Status Movement::squeeze() {
  std::optional<Shape> axes = integersOf(inputs, 1);
  Shape shape;
  for (int64_t i = 0; i < input.rank(); ++i) {
    int64_t size = input.shape[static_cast<size_t>(i)];
    bool named = !axes || std::any_of(axes->begin(), axes->end(), [&](int64_t axis) {
      return axisOf(axis, input.rank()) == i;
    });
    if (!(named && size == 1)) {
      shape.push_back(size);
    }
  }
  return giveReshaped(shape);
}

rt::Status Movement::transpose() {
  Shape order;
  if (!permutationOf(node, input.rank(), order)) {
    return rt::makeError("expected a permutation of the dimensions");
  }
  Shape shape, strides, from = stridesOf(input.shape);
  for (int64_t axis : order) {
    shape.push_back(input.shape[static_cast<size_t>(axis)]);
    strides.push_back(from[static_cast<size_t>(axis)]);
  }
  return giveElements(shape, 0, strides);
}

rt::Status Movement::gather() {
  std::optional<int64_t> axis = axisOf(integerAttribute(node, "axis", 0), input.rank());
  std::optional<Shape> indices = integersOf(inputs, 1);
  if (!axis || !indices) {
    return rt::makeError("expected indices along an axis that there is");
  }
  auto at = static_cast<size_t>(*axis);
  int64_t length = input.shape[at];
  int64_t inner = elementCount(Shape(input.shape.begin() + *axis + 1, input.shape.end()));
  int64_t outer = elementCount(Shape(input.shape.begin(), input.shape.begin() + *axis));
  Constant result{input.type, Shape(input.shape.begin(), input.shape.begin() + *axis), {}};
  result.shape.insert(result.shape.end(), inputs[1]->shape.begin(), inputs[1]->shape.end());
  result.shape.insert(result.shape.end(), input.shape.begin() + *axis + 1, input.shape.end());
  if (rt::Status status = allocateValues(result); !status) {
    return status;
  }
  auto next = result.values.begin();
  for (int64_t i = 0; i < outer; ++i) {
    for (int64_t index : *indices) {
      int64_t row = index < 0 ? index + length : index;
      if (row < 0 || row >= length) {
        return rt::makeError("index " + std::to_string(index) + " lies outside of " +
                             std::to_string(length));
      }
      auto begin = input.values.begin() + (i * length + row) * inner;
      next = std::copy_n(begin, inner, next);
    }
  }
  return give(result);
}

rt::Status Movement::concat() {
  std::optional<int64_t> axis = axisOf(integerAttribute(node, "axis", 0), input.rank());
  if (!axis) {
    return rt::makeError("has an axis out of range");
  }
  auto at = static_cast<size_t>(*axis);
  Constant result{input.type, input.shape, {}};
  result.shape[at] = 0;
  for (const Constant *part : inputs) {
    Shape shape = part ? part->shape : Shape();
    if (shape.size() != input.shape.size()) {
      return rt::makeError("expected inputs with equally many dimensions");
    }
    result.shape[at] += shape[at];
    shape[at] = input.shape[at];
    if (shape != input.shape) {
      return rt::makeError("expected inputs that differ only along the axis");
    }
  }
  if (rt::Status status = allocateValues(result); !status) {
    return status;
  }
  auto next = result.values.begin();
  int64_t outer = elementCount(Shape(input.shape.begin(), input.shape.begin() + *axis));
  for (int64_t i = 0; i < outer; ++i) {
    for (const Constant *part : inputs) {
      auto run = static_cast<int64_t>(part->values.size()) / std::max<int64_t>(outer, 1);
      auto begin = part->values.begin() + i * run;
      next = std::copy_n(begin, run, next);
    }
  }
  return give(result);
}

rt::Status Movement::giveElements(const Shape &shape, int64_t offset, const Shape &strides) {
  Constant result{input.type, shape, {}};
  if (rt::Status status = allocateValues(result); !status) {
    return status;
  }
  double *next = result.values.data();
  forEachPlace<1>(shape, {strides}, {offset}, [&](const std::array<int64_t, 1> &places) {
    *next++ = input.values[size_t(places[0])];
  });
  return give(std::move(result));
}

rt::Status Movement::giveSlice(const Shape &shape, const Shape &offsets, const Shape &strides) {
  Shape from = stridesOf(input.shape);
  int64_t offset = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    offset += offsets[i] * from[i];
    from[i] *= strides[i];
  }
  return giveElements(shape, offset, from);
}

rt::Status Movement::slice() {
  std::optional<Shape> starts = integersOf(inputs, 1), ends = integersOf(inputs, 2);
  if (!starts || !ends) {
    return rt::makeError("expected starts and ends");
  }
  rt::Result<Slices> slices =
      slicesOf(input.shape, *starts, *ends, integersOf(inputs, 3), integersOf(inputs, 4));
  if (!slices) {
    return slices.error();
  }
  return giveSlice(slices->shape, slices->offsets, slices->strides);
}

rt::Status Movement::split() {
  std::optional<int64_t> axis = axisOf(integerAttribute(node, "axis", 0), input.rank());
  if (!axis) {
    return rt::makeError("has an axis out of range");
  }
  rt::Result<Shape> lengths =
      splitLengths(node, integersOf(inputs, 1), input.shape[static_cast<size_t>(*axis)]);
  if (!lengths) {
    return lengths.error();
  }
  Shape shape = input.shape, offsets(shape.size(), 0), strides(shape.size(), 1);
  for (int64_t length : *lengths) {
    shape[static_cast<size_t>(*axis)] = length;
    if (rt::Status status = giveSlice(shape, offsets, strides); !status) {
      return status;
    }
    offsets[static_cast<size_t>(*axis)] += length;
  }
  return {};
}

const std::map<std::string, rt::Status (Movement::*)()> &movements() {
  static const std::map<std::string, rt::Status (Movement::*)()> table = {
      {"Identity", &Movement::identity}, {"Dropout", &Movement::identity},
      {"Shape", &Movement::shape},       {"Reshape", &Movement::reshape},
      {"Flatten", &Movement::flatten},   {"Unsqueeze", &Movement::unsqueeze},
      {"Squeeze", &Movement::squeeze},   {"Transpose", &Movement::transpose},
      {"Gather", &Movement::gather},     {"Concat", &Movement::concat},
      {"Slice", &Movement::slice},       {"Split", &Movement::split},
  };
  return table;
}

} // namespace

bool canFoldMovement(const std::string &op) { return movements().contains(op); }

rt::Result<std::vector<Constant>> foldMovement(const Node &node,
                                               const std::vector<const Constant *> &inputs) {
  if (inputs.empty() || !inputs.front()) {
    return rt::makeError("expected an input");
  }
  Movement movement(node, inputs);
  if (rt::Status status = (movement.*movements().at(node.op))(); !status) {
    return status.error();
  }
  return movement.outputs;
}

} // namespace weft::onnx
