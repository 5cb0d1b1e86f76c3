//===- ViewOps.cpp - maps and contractions of views -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "View.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace weft;

namespace {

/// A part of a dimension of the result, and the axis that each operand has there, or -1.
struct Point {
  int64_t size = 1;
  llvm::SmallVector<int64_t, 3> axes;

  bool isSpread() const {
    return llvm::all_of(axes, [](int64_t axis) { return axis < 0; });
  }
};

/// Returns the points of one dimension, from the aligned parts of all operands.
llvm::SmallVector<Point> pointsOf(llvm::ArrayRef<const Parts *> operands) {
  llvm::SmallVector<Point> points;
  for (const Parts *parts : operands) {
    if (parts && parts->size() > points.size()) {
      points.resize(parts->size());
    }
  }
  for (auto [place, point] : llvm::enumerate(points)) {
    for (const Parts *parts : operands) {
      bool isThere = parts && !parts->empty();
      point.axes.push_back(isThere ? (*parts)[place].axis : -1);
      if (isThere) {
        point.size = (*parts)[place].size;
      }
    }
  }
  return points;
}

/// Returns true if a tensor of this shape has a row for each sample; others come from parameters
/// alone.
bool isActivation(llvm::ArrayRef<int64_t> shape) {
  return llvm::is_contained(shape, ShapedType::kDynamic);
}

int64_t rankOf(const View &view) {
  return llvm::cast<RankedTensorType>(view.tensor.getType()).getRank();
}

/// Returns the points that some operand has: in the order of the operand with the most points if it
/// has all, else in the order of the view.
llvm::SmallVector<const Point *> orderPoints(llvm::ArrayRef<llvm::SmallVector<Point>> dims,
                                             llvm::ArrayRef<View> views) {
  llvm::SmallVector<const Point *> ordered;
  for (llvm::ArrayRef<Point> points : dims) {
    for (const Point &point : points) {
      if (!point.isSpread()) {
        ordered.push_back(&point);
      }
    }
  }
  size_t lead = 0;
  for (size_t number = 1; number < views.size(); ++number) {
    lead = rankOf(views[number]) > rankOf(views[lead]) ? number : lead;
  }
  if (llvm::all_of(ordered, [&](const Point *point) { return point->axes[lead] >= 0; })) {
    llvm::sort(ordered,
               [&](const Point *a, const Point *b) { return a->axes[lead] < b->axes[lead]; });
  }
  return ordered;
}

/// Returns the dimensions of a result whose tensor has the axes `ordered`.
llvm::SmallVector<Parts> dimsOf(llvm::ArrayRef<llvm::SmallVector<Point>> dims,
                                llvm::ArrayRef<const Point *> ordered) {
  llvm::SmallVector<Parts> result;
  for (llvm::ArrayRef<Point> points : dims) {
    Parts parts;
    for (const Point &point : points) {
      const auto *place = llvm::find(ordered, &point);
      parts.push_back({place == ordered.end() ? -1 : place - ordered.begin(), point.size});
    }
    result.push_back(parts);
  }
  return result;
}

} // namespace

std::optional<View> ViewBuilder::map(llvm::StringRef name, llvm::ArrayRef<View> inputs,
                                     ScalarCode code) {
  llvm::SmallVector<View> views(inputs);
  size_t rank = 0;
  for (View &view : views) {
    dropUnits(name, view);
    rank = std::max(rank, view.dims.size());
  }
  for (View &view : views) {
    view.dims.insert(view.dims.begin(), rank - view.dims.size(), Parts());
  }
  // The second round splits the first operands as the last ones were split.
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i + 1 < views.size(); ++i) {
      for (size_t j = i + 1; j < views.size(); ++j) {
        for (size_t dim = 0; dim < rank; ++dim) {
          if (!align(name, views[i], int64_t(dim), views[j], int64_t(dim))) {
            return std::nullopt;
          }
        }
      }
    }
  }
  auto collect = [&] {
    llvm::SmallVector<llvm::SmallVector<Point>> dims;
    for (size_t dim = 0; dim < rank; ++dim) {
      llvm::SmallVector<const Parts *> parts;
      for (const View &view : views) {
        parts.push_back(&view.dims[dim]);
      }
      dims.push_back(pointsOf(parts));
    }
    return dims;
  };
  llvm::SmallVector<llvm::SmallVector<Point>> dims = collect();
  llvm::SmallVector<const Point *> ordered = orderPoints(dims, views);
  llvm::SmallVector<int64_t> shape;
  for (const Point *point : ordered) {
    shape.push_back(point->size);
  }
  llvm::SmallVector<AffineMap> maps;
  llvm::SmallVector<Value> tensors;
  for (auto [number, view] : llvm::enumerate(views)) {
    llvm::SmallVector<int64_t> order;
    llvm::SmallVector<AffineExpr> exprs;
    for (auto [place, point] : llvm::enumerate(ordered)) {
      if (point->axes[number] >= 0) {
        order.push_back(point->axes[number]);
        exprs.push_back(ops.builder.getAffineDimExpr(place));
      }
    }
    permute(name, view, order);
    tensors.push_back(view.tensor);
    maps.push_back(AffineMap::get(ordered.size(), 0, exprs, ops.builder.getContext()));
  }
  Type element = isActivation(shape) ? ops.activationElement() : ops.wideElement();
  auto body = [&](OpBuilder &inner, Location loc, ValueRange scalars) {
    ImplicitLocOpBuilder scalarBuilder(loc, inner);
    llvm::SmallVector<Value> wide;
    for (Value scalar : scalars) {
      wide.push_back(castScalar(inner, loc, scalar, ops.wideElement()));
    }
    return llvm::SmallVector<Value>{castScalar(inner, loc, code(scalarBuilder, wide), element)};
  };
  Type type = RankedTensorType::get(shape, element);
  Value result =
      MapOp::create(ops.builder, ops.location(name), TypeRange{type}, tensors, maps, body)
          ->getResult(0);
  return View{result, dimsOf(dims, ordered)};
}

Value ViewBuilder::reorder(llvm::StringRef name, llvm::StringRef equation, Value tensor) {
  Value result = ops.contract(name, equation, {tensor});
  auto type = llvm::cast<RankedTensorType>(result.getType());
  result.setType(type.clone(getElementTypeOrSelf(tensor)));
  return result;
}

std::optional<View> ViewBuilder::contract(llvm::StringRef name, const View &first,
                                          llvm::ArrayRef<int64_t> labelsA, const View *second,
                                          llvm::ArrayRef<int64_t> labelsB,
                                          llvm::ArrayRef<int64_t> result) {
  View a = first, b = second ? *second : View();
  dropUnits(name, a);
  if (second) {
    dropUnits(name, b);
  }
  // The dimensions of each label in both operands.
  llvm::MapVector<int64_t, std::pair<const Parts *, const Parts *>> labels;
  for (auto [i, label] : llvm::enumerate(labelsA)) {
    const auto *j = llvm::find(labelsB, label);
    if (second && j != labelsB.end() && !align(name, a, int64_t(i), b, j - labelsB.begin())) {
      return std::nullopt;
    }
  }
  for (auto [i, label] : llvm::enumerate(labelsA)) {
    labels[label].first = &a.dims[i];
  }
  for (auto [j, label] : llvm::enumerate(labelsB)) {
    labels[label].second = &b.dims[j];
  }
  llvm::MapVector<int64_t, llvm::SmallVector<Point>> points;
  std::string termA(static_cast<size_t>(rankOf(a)), '?');
  std::string termB(second ? static_cast<size_t>(rankOf(b)) : 0, '?');
  char letter = 'a';
  llvm::DenseMap<const Point *, char> lettersOf;
  for (auto &[label, parts] : labels) {
    points[label] = pointsOf({parts.first, parts.second});
  }
  for (auto &[label, ofLabel] : points) {
    for (const Point &point : ofLabel) {
      if (point.isSpread()) {
        if (!llvm::is_contained(result, label)) {
          return std::nullopt; // A sum of equal elements.
        }
        continue;
      }
      bool isSummed = !llvm::is_contained(result, label);
      if (letter > 'z' || (isSummed && point.size == ShapedType::kDynamic)) {
        return std::nullopt; // Depends on the batch's division.
      }
      lettersOf[&point] = letter;
      if (point.axes[0] >= 0) {
        termA[static_cast<size_t>(point.axes[0])] = letter;
      }
      if (point.axes[1] >= 0) {
        termB[static_cast<size_t>(point.axes[1])] = letter;
      }
      ++letter;
    }
  }
  llvm::SmallVector<llvm::SmallVector<Point>> dims;
  std::string kept;
  for (int64_t label : result) {
    for (const Point &point : points[label]) {
      kept += point.isSpread() ? "" : std::string(1, lettersOf.at(&point));
    }
  }
  // In the order of the operands, which avoids transposing.
  std::string term;
  for (char candidate : termA + termB) {
    if (kept.find(candidate) != std::string::npos && term.find(candidate) == std::string::npos) {
      term += candidate;
    }
  }
  llvm::SmallVector<Value> tensors{a.tensor};
  std::string equation = termA;
  bool rounds = false;
  if (second) {
    tensors.push_back(b.tensor);
    equation += "," + termB;
    rounds = llvm::any_of(tensors, [](Value tensor) {
      return isActivation(llvm::cast<RankedTensorType>(tensor.getType()).getShape());
    });
  }
  // Operands of a matmul are activations; others are rounded, once for forward and backward.
  for (Value &tensor : tensors) {
    tensor = rounds ? ops.round(name, tensor) : tensor;
  }
  equation += "->" + term;
  Value matmul = !second && term.size() == termA.size() ? reorder(name, equation, a.tensor)
                                                        : ops.contract(name, equation, tensors);
  View output{rounds ? ops.round(name, matmul) : matmul, {}};
  for (int64_t label : result) {
    Parts parts;
    for (const Point &point : points[label]) {
      auto place = point.isSpread() ? -1 : static_cast<int64_t>(term.find(lettersOf.at(&point)));
      parts.push_back({place, point.size});
    }
    output.dims.push_back(parts);
  }
  return output;
}
