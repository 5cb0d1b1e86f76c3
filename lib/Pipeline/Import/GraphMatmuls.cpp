//===- GraphMatmuls.cpp - matmuls, sums and norms of ONNX graphs ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Onnx/Slices.h"

using namespace mlir;
using namespace weft;

namespace {

/// Returns labels of the dimensions of matrices: leading dimensions are numbered from the left of
/// the result.
enum : int64_t { kRow = 1000, kInner = 1001, kColumn = 1002 };

constexpr const char *kNoMatmul =
    "the shapes of the inputs do not go together, or samples are summed over";

} // namespace

bool GraphBuilder::matMul(const onnx::Node &node) {
  const Known &weights = lookup(node.input(0));
  if (const auto *table = std::get_if<WithTable>(&weights);
      table && table->kind == WithTable::Kind::CausalWeights) {
    return causalAttention(node, *table);
  }
  const View *a = viewOf(node, 0), *b = a ? viewOf(node, 1) : nullptr;
  if (!b) {
    return false;
  }
  if (a->rank() < 2 || b->rank() < 2) {
    return fail(node, "matmuls of vectors are not supported");
  }
  if (auto found = scores.find(node.inputs[0]); found != scores.end() && found->second.isSoftmax) {
    const char *why = nullptr; // Scores of no attention stay a matmul.
    if (auto result = attention(node, found->second, *b, /*isCausal=*/false, why)) {
      return give(node, *result);
    }
  }
  int64_t rank = std::max(a->rank(), b->rank());
  auto label = [&](int64_t own, int64_t first, int64_t second) {
    llvm::SmallVector<int64_t> labels;
    for (int64_t dim = rank - own; dim < rank - 2; ++dim) {
      labels.push_back(dim);
    }
    labels.append({first, second});
    return labels;
  };
  auto labelsA = label(a->rank(), kRow, kInner), labelsB = label(b->rank(), kInner, kColumn);
  auto labels = label(rank, kRow, kColumn);
  View weight = *b;
  bool isWeight = isParameter(*b) && b->rank() == 2;
  if (a->lengths().back() != b->lengths()[static_cast<size_t>(b->rank() - 2)]) {
    return fail(node, kNoMatmul);
  }
  View named;
  if (isWeight) {
    nameWeight(node, *a, weight, 0, 1, named);
  }
  std::optional<View> result = views.contract(nameOf(node), *a, labelsA, b, labelsB, labels);
  if (result) {
    result->isInner = named.isInner;
    if (!isWeight && !isParameter(*a)) {
      scores[node.outputs[0]] = Scores{*a, *b, 1.0};
      result->isInner = a->isInner && b->isInner;
    }
  }
  return give(node, result, kNoMatmul);
}

bool GraphBuilder::gemm(const onnx::Node &node) {
  const View *a = viewOf(node, 0), *b = a ? viewOf(node, 1) : nullptr;
  if (!b) {
    return false;
  }
  if (a->rank() != 2 || b->rank() != 2) {
    return fail(node, "expected two matrices");
  }
  bool turnsA = onnx::integerAttribute(node, "transA", 0) != 0;
  bool turnsB = onnx::integerAttribute(node, "transB", 0) != 0;
  double alpha = onnx::realAttribute(node, "alpha", 1.0);
  double beta = onnx::realAttribute(node, "beta", 1.0);
  llvm::SmallVector<int64_t> labelsA{kRow, kInner}, labelsB{kInner, kColumn};
  if (turnsA) {
    std::swap(labelsA[0], labelsA[1]);
  }
  if (turnsB) {
    std::swap(labelsB[0], labelsB[1]);
  }
  View named;
  if (isParameter(*b)) {
    nameWeight(node, *a, *b, turnsB ? 1 : 0, turnsB ? 0 : 1, named);
  }
  if (a->lengths()[turnsA ? 0 : 1] != b->lengths()[turnsB ? 1 : 0]) {
    return fail(node, kNoMatmul);
  }
  std::optional<View> result =
      views.contract(nameOf(node), *a, labelsA, b, labelsB, {kRow, kColumn});
  if (!result) {
    return fail(node, kNoMatmul);
  }
  result->isInner = named.isInner;
  if (alpha != 1.0) {
    result = mapViews(node, {*result}, [=](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
      return arith::MulFOp::create(scalars, in[0], scalarConstant(scalars, in[0], alpha));
    });
  }
  if (node.input(2).empty()) {
    return give(node, result, kNoMatmul);
  }
  const View *bias = viewOf(node, 2);
  if (!bias) {
    return false;
  }
  result =
      mapViews(node, {*result, *bias}, [=](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
        Value scaled = beta == 1.0 ? in[1]
                                   : arith::MulFOp::create(scalars, in[1],
                                                           scalarConstant(scalars, in[1], beta))
                                         .getResult();
        return arith::AddFOp::create(scalars, in[0], scaled);
      });
  return give(node, result, kNoMatmul);
}

bool GraphBuilder::einsum(const onnx::Node &node) {
  std::string equation = onnx::textAttribute(node, "equation", "");
  std::erase(equation, ' ');
  auto [terms, resultTerm] = llvm::StringRef(equation).split("->");
  llvm::SmallVector<llvm::StringRef, 2> inputs;
  terms.split(inputs, ',');
  const View *a = viewOf(node, 0);
  const View *b = a && node.inputs.size() > 1 ? viewOf(node, 1) : nullptr;
  if (!a || (node.inputs.size() > 1 && !b)) {
    return false;
  }
  auto labels = [](llvm::StringRef term) {
    return llvm::SmallVector<int64_t>(term.bytes_begin(), term.bytes_end());
  };
  bool fits = equation.find("->") != std::string::npos && inputs.size() == node.inputs.size() &&
              inputs.size() <= 2 && equation.find('.') == std::string::npos &&
              static_cast<int64_t>(inputs[0].size()) == a->rank() &&
              (!b || static_cast<int64_t>(inputs[1].size()) == b->rank());
  for (char letter : resultTerm) {
    fits = fits && terms.contains(letter);
  }
  // Diagonals are not supported.
  for (llvm::StringRef term : {inputs.front(), inputs.back(), resultTerm}) {
    fits = fits && llvm::all_of(term, llvm::isAlpha) &&
           llvm::all_of(term, [&](char letter) { return term.count(letter) == 1; });
  }
  if (!fits) {
    return fail(node,
                "expected an equation of one or two terms and a result, got '" + equation + "'");
  }
  return give(node,
              views.contract(nameOf(node), *a, labels(inputs[0]), b,
                             b ? labels(inputs[1]) : llvm::SmallVector<int64_t>(),
                             labels(resultTerm)),
              kNoMatmul);
}

std::optional<View> GraphBuilder::mean(const onnx::Node &node, const View &view,
                                       llvm::ArrayRef<int64_t> dims, bool keeps, bool isMean) {
  llvm::SmallVector<int64_t> labels, kept;
  double count = 1;
  for (int64_t dim = 0; dim < view.rank(); ++dim) {
    labels.push_back(dim);
    if (llvm::is_contained(dims, dim)) {
      count *= view.lengths()[static_cast<size_t>(dim)];
    } else {
      kept.push_back(dim);
    }
  }
  if (onnx::isPerSample(count)) {
    return std::nullopt;
  }
  std::optional<View> sum = views.contract(nameOf(node), view, labels, nullptr, {}, kept);
  if (!sum) {
    return std::nullopt;
  }
  if (isMean && count != 1) {
    sum =
        views.map(nameOf(node), {*sum}, [=](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
          Value factor = scalarConstant(scalars, in[0], 1.0 / count);
          return arith::MulFOp::create(scalars, in[0], factor);
        });
  }
  if (keeps) {
    for (int64_t dim = 0; dim < view.rank(); ++dim) {
      if (llvm::is_contained(dims, dim)) {
        sum->dims.insert(sum->dims.begin() + dim, Parts());
      }
    }
  }
  // After a sum over the features, none are left to cut.
  sum->isInner = view.isInner && !llvm::is_contained(dims, view.rank() - 1);
  return sum;
}

bool GraphBuilder::reduce(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  std::optional<std::vector<int64_t>> axes = integersOf(node, 1, "axes");
  llvm::SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < view->rank(); ++dim) {
    bool isNamed = !axes || axes->empty() || llvm::any_of(*axes, [&](int64_t axis) {
      return onnx::axisOf(axis, view->rank()) == dim;
    });
    if (isNamed) {
      dims.push_back(dim);
    }
  }
  if (onnx::integerAttribute(node, "noop_with_empty_axes", 0) != 0 && (!axes || axes->empty())) {
    dims.clear();
  }
  return give(node,
              mean(node, *view, dims, onnx::integerAttribute(node, "keepdims", 1) != 0,
                   node.op == "ReduceMean"),
              "a sum over the batch, or over what is the same all along, is not supported");
}

bool GraphBuilder::layerNorm(const onnx::Node &node) {
  const View *input = viewOf(node, 0), *scale = input ? viewOf(node, 1) : nullptr;
  const View *bias = scale && !node.input(2).empty() ? viewOf(node, 2) : nullptr;
  if (!scale || (!node.input(2).empty() && !bias)) {
    return false;
  }
  bool isRms = node.op == "RMSNormalization";
  std::optional<int64_t> axis =
      onnx::axisOf(onnx::integerAttribute(node, "axis", -1), input->rank());
  if (axis != input->rank() - 1 || (isRms && bias)) {
    return fail(node, "norms are supported over the last dimension only");
  }
  std::optional<View> view = views.packLast(nameOf(node), *input);
  std::optional<Value> ofScale = views.materialize(nameOf(node), *scale);
  std::optional<Value> ofBias =
      bias ? views.materialize(nameOf(node), *bias) : std::optional(Value());
  auto lastOf = [](Value tensor) {
    return llvm::cast<RankedTensorType>(tensor.getType()).getShape().back();
  };
  if (!view || !ofScale || !ofBias || scale->rank() != 1 || (bias && bias->rank() != 1) ||
      lastOf(*ofScale) != lastOf(view->tensor) ||
      (*ofBias && lastOf(*ofBias) != lastOf(*ofScale))) {
    return fail(node, "expected scale and bias as long as the last dimension");
  }
  nameDimension(*scale, 0, input->isInner ? "ffn" : "hidden");
  if (bias) {
    nameDimension(*bias, 0, input->isInner ? "ffn" : "hidden");
  }
  view->tensor = ops.round(nameOf(node), view->tensor);
  view->tensor = NormOp::create(ops.builder, ops.location(nameOf(node)), view->tensor.getType(),
                                isRms ? NormKind::RMS : NormKind::Layer, view->tensor, *ofScale,
                                *ofBias, llvm::APFloat(onnx::realAttribute(node, "epsilon", 1e-5)));
  return give(node, *view);
}

/// Returns true if every query sees all keys up to its own and no later ones: zeros up to the
/// diagonal, and after it numbers whose exponential is 0.
static bool isCausal(const onnx::Constant &mask) {
  if (mask.rank() < 2) {
    return false;
  }
  int64_t columns = mask.shape.back(), rows = mask.shape[static_cast<size_t>(mask.rank() - 2)];
  if (rows != columns || rows * columns != static_cast<int64_t>(mask.values.size())) {
    return false;
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      double value = mask.values[static_cast<size_t>(row * columns + column)];
      if (column <= row ? value != 0.0 : !(value <= -1e4)) {
        return false;
      }
    }
  }
  return true;
}

bool GraphBuilder::softmax(const onnx::Node &node) {
  const auto *masked = std::get_if<WithTable>(&lookup(node.input(0)));
  if (masked && masked->kind == WithTable::Kind::Sum) {
    auto axis = onnx::axisOf(onnx::integerAttribute(node, "axis", -1), masked->view.rank());
    if (axis != masked->view.rank() - 1 || !isCausal(*masked->table) ||
        double(masked->table->shape.back()) != masked->view.lengths().back()) {
      return fail(node,
                  "only causal masks are supported: zeros up to the diagonal, and numbers below "
                  "-1e4 after it");
    }
    WithTable weights = *masked;
    weights.kind = WithTable::Kind::CausalWeights;
    known[node.outputs[0]] = weights;
    return true;
  }
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  auto axis = onnx::axisOf(onnx::integerAttribute(node, "axis", -1), view->rank());
  if (axis != view->rank() - 1) {
    return fail(node, "supported over the last dimension only");
  }
  std::optional<View> packed = views.packLast(nameOf(node), *view);
  if (packed) {
    Location loc = ops.location(nameOf(node));
    Value wide = createCast(ops.builder, loc, packed->tensor, ops.wideElement());
    Value weights = SoftmaxOp::create(ops.builder, loc, wide.getType(), wide);
    packed->tensor = ops.round(nameOf(node), weights);
  }
  if (auto found = scores.find(node.input(0)); found != scores.end() && !found->second.isSoftmax) {
    Scores weights = found->second;
    weights.isSoftmax = true;
    scores[node.outputs[0]] = weights;
  }
  return give(node, packed, "the last dimension is merged with the batch");
}

bool GraphBuilder::gather(const onnx::Node &node) {
  const View *table = viewOf(node, 0);
  if (!table) {
    return false;
  }
  std::optional<int64_t> axis =
      onnx::axisOf(onnx::integerAttribute(node, "axis", 0), table->rank());
  if (!axis) {
    return fail(node, "has no such axis");
  }
  if (const onnx::Constant *indices = constantOf(node, 1)) {
    if (indices->rank() == 0) {
      std::optional<int64_t> index =
          onnx::axisOf(onnx::clampedInteger(indices->values[0]),
                       onnx::clampedInteger(table->lengths()[static_cast<size_t>(*axis)]));
      std::optional<View> row = index ? extract(node, *table, *axis, *index, 1) : std::nullopt;
      if (row) {
        row->dims.erase(row->dims.begin() + *axis);
      }
      return give(node, row, "expected an index of a dimension other than the batch");
    }
    return *axis == 0 ? gatherRows(node, *table, *indices)
                      : fail(node, "several indices are supported along the first axis only");
  }
  const View *ids = viewOf(node, 1, /*takesIntegers=*/true);
  if (!ids) {
    return false;
  }
  std::optional<Value> numbers = views.materialize(nameOf(node), *ids);
  std::optional<Value> rows = views.materialize(nameOf(node), *table);
  bool isEmbedding = numbers && rows && table->rank() == 2 && *axis == 0 &&
                     llvm::cast<RankedTensorType>(rows->getType()).hasStaticShape() &&
                     llvm::isa<IntegerType>(getElementTypeOrSelf(numbers->getType()));
  if (!isEmbedding) {
    return fail(node, "expected a table of two dimensions, and the graph's input as indices");
  }
  nameDimension(*table, 0, "vocab");
  nameDimension(*table, 1, "hidden");
  llvm::SmallVector<int64_t> shape(llvm::cast<RankedTensorType>(numbers->getType()).getShape());
  shape.push_back(llvm::cast<RankedTensorType>(rows->getType()).getDimSize(1));
  Value embedded = EmbeddingOp::create(ops.builder, ops.location(nameOf(node)), ops.wideType(shape),
                                       *rows, *numbers, /*offset=*/Value{});
  return give(node, ViewBuilder::whole(embedded));
}

/// Consecutive rows: a table of positions.
bool GraphBuilder::gatherRows(const onnx::Node &node, const View &table,
                              const onnx::Constant &indices) {
  auto count = static_cast<int64_t>(indices.values.size());
  bool isRange = table.rank() == 2 && count > 0;
  for (int64_t i = 0; isRange && i < count; ++i) {
    isRange = indices.values[static_cast<size_t>(i)] == indices.values[0] + double(i);
  }
  double rows = table.lengths()[0];
  if (!isRange || indices.values[0] < 0 || indices.values[0] + double(count) > rows) {
    return fail(node, "expected constant indices of consecutive rows of the table");
  }
  nameDimension(table, 0, "positions");
  nameDimension(table, 1, "hidden");
  std::optional<View> taken =
      extract(node, table, 0, static_cast<int64_t>(indices.values[0]), count);
  std::vector<double> lengths(indices.shape.begin(), indices.shape.end());
  lengths.push_back(table.lengths()[1]);
  return give(node, taken ? views.reshape(nameOf(node), *taken, lengths) : std::nullopt,
              "the rows do not take the shape of the indices");
}
