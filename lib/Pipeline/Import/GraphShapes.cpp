//===- GraphShapes.cpp - reshapes, splits and joins of ONNX graphs --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "weft/Onnx/Slices.h"

using namespace mlir;
using namespace weft;

bool GraphBuilder::identity(const onnx::Node &node) {
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  keepScores(node, 0);
  return view && give(node, *view);
}

bool GraphBuilder::dropout(const onnx::Node &node) {
  const onnx::Constant *ratio = constantOf(node, 1);
  double rate = ratio && ratio->isScalar() ? ratio->values[0] : 0.5;
  bool isActive = !node.input(2).empty() && integerOf(node, 2) != 0;
  if (isActive && rate != 0) {
    return fail(node, "drops elements in training, which is not supported for graphs; export the "
                      "model with dropout 0");
  }
  return identity(node);
}

bool GraphBuilder::cast(const onnx::Node &node) {
  // PyTorch casts a number to the type of a tensor by this op.
  if (node.op == "CastLike") {
    if (const onnx::Constant *constant = constantOf(node, 0)) {
      onnx::Constant result = *constant;
      result.type = onnx::ElementType::F32;
      return give(node, result);
    }
    return identity(node);
  }
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  if (!view) {
    return false;
  }
  int64_t to = onnx::integerAttribute(node, "to", 0);
  constexpr int64_t kFloat = 1, kInt32 = 6, kInt64 = 7, kDouble = 11;
  bool isFloat = llvm::isa<FloatType>(getElementTypeOrSelf(view->tensor.getType()));
  bool keeps = isFloat ? to == kFloat || to == kDouble : to == kInt32 || to == kInt64;
  if (!keeps) {
    return fail(node, "casts between whole and floating-point numbers, or to half precision, are "
                      "supported only for constants");
  }
  return give(node, *view);
}

bool GraphBuilder::shape(const onnx::Node &node) {
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  if (!view) {
    return false;
  }
  std::vector<double> lengths = view->lengths();
  onnx::ShapeRange range = onnx::shapeRange(node, view->rank());
  onnx::Constant result{onnx::ElementType::I64, {range.end - range.begin}, {}};
  result.values.assign(lengths.begin() + range.begin, lengths.begin() + range.end);
  return give(node, result);
}

const onnx::Constant *GraphBuilder::wantedShape(const onnx::Node &node) {
  const onnx::Constant *shape = constantOf(node, 1);
  if (!shape) {
    fail(node, "expected a shape that is known at compile time");
  }
  return shape;
}

bool GraphBuilder::reshape(const onnx::Node &node) {
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  const onnx::Constant *shape = view ? wantedShape(node) : nullptr;
  if (!shape) {
    return false;
  }
  rt::Result<std::vector<double>> lengths = onnx::reshapedLengths(
      view->lengths(), shape->values, onnx::integerAttribute(node, "allowzero", 0) != 0);
  if (!lengths) {
    return fail(node, lengths.error().message);
  }
  std::optional<View> result = views.reshape(nameOf(node), *view, *lengths);
  if (!result) {
    // The new dimensions cut across the parts: materialize the tensor in the order of its elements,
    // and try again.
    std::optional<Value> tensor = views.materialize(nameOf(node), *view);
    result = tensor ? views.reshape(nameOf(node), ViewBuilder::whole(*tensor), *lengths) : result;
  }
  if (result) {
    result->isInner = view->isInner;
  }
  return give(node, result, "reshapes across dimensions, which is not supported");
}

bool GraphBuilder::flatten(const onnx::Node &node) {
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  if (!view) {
    return false;
  }
  int64_t axis = onnx::integerAttribute(node, "axis", 1);
  axis = axis < 0 ? axis + view->rank() : axis;
  if (axis < 0 || axis > view->rank()) {
    return fail(node, "has no such axis");
  }
  View result{view->tensor, {Parts(), Parts()}, view->isInner};
  for (auto [number, parts] : llvm::enumerate(view->dims)) {
    result.dims[static_cast<int64_t>(number) < axis ? 0 : 1].append(parts);
  }
  return give(node, result);
}

bool GraphBuilder::unsqueeze(const onnx::Node &node) {
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  std::optional<std::vector<int64_t>> axes = integersOf(node, 1, "axes");
  std::vector<bool> isNew;
  if (!view) {
    return false;
  }
  if (!axes || !onnx::newAxes(*axes, view->rank(), isNew)) {
    return fail(node, "expected constant axes of existing dimensions");
  }
  View result{view->tensor, {}, view->isInner};
  const auto *old = view->dims.begin();
  for (bool fresh : isNew) {
    result.dims.push_back(fresh ? Parts() : *old++);
  }
  return give(node, result);
}

bool GraphBuilder::squeeze(const onnx::Node &node) {
  const View *view = viewOf(node, 0, /*takesIntegers=*/true);
  if (!view) {
    return false;
  }
  std::optional<std::vector<int64_t>> axes = integersOf(node, 1, "axes");
  View result{view->tensor, {}, view->isInner};
  for (auto [number, parts] : llvm::enumerate(view->dims)) {
    bool isNamed = !axes || llvm::any_of(*axes, [&](int64_t axis) {
      return onnx::axisOf(axis, view->rank()) == static_cast<int64_t>(number);
    });
    if (isNamed && axes && !parts.empty()) {
      return fail(node, "expected dimension " + std::to_string(number) + " to have length 1");
    }
    if (!isNamed || !parts.empty()) {
      result.dims.push_back(parts);
    }
  }
  return give(node, result);
}

bool GraphBuilder::transpose(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  std::vector<int64_t> order;
  if (!view) {
    return false;
  }
  if (!onnx::permutationOf(node, view->rank(), order)) {
    return fail(node, "expected a permutation of the dimensions");
  }
  return give(node, ViewBuilder::transpose(*view, order));
}

bool GraphBuilder::expand(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  const onnx::Constant *shape = view ? wantedShape(node) : nullptr;
  if (!shape) {
    return false;
  }
  return give(node, ViewBuilder::expand(*view, shape->values),
              "the shape of the input does not expand to this");
}

std::optional<View> GraphBuilder::extract(const onnx::Node &node, View view, int64_t dim,
                                          int64_t offset, int64_t length, int64_t stride) {
  auto at = static_cast<size_t>(dim);
  if (view.dims[at].size() > 1) {
    std::optional<Value> tensor = views.materialize(nameOf(node), view);
    if (!tensor) {
      return std::nullopt;
    }
    view = ViewBuilder::whole(*tensor);
  }
  if (view.dims[at].empty()) {
    return view;
  }
  Part &part = view.dims[at][0];
  if (part.size == length) {
    return view;
  }
  if (part.size == ShapedType::kDynamic) {
    return std::nullopt;
  }
  part.size = length;
  if (!part.isSpread()) {
    auto type = llvm::cast<RankedTensorType>(view.tensor.getType());
    llvm::SmallVector<int64_t> shape(type.getShape()), offsets(shape.size(), 0),
        strides(shape.size(), 1);
    auto axis = static_cast<size_t>(part.axis);
    shape[axis] = length;
    offsets[axis] = offset;
    strides[axis] = stride;
    view.tensor = ExtractOp::create(ops.builder, ops.location(nameOf(node)), type.clone(shape),
                                    view.tensor, offsets, strides);
  }
  if (length == 1) {
    view.dims[at].clear();
  }
  view.isInner = false;
  return view;
}

/// Returns the lengths of a view whose batch is taken whole.
static std::vector<int64_t> countsOf(const View &view) {
  std::vector<int64_t> counts;
  for (double length : view.lengths()) {
    counts.push_back(onnx::isPerSample(length) ? int64_t(1) << 50 : static_cast<int64_t>(length));
  }
  return counts;
}

bool GraphBuilder::slice(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  std::optional<std::vector<int64_t>> starts = integersOf(node, 1, "starts"),
                                      ends = integersOf(node, 2, "ends");
  if (!starts || !ends) {
    return fail(node, "expected constant starts and ends");
  }
  std::vector<int64_t> counts = countsOf(*view);
  rt::Result<onnx::Slices> slices = onnx::slicesOf(
      counts, *starts, *ends, integersOf(node, 3, "axes"), integersOf(node, 4, "steps"));
  if (!slices) {
    return fail(node, slices.error().message);
  }
  std::optional<View> result = *view;
  for (int64_t dim = 0; result && dim < view->rank(); ++dim) {
    auto at = static_cast<size_t>(dim);
    if (slices->shape[at] < 1) {
      return fail(node, "selects no element of dimension " + std::to_string(dim));
    }
    if (slices->shape[at] != counts[at]) {
      result =
          extract(node, *result, dim, slices->offsets[at], slices->shape[at], slices->strides[at]);
    }
  }
  return give(node, result, "takes a part of the batch, or of a dimension merged with it");
}

bool GraphBuilder::split(const onnx::Node &node) {
  const View *found = viewOf(node, 0);
  if (!found) {
    return false;
  }
  View view = *found;
  std::optional<int64_t> axis = onnx::axisOf(onnx::integerAttribute(node, "axis", 0), view.rank());
  if (!axis) {
    return fail(node, "has no such axis");
  }
  rt::Result<std::vector<int64_t>> lengths = onnx::splitLengths(
      node, integersOf(node, 1, "split"), countsOf(view)[static_cast<size_t>(*axis)]);
  if (!lengths) {
    return fail(node, lengths.error().message);
  }
  int64_t offset = 0;
  for (auto [number, length] : llvm::enumerate(*lengths)) {
    std::optional<View> part = extract(node, view, *axis, offset, length);
    if (!part) {
      return fail(node, "splits the batch, or a dimension merged with it");
    }
    give(node, *part, number);
    offset += length;
  }
  return true;
}

bool GraphBuilder::splitToSequence(const onnx::Node &node) {
  const View *found = viewOf(node, 0);
  if (!found) {
    return false;
  }
  View view = *found;
  std::optional<int64_t> axis = onnx::axisOf(onnx::integerAttribute(node, "axis", 0), view.rank());
  const onnx::Constant *given = constantOf(node, 1);
  if (!axis || !given || onnx::integerAttribute(node, "keepdims", 1) == 0) {
    return fail(node, "expected constant lengths of parts, and keepdims=1");
  }
  std::vector<int64_t> lengths;
  int64_t all = countsOf(view)[static_cast<size_t>(*axis)];
  if (given->rank() == 0) {
    int64_t each = std::max<int64_t>(onnx::clampedInteger(given->values[0]), 1);
    for (int64_t begin = 0; begin < all && lengths.size() < 1024; begin += each) {
      lengths.push_back(std::min(each, all - begin));
    }
  } else {
    lengths = *integersOf(node, 1, "");
  }
  if (rt::Result<std::vector<int64_t>> checked = onnx::splitLengths(node, lengths, all); !checked) {
    return fail(node, checked.error().message);
  }
  std::vector<View> parts;
  int64_t offset = 0;
  for (int64_t length : lengths) {
    std::optional<View> part = extract(node, view, *axis, offset, length);
    if (!part) {
      return fail(node, "splits the batch, or a dimension merged with it");
    }
    parts.push_back(*part);
    offset += length;
  }
  known[node.outputs[0]] = parts;
  return true;
}

bool GraphBuilder::sequenceAt(const onnx::Node &node) {
  const auto *parts = std::get_if<std::vector<View>>(&lookup(node.input(0)));
  const onnx::Constant *index = constantOf(node, 1);
  if (!parts || !index || !index->isScalar()) {
    return fail(node, "expected a sequence, and a constant index");
  }
  int64_t place = onnx::clampedInteger(index->values[0]);
  std::optional<int64_t> number = onnx::axisOf(place, static_cast<int64_t>(parts->size()));
  return number ? give(node, (*parts)[static_cast<size_t>(*number)])
                : fail(node, "has no part " + std::to_string(place));
}

bool GraphBuilder::concat(const onnx::Node &node) {
  std::optional<int64_t> axis;
  llvm::SmallVector<Value> tensors;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const View *view = viewOf(node, i);
    if (!view) {
      return false;
    }
    axis = onnx::axisOf(onnx::integerAttribute(node, "axis", 0), view->rank());
    std::optional<Value> tensor = views.materialize(nameOf(node), *view);
    if (!axis || !tensor) {
      return fail(node, axis ? "joins tensors whose batch is merged with another dimension"
                             : "has no such axis");
    }
    tensors.push_back(*tensor);
  }
  if (tensors.empty()) {
    return fail(node, "expected an input");
  }
  llvm::SmallVector<int64_t> shape;
  for (Value tensor : tensors) {
    auto own = llvm::cast<RankedTensorType>(tensor.getType()).getShape();
    shape = shape.empty() ? llvm::SmallVector<int64_t>(own.size(), 0) : shape;
    for (size_t d = 0; d < own.size() && d < shape.size(); ++d) {
      bool isAxis = static_cast<int64_t>(d) == *axis;
      if (own.size() != shape.size() || (isAxis && own[d] == ShapedType::kDynamic) ||
          (!isAxis && shape[d] != 0 && shape[d] != own[d])) {
        return fail(node, "expected inputs that differ only along the axis");
      }
      shape[d] = isAxis ? shape[d] + own[d] : own[d];
    }
  }
  if (llvm::is_contained(shape, ShapedType::kDynamic)) {
    for (Value &tensor : tensors) {
      tensor = ops.round(nameOf(node), tensor);
    }
  }
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(tensors.front()));
  Value joined = ConcatOp::create(ops.builder, ops.location(nameOf(node)), type, tensors, *axis);
  return give(node, ViewBuilder::whole(joined));
}
