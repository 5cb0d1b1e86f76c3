//===- GraphAttention.cpp - attention and rotary positions in graphs ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Exporters write attention as MatMul(Softmax(MatMul(Q, K) + mask), V), causal with a mask or
// without one, and rotary positions as x * cos + Concat(-x2, x1) * sin with tables of numbers. Both
// become ops of the dialect, which store neither a matrix of positions by positions nor a table.
//
//===----------------------------------------------------------------------===//

#include "GraphBuilder.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace weft;

namespace {

/// Returns the frequencies of tables of cosines and sines [position, 2 m], whose second half equals
/// the first; nothing for other tables. Later rows determine a frequency more exactly; the row
/// before tells the number of full turns.
std::optional<std::vector<double>> frequenciesOf(const onnx::Constant &cosines,
                                                 const onnx::Constant &sines) {
  int64_t width = cosines.shape.back();
  int64_t positions = width ? static_cast<int64_t>(cosines.values.size()) / width : 0;
  if (cosines.shape != sines.shape || width % 2 != 0 || positions < 1 ||
      cosines.shape[cosines.shape.size() - 2] != positions) {
    return std::nullopt;
  }
  auto angle = [&](int64_t position, int64_t i) {
    auto place = static_cast<size_t>(position * width + i);
    return std::atan2(sines.values[place], cosines.values[place]);
  };
  std::vector<double> frequencies;
  for (int64_t i = 0; i < width / 2; ++i) {
    double frequency = 0;
    for (int64_t position = 1; position < positions; position *= 2) {
      double guess = frequency * static_cast<double>(position);
      double turned = std::remainder(angle(position, i) - guess, 2 * std::numbers::pi);
      frequency += turned / static_cast<double>(position);
    }
    frequencies.push_back(frequency);
  }
  for (int64_t position = 0; position < positions; ++position) {
    for (int64_t i = 0; i < width; ++i) {
      double expected = frequencies[static_cast<size_t>(i % (width / 2))] * double(position);
      auto place = static_cast<size_t>(position * width + i);
      double tolerance = 1e-6 * (1 + double(position));
      if (std::fabs(cosines.values[place] - std::cos(expected)) > tolerance ||
          std::fabs(sines.values[place] - std::sin(expected)) > tolerance) {
        return std::nullopt;
      }
    }
  }
  return frequencies;
}

} // namespace

/// Returns the value of which `name` is the first or second half along the last dimension, and
/// which half.
std::optional<std::pair<std::string, int>> GraphBuilder::halfOf(llvm::StringRef name) {
  const onnx::Node *node = producer(name);
  if (!node) {
    return std::nullopt;
  }
  int number = static_cast<int>(llvm::find(node->outputs, name) - node->outputs.begin());
  if (node->op == "SequenceAt") {
    number = static_cast<int>(std::clamp<int64_t>(integerOf(*node, 1).value_or(-1), -1, 2));
    node = producer(node->inputs[0]);
  }
  if (!node) {
    return std::nullopt;
  }
  const auto *whole = std::get_if<View>(&lookup(node->input(0)));
  if (!whole || whole->rank() < 1) {
    return std::nullopt;
  }
  double length = whole->lengths().back();
  auto isLast = [&](int64_t axis) {
    return onnx::axisOf(axis, whole->rank()) == whole->rank() - 1;
  };
  if (node->op == "Slice") {
    auto starts = integersOf(*node, 1, "starts"), ends = integersOf(*node, 2, "ends"),
         axes = integersOf(*node, 3, "axes"), steps = integersOf(*node, 4, "steps");
    bool isHalf = starts && ends && axes && axes->size() == 1 && isLast(axes->front()) &&
                  starts->size() == 1 && ends->size() == 1 &&
                  (!steps || *steps == std::vector<int64_t>{1});
    if (isHalf && starts->front() == 0 && double(ends->front()) * 2 == length) {
      return std::pair(node->inputs[0], 0);
    }
    if (isHalf && double(starts->front()) * 2 == length && double(ends->front()) >= length) {
      return std::pair(node->inputs[0], 1);
    }
    return std::nullopt;
  }
  const auto *half = std::get_if<View>(&lookup(name));
  bool isHalf = (node->op == "Split" || node->op == "SplitToSequence") && half &&
                half->rank() == whole->rank() && isLast(onnx::integerAttribute(*node, "axis", 0)) &&
                half->lengths().back() * 2 == length && number >= 0 && number < 2;
  return isHalf ? std::optional(std::pair(node->inputs[0], number)) : std::nullopt;
}

/// Returns true if `name` is Concat(-x2, x1) of the halves of `of`.
bool GraphBuilder::isRotatedHalf(llvm::StringRef name, llvm::StringRef of) {
  const onnx::Node *concat = producer(name);
  if (!concat || concat->op != "Concat" || concat->inputs.size() != 2) {
    return false;
  }
  const onnx::Node *negated = producer(concat->inputs[0]);
  if (!negated || negated->op != "Neg") {
    return false;
  }
  return halfOf(negated->inputs[0]) == std::pair(of.str(), 1) &&
         halfOf(concat->inputs[1]) == std::pair(of.str(), 0);
}

Value GraphBuilder::rotaryTable(const onnx::Node &node, llvm::ArrayRef<double> frequencies,
                                int64_t positions) {
  std::vector<double> key(frequencies.begin(), frequencies.end());
  key.push_back(static_cast<double>(positions));
  Value &table = rotaryTables[key];
  if (!table) {
    table = RotaryTableOp::create(
        ops.builder, ops.location(nameOf(node)),
        ops.wideType({2, positions, static_cast<int64_t>(frequencies.size())}),
        ops.builder.getF64ArrayAttr(frequencies), /*offset=*/Value{});
  }
  return table;
}

/// Recognizes x * cos + rotated(x) * sin, in either order.
bool GraphBuilder::rotary(const onnx::Node &node, const WithTable &first, const WithTable &second) {
  const WithTable *cosines = &first, *sines = &second;
  if (isRotatedHalf(first.base, second.base)) {
    std::swap(cosines, sines);
  } else if (!isRotatedHalf(second.base, first.base)) {
    return fail(node, "the sum of two matmuls with tables of numbers is supported only as rotary "
                      "positions: x * cos + Concat(-x2, x1) * sin");
  }
  const View &x = cosines->view;
  std::optional<std::vector<double>> frequencies;
  if (x.rank() >= 3 && cosines->table->rank() >= 2) {
    frequencies = frequenciesOf(*cosines->table, *sines->table);
  }
  double positions = x.rank() >= 3 ? x.lengths()[static_cast<size_t>(x.rank() - 2)] : 0;
  if (!frequencies || double(frequencies->size()) * 2 != x.lengths().back() ||
      static_cast<double>(cosines->table->values.size()) != positions * x.lengths().back()) {
    return fail(node, "expected tables of the cosines and sines of positions times frequencies");
  }
  // [batch…, head…, position, feature] as [batch, position, head…, feature].
  llvm::SmallVector<int64_t> order{0, x.rank() - 2};
  for (int64_t dim = 1; dim < x.rank() - 2; ++dim) {
    order.push_back(dim);
  }
  order.push_back(x.rank() - 1);
  std::optional<Value> tensor = views.materialize(nameOf(node), ViewBuilder::transpose(x, order));
  if (!tensor) {
    return fail(node, "the batch is merged with another dimension");
  }
  tensor = ops.round(nameOf(node), *tensor);
  Value rotated = RotaryOp::create(
      ops.builder, ops.location(nameOf(node)), tensor->getType(), *tensor,
      rotaryTable(node, *frequencies, static_cast<int64_t>(positions)), /*inverse=*/false);
  llvm::SmallVector<int64_t> back(order.size());
  for (auto [place, dim] : llvm::enumerate(order)) {
    back[static_cast<size_t>(dim)] = static_cast<int64_t>(place);
  }
  View result = ViewBuilder::transpose(ViewBuilder::whole(rotated), back);
  result.isInner = x.isInner;
  return give(node, result);
}

namespace {

/// Appends the parts of some dimensions of a view, before its last two dimensions.
View withOneLead(const View &view) {
  View result = view;
  Parts lead;
  for (int64_t dim = 0; dim + 2 < view.rank(); ++dim) {
    lead.append(view.dims[static_cast<size_t>(dim)]);
  }
  result.dims = {lead, view.dims[static_cast<size_t>(view.rank() - 2)], view.dims.back()};
  return result;
}

/// Batch, and heads by whether keys differ between them (KV heads) or are shared (groups).
struct Lead {
  Parts batch, heads, groups;
};

Lead sortLead(const Parts &of, const Parts &keys) {
  Lead lead;
  for (auto [part, key] : llvm::zip_equal(of, keys)) {
    Parts &to = part.size == ShapedType::kDynamic ? lead.batch
                : key.isSpread()                  ? lead.groups
                                                  : lead.heads;
    to.push_back(part);
  }
  return lead;
}

} // namespace

void GraphBuilder::keepScores(const onnx::Node &node, size_t number) {
  if (auto found = scores.find(node.input(number)); found != scores.end()) {
    scores[node.outputs[0]] = found->second;
  }
}

bool GraphBuilder::causalAttention(const onnx::Node &node, const WithTable &weights) {
  auto found = scores.find(weights.base);
  const View *given = viewOf(node, 1);
  if (!given) {
    return false;
  }
  const char *why = "a causal mask is supported only on the matmul of queries and keys";
  std::optional<View> result;
  if (found != scores.end() && !found->second.isSoftmax) {
    result = attention(node, found->second, *given, /*isCausal=*/true, why);
  }
  return give(node, result, why);
}

std::optional<View> GraphBuilder::attention(const onnx::Node &node, const Scores &matmul,
                                            const View &given, bool isCausal, const char *&why) {
  if (matmul.query.rank() != given.rank() || given.rank() < 3) {
    return std::nullopt;
  }
  auto rank = static_cast<size_t>(matmul.key.rank());
  View keys = matmul.key;
  std::swap(keys.dims[rank - 2], keys.dims[rank - 1]);
  View q = withOneLead(matmul.query), k = withOneLead(keys), v = withOneLead(given);
  std::string name = nameOf(node);
  bool fits = k.rank() == 3 && q.lengths()[1] == k.lengths()[1] &&
              q.lengths()[2] == v.lengths()[2] && k.lengths() == v.lengths();
  for (int round = 0; fits && round < 2; ++round) {
    fits = views.align(name, q, 0, k, 0) && views.align(name, k, 0, v, 0) &&
           views.align(name, q, 0, v, 0);
  }
  if (!fits || k.dims[0].size() != q.dims[0].size() || v.dims[0].size() != q.dims[0].size()) {
    why = "queries, keys and values do not have the same heads and positions";
    return std::nullopt;
  }
  for (auto [ofK, ofV] : llvm::zip_equal(k.dims[0], v.dims[0])) {
    if (ofK.isSpread() != ofV.isSpread()) {
      why = "keys and values are shared by different heads";
      return std::nullopt;
    }
  }
  Parts ofKeys = k.dims[0];
  Lead leadQ = sortLead(q.dims[0], ofKeys), leadK = sortLead(k.dims[0], ofKeys),
       leadV = sortLead(v.dims[0], ofKeys);
  q.dims = {leadQ.batch, q.dims[1], leadQ.heads, leadQ.groups, q.dims[2]};
  k.dims = {leadK.batch, k.dims[1], leadK.heads, k.dims[2]};
  v.dims = {leadV.batch, v.dims[1], leadV.heads, v.dims[2]};
  std::optional<Value> query = views.materialize(name, q), key = views.materialize(name, k),
                       value = views.materialize(name, v);
  if (!query || !key || !value || leadQ.batch.size() != 1) {
    why = "expected queries, keys and values to differ between samples";
    return std::nullopt;
  }
  for (std::optional<Value> *input : {&query, &key, &value}) {
    *input = ops.round(name, **input);
  }
  auto shape = llvm::cast<RankedTensorType>(query->getType()).getShape();
  auto attention = AttentionOp::create(
      ops.builder, ops.location(name), query->getType(),
      ops.wideType({shape[0], shape[2], shape[3], shape[1]}), *query, *key, *value,
      /*seed=*/Value{}, /*step=*/Value{}, /*layer=*/Value{}, /*starts=*/Value{},
      /*offsets=*/ValueRange{}, /*turn=*/Value{}, llvm::APFloat(matmul.scale), llvm::APFloat(0.0),
      /*window=*/IntegerAttr{},
      /*bidirectional=*/!isCausal,
      /*global_shape=*/DenseI64ArrayAttr{}, /*order=*/ZigzagAttr{}, /*mesh=*/MeshAttr{},
      /*axes=*/ArrayAttr{}, /*turns=*/IntegerAttr{});
  // [batch, position, KV heads, groups, feature]: every part of the heads gets its place back.
  View output = ViewBuilder::whole(attention.getOutput());
  std::vector<double> lengths{onnx::kBatch, double(shape[1])};
  for (const Parts *parts : {&leadQ.heads, &leadQ.groups}) {
    for (const Part &part : *parts) {
      lengths.push_back(double(part.size));
    }
  }
  lengths.push_back(double(shape[4]));
  why = "the heads of the result cannot be separated";
  std::optional<View> parts = views.reshape(name, output, lengths);
  if (!parts) {
    return std::nullopt;
  }
  size_t head = 2, group = 2 + leadQ.heads.size();
  View result{parts->tensor, {}, matmul.query.isInner};
  Parts lead;
  for (const Part &part : ofKeys) {
    size_t from = part.size == ShapedType::kDynamic ? 0 : part.isSpread() ? group++ : head++;
    lead.append(parts->dims[from]);
  }
  result.dims = {lead, parts->dims[1], parts->dims.back()};
  std::vector<double> all = matmul.query.lengths();
  return views.reshape(name, result, all);
}
