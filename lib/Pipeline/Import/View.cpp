//===- View.cpp - tensors whose dimensions are arranged in thought --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "View.h"

#include "weft/Onnx/Constant.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace weft;

namespace {

constexpr int64_t kUnknown = ShapedType::kDynamic;

llvm::ArrayRef<int64_t> shapeOf(Value tensor) {
  return llvm::cast<RankedTensorType>(tensor.getType()).getShape();
}

double lengthOf(const Part &part) {
  return part.size == kUnknown ? onnx::kBatch : static_cast<double>(part.size);
}

double lengthOf(const Parts &parts) {
  double length = 1;
  for (const Part &part : parts) {
    length *= lengthOf(part);
  }
  return length;
}

/// Calls `code` with every part that has an axis.
void forEachAxis(View &view, llvm::function_ref<void(Part &)> code) {
  for (Parts &parts : view.dims) {
    for (Part &part : parts) {
      if (!part.isSpread()) {
        code(part);
      }
    }
  }
}

/// Returns the axes of the tensor in the order of the parts.
llvm::SmallVector<int64_t> axesInOrder(View &view) {
  llvm::SmallVector<int64_t> axes;
  forEachAxis(view, [&](Part &part) { axes.push_back(part.axis); });
  return axes;
}

} // namespace

std::vector<double> View::lengths() const {
  std::vector<double> lengths;
  for (const Parts &parts : dims) {
    lengths.push_back(lengthOf(parts));
  }
  return lengths;
}

View ViewBuilder::whole(Value tensor) {
  View view{tensor, {}};
  for (auto [axis, size] : llvm::enumerate(shapeOf(tensor))) {
    Parts parts;
    if (size != 1) {
      parts.push_back({static_cast<int64_t>(axis), size});
    }
    view.dims.push_back(parts);
  }
  return view;
}

View ViewBuilder::transpose(const View &view, llvm::ArrayRef<int64_t> order) {
  View result = view;
  for (auto [to, from] : llvm::enumerate(order)) {
    result.dims[to] = view.dims[static_cast<size_t>(from)];
  }
  return result;
}

Value ViewBuilder::regroup(llvm::StringRef name, Value tensor, llvm::ArrayRef<int64_t> shape,
                           llvm::ArrayRef<llvm::SmallVector<int64_t, 2>> groups) {
  auto type = llvm::cast<RankedTensorType>(tensor.getType()).clone(shape);
  if (type == tensor.getType()) {
    return tensor;
  }
  llvm::SmallVector<Attribute> lists;
  for (llvm::ArrayRef<int64_t> group : groups) {
    lists.push_back(ops.builder.getI64ArrayAttr(group));
  }
  return ReshapeOp::create(ops.builder, ops.location(name), type, tensor,
                           ops.builder.getArrayAttr(lists));
}

void ViewBuilder::split(llvm::StringRef name, View &view, int64_t dim, size_t number,
                        int64_t outer) {
  Parts &parts = view.dims[static_cast<size_t>(dim)];
  Part old = parts[number];
  int64_t inner = old.size / outer;
  if (old.isSpread()) {
    parts[number].size = outer;
    parts.insert(parts.begin() + number + 1, Part{-1, inner});
    return;
  }
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>> groups;
  for (auto [axis, size] : llvm::enumerate(shapeOf(view.tensor))) {
    auto next = static_cast<int64_t>(shape.size());
    if (static_cast<int64_t>(axis) == old.axis) {
      shape.append({outer, inner});
      groups.push_back({next, next + 1});
    } else {
      shape.push_back(size);
      groups.push_back({next});
    }
  }
  view.tensor = regroup(name, view.tensor, shape, groups);
  forEachAxis(view, [&](Part &part) { part.axis += part.axis > old.axis; });
  parts[number] = {old.axis, outer};
  parts.insert(parts.begin() + number + 1, Part{old.axis + 1, inner});
}

std::optional<View> ViewBuilder::reshape(llvm::StringRef name, View view,
                                         llvm::ArrayRef<double> lengths) {
  // Starts from all parts as one dimension, and cuts the new dimensions off.
  Parts all;
  for (const Parts &parts : view.dims) {
    all.append(parts);
  }
  view.dims.assign(1, all);
  size_t place = 0;
  llvm::SmallVector<size_t> ends;
  for (double length : lengths) {
    while (length != 1) {
      if (place == view.dims[0].size()) {
        return std::nullopt;
      }
      double size = lengthOf(view.dims[0][place]);
      if (std::fmod(length, size) != 0) {
        // The part extends into the next dimension.
        if (view.dims[0][place].size == kUnknown || onnx::isPerSample(length) ||
            std::fmod(size, length) != 0) {
          return std::nullopt;
        }
        split(name, view, 0, place, static_cast<int64_t>(length));
        size = length;
      }
      length /= size;
      ++place;
    }
    ends.push_back(place);
  }
  if (place != view.dims[0].size()) {
    return std::nullopt;
  }
  all = view.dims[0];
  view.dims.clear();
  size_t begin = 0;
  for (size_t end : ends) {
    view.dims.emplace_back(all.begin() + begin, all.begin() + end);
    begin = end;
  }
  return view;
}

std::optional<View> ViewBuilder::expand(const View &view, llvm::ArrayRef<double> lengths) {
  View result = view;
  while (result.dims.size() < lengths.size()) {
    result.dims.insert(result.dims.begin(), Parts());
  }
  size_t ahead = result.dims.size() - lengths.size();
  for (size_t number = 0; number < lengths.size(); ++number) {
    double length = lengths[number];
    Parts &parts = result.dims[ahead + number];
    double own = lengthOf(parts);
    if (own == length || length == 1) {
      continue;
    }
    bool isWhole =
        length >= 1 && std::fmod(length, onnx::isPerSample(length) ? onnx::kBatch : 1) == 0;
    if (own != 1 || !isWhole || !(onnx::isPerSample(length) || length <= 0x1p40)) {
      return std::nullopt;
    }
    if (onnx::isPerSample(length)) {
      parts.push_back({-1, kUnknown});
      length /= onnx::kBatch;
    }
    if (length != 1) {
      parts.push_back({-1, static_cast<int64_t>(length)});
    }
  }
  return result;
}

void ViewBuilder::permute(llvm::StringRef name, View &view, llvm::ArrayRef<int64_t> order) {
  std::string from = letters(static_cast<int64_t>(order.size())), to;
  llvm::SmallVector<int64_t> places(order.size());
  for (auto [place, axis] : llvm::enumerate(order)) {
    to += from[static_cast<size_t>(axis)];
    places[static_cast<size_t>(axis)] = static_cast<int64_t>(place);
  }
  if (from != to) {
    view.tensor = reorder(name, from + "->" + to, view.tensor);
    forEachAxis(view, [&](Part &part) { part.axis = places[static_cast<size_t>(part.axis)]; });
  }
}

void ViewBuilder::sortAxes(llvm::StringRef name, View &view) {
  dropUnits(name, view);
  permute(name, view, axesInOrder(view));
}

void ViewBuilder::dropUnits(llvm::StringRef name, View &view) {
  llvm::SmallVector<int64_t> used = axesInOrder(view);
  std::string from = letters(static_cast<int64_t>(shapeOf(view.tensor).size())), to;
  llvm::SmallVector<int64_t> places;
  for (auto [axis, letter] : llvm::enumerate(from)) {
    places.push_back(static_cast<int64_t>(to.size()));
    if (llvm::is_contained(used, static_cast<int64_t>(axis))) {
      to += letter;
    }
  }
  if (from == to) {
    return;
  }
  // Parts next to a dimension of known length can be merged into it.
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>> groups;
  llvm::SmallVector<int64_t> shape, before;
  for (auto [axis, size] : llvm::enumerate(shapeOf(view.tensor))) {
    auto number = static_cast<int64_t>(axis);
    bool isUnit = !llvm::is_contained(used, number);
    if (isUnit && !shape.empty() && shape.back() != kUnknown) {
      groups.back().push_back(number);
    } else if (isUnit) {
      before.push_back(number);
    } else if (size != kUnknown || before.empty()) {
      groups.emplace_back(before.begin(), before.end());
      groups.back().push_back(number);
      before.clear();
      shape.push_back(size);
    } else {
      break;
    }
  }
  view.tensor = before.empty() && shape.size() == to.size()
                    ? regroup(name, view.tensor, shape, groups)
                    : reorder(name, from + "->" + to, view.tensor);
  forEachAxis(view, [&](Part &part) { part.axis = places[static_cast<size_t>(part.axis)]; });
}

void ViewBuilder::fillSpread(llvm::StringRef name, View &view) {
  llvm::SmallVector<int64_t> shape;
  llvm::SmallVector<AffineExpr> exprs;
  for (Parts &parts : view.dims) {
    for (Part &part : parts) {
      if (!part.isSpread()) {
        exprs.push_back(ops.builder.getAffineDimExpr(shape.size()));
      }
      part.axis = static_cast<int64_t>(shape.size());
      shape.push_back(part.size);
    }
  }
  if (exprs.size() == shape.size()) {
    return;
  }
  auto type = llvm::cast<RankedTensorType>(view.tensor.getType()).clone(shape);
  AffineMap map = AffineMap::get(shape.size(), 0, exprs, ops.builder.getContext());
  view.tensor = MapOp::create(ops.builder, ops.location(name), TypeRange{type},
                              ValueRange{view.tensor}, {map},
                              [](OpBuilder &, Location, ValueRange scalars) {
                                return llvm::SmallVector<Value>{scalars[0]};
                              })
                    ->getResult(0);
}

std::optional<Value> ViewBuilder::materialize(llvm::StringRef name, View view) {
  for (const Parts &parts : view.dims) {
    if (parts.size() > 1 &&
        llvm::any_of(parts, [](const Part &part) { return part.size == kUnknown; })) {
      return std::nullopt;
    }
  }
  sortAxes(name, view);
  fillSpread(name, view);
  // First merges parts, then inserts dimensions of length 1.
  llvm::SmallVector<llvm::SmallVector<int64_t, 2>> merged;
  llvm::SmallVector<int64_t> shape;
  int64_t axis = 0;
  for (const Parts &parts : view.dims) {
    if (!parts.empty()) {
      shape.push_back(parts.size() == 1 ? parts[0].size : static_cast<int64_t>(lengthOf(parts)));
      merged.emplace_back();
      for (size_t i = 0; i < parts.size(); ++i) {
        merged.back().push_back(axis++);
      }
    }
  }
  Value tensor = regroup(name, view.tensor, shape, merged);
  if (shape.size() == view.dims.size()) {
    return tensor;
  }
  llvm::SmallVector<int64_t> full;
  llvm::SmallVector<AffineExpr> exprs;
  for (auto [number, parts] : llvm::enumerate(view.dims)) {
    full.push_back(1);
    if (!parts.empty()) {
      full.back() = shape[exprs.size()];
      exprs.push_back(ops.builder.getAffineDimExpr(number));
    }
  }
  auto type = llvm::cast<RankedTensorType>(tensor.getType()).clone(full);
  AffineMap map = AffineMap::get(full.size(), 0, exprs, ops.builder.getContext());
  return MapOp::create(ops.builder, ops.location(name), TypeRange{type}, ValueRange{tensor}, {map},
                       [](OpBuilder &, Location, ValueRange scalars) {
                         return llvm::SmallVector<Value>{scalars[0]};
                       })
      ->getResult(0);
}

std::optional<View> ViewBuilder::packLast(llvm::StringRef name, View view) {
  dropUnits(name, view);
  Parts last = view.dims.back();
  if (last.empty() || llvm::any_of(last, [](const Part &part) { return part.size == kUnknown; })) {
    return std::nullopt;
  }
  auto rank = static_cast<int64_t>(shapeOf(view.tensor).size());
  if (last.size() == 1 && last[0].axis == rank - 1) {
    return view;
  }
  sortAxes(name, view);
  fillSpread(name, view);
  last = view.dims.back();
  if (last.size() > 1) {
    llvm::SmallVector<llvm::SmallVector<int64_t, 2>> groups;
    llvm::SmallVector<int64_t> shape(shapeOf(view.tensor));
    auto kept = static_cast<int64_t>(shape.size() - last.size());
    for (int64_t axis = 0; axis < kept; ++axis) {
      groups.push_back({axis});
    }
    groups.emplace_back();
    for (int64_t axis = kept; axis < static_cast<int64_t>(shape.size()); ++axis) {
      groups.back().push_back(axis);
    }
    shape.resize(static_cast<size_t>(kept));
    shape.push_back(static_cast<int64_t>(lengthOf(last)));
    view.tensor = regroup(name, view.tensor, shape, groups);
    view.dims.back() = {Part{kept, shape.back()}};
  }
  return view;
}

bool ViewBuilder::align(llvm::StringRef name, View &a, int64_t i, View &b, int64_t j) {
  if (a.dims[static_cast<size_t>(i)].empty() || b.dims[static_cast<size_t>(j)].empty()) {
    return true; // A length of 1 fits every other.
  }
  for (size_t place = 0;; ++place) {
    Parts &ofA = a.dims[static_cast<size_t>(i)], &ofB = b.dims[static_cast<size_t>(j)];
    if (place == ofA.size() || place == ofB.size()) {
      return ofA.size() == ofB.size();
    }
    int64_t sizeA = ofA[place].size, sizeB = ofB[place].size;
    if (sizeA == sizeB) {
      continue;
    }
    if (sizeA == kUnknown || sizeB == kUnknown ||
        std::max(sizeA, sizeB) % std::min(sizeA, sizeB) != 0) {
      return false;
    }
    if (sizeA > sizeB) {
      split(name, a, i, place, sizeB);
    } else {
      split(name, b, j, place, sizeA);
    }
  }
}
