//===- GraphElementwise.cpp - arithmetic and activations of ONNX graphs ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Activations.h"
#include "GraphBuilder.h"

using namespace mlir;
using namespace weft;

namespace {

using ScalarBuilder = ImplicitLocOpBuilder;

template <typename Op> Value apply(ScalarBuilder &scalars, ValueRange in) {
  return Op::create(scalars, in[0]);
}

template <typename Op> Value applyBoth(ScalarBuilder &scalars, ValueRange in) {
  return Op::create(scalars, in[0], in[1]);
}

/// Returns `x` if it compares with the number this way, else `otherwise`.
Value choose(ScalarBuilder &scalars, arith::CmpFPredicate predicate, Value x, double number,
             Value holds, Value otherwise) {
  Value isSo = arith::CmpFOp::create(scalars, predicate, x, scalarConstant(scalars, x, number));
  return arith::SelectOp::create(scalars, isSo, holds, otherwise);
}

/// Like PyTorch's: the slope at 0 is 0, and NaN stays NaN.
Value relu(ScalarBuilder &scalars, ValueRange in) {
  return choose(scalars, arith::CmpFPredicate::OLE, in[0], 0.0, scalarConstant(scalars, in[0], 0.0),
                in[0]);
}

Value absolute(ScalarBuilder &scalars, ValueRange in) {
  Value negative = arith::NegFOp::create(scalars, in[0]);
  return choose(scalars, arith::CmpFPredicate::OLT, in[0], 0.0, negative, in[0]);
}

Value sigmoid(ScalarBuilder &scalars, ValueRange in) {
  Value half = arith::MulFOp::create(scalars, in[0], scalarConstant(scalars, in[0], 0.5));
  Value tanh = math::TanhOp::create(scalars, half);
  Value scaled = arith::MulFOp::create(scalars, tanh, scalarConstant(scalars, in[0], 0.5));
  return arith::AddFOp::create(scalars, scaled, scalarConstant(scalars, in[0], 0.5));
}

/// x limited to `low` and `high`.
Value limit(ScalarBuilder &scalars, Value x, double low, double high) {
  Value above =
      choose(scalars, arith::CmpFPredicate::OLE, x, low, scalarConstant(scalars, x, low), x);
  return choose(scalars, arith::CmpFPredicate::OGE, above, high, scalarConstant(scalars, x, high),
                above);
}

/// clip(x / 6 + 1/2, 0, 1), as HardSwish has it; HardSigmoid's own default slope is 1/5.
Value hardSigmoid(ScalarBuilder &scalars, Value x, double slope) {
  Value scaled = arith::MulFOp::create(scalars, x, scalarConstant(scalars, x, slope));
  Value moved = arith::AddFOp::create(scalars, scaled, scalarConstant(scalars, x, 0.5));
  return limit(scalars, moved, 0.0, 1.0);
}

Value reciprocal(ScalarBuilder &scalars, ValueRange in) {
  return arith::DivFOp::create(scalars, scalarConstant(scalars, in[0], 1.0), in[0]);
}

} // namespace

std::optional<View> GraphBuilder::mapViews(const onnx::Node &node, llvm::ArrayRef<View> inputs,
                                           ScalarCode code) {
  std::optional<View> result = views.map(nameOf(node), inputs, code);
  if (!result) {
    return std::nullopt;
  }
  bool hasInner = false, hasOuter = false;
  for (const View &input : inputs) {
    if (!isParameter(input)) {
      hasInner |= input.isInner;
      hasOuter |= !input.isInner;
    }
  }
  result->isInner = hasInner && !hasOuter;
  for (const View &input : inputs) {
    if (isParameter(input) && input.rank() > 0) {
      nameDimension(input, input.rank() - 1, result->isInner ? "ffn" : "hidden");
    }
  }
  return result;
}

bool GraphBuilder::unary(const onnx::Node &node) {
  static const std::map<std::string, Scalar> codes = {
      {"Abs", absolute},
      {"Cos", apply<math::CosOp>},
      {"Erf", apply<math::ErfOp>},
      {"Exp", apply<math::ExpOp>},
      {"HardSwish",
       [](ScalarBuilder &scalars, ValueRange in) -> Value {
         Value gate = hardSigmoid(scalars, in[0], 1.0 / 6.0);
         return arith::MulFOp::create(scalars, in[0], gate);
       }},
      {"Log", apply<math::LogOp>},
      {"Neg", apply<arith::NegFOp>},
      {"Reciprocal", reciprocal},
      {"Relu", relu},
      {"Sigmoid", sigmoid},
      {"Sin", apply<math::SinOp>},
      {"Sqrt", apply<math::SqrtOp>},
      {"Swish", [](ScalarBuilder &scalars, ValueRange in) { return silu(scalars, in[0]); }},
      {"Tanh", apply<math::TanhOp>},
  };
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  if (node.op == "HardSigmoid") {
    double slope = onnx::realAttribute(node, "alpha", 0.2);
    double offset = onnx::realAttribute(node, "beta", 0.5);
    auto code = [slope, offset](ScalarBuilder &scalars, ValueRange in) -> Value {
      Value scaled = arith::MulFOp::create(scalars, in[0], scalarConstant(scalars, in[0], slope));
      Value moved = arith::AddFOp::create(scalars, scaled, scalarConstant(scalars, in[0], offset));
      return limit(scalars, moved, 0.0, 1.0);
    };
    return give(node, mapViews(node, {*view}, code), "cannot be mapped");
  }
  if (node.op == "Swish" && onnx::realAttribute(node, "alpha", 1.0) != 1.0) {
    return fail(node, "expected alpha 1");
  }
  return give(node, mapViews(node, {*view}, codes.at(node.op)), "cannot be mapped");
}

bool GraphBuilder::gelu(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  if (!view) {
    return false;
  }
  bool isTanh = onnx::textAttribute(node, "approximate", "none") == "tanh";
  auto code = [isTanh](ScalarBuilder &scalars, ValueRange in) {
    return isTanh ? weft::geluTanh(scalars, in[0]) : weft::gelu(scalars, in[0]);
  };
  return give(node, mapViews(node, {*view}, code), "cannot be mapped");
}

bool GraphBuilder::clip(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  const onnx::Constant *low = constantOf(node, 1), *high = constantOf(node, 2);
  bool isKnown = (low || node.input(1).empty()) && (high || node.input(2).empty());
  if (!view) {
    return false;
  }
  if (!isKnown || (low && !low->isScalar()) || (high && !high->isScalar())) {
    return fail(node, "expected constant limits");
  }
  double least = low ? low->values[0] : -std::numeric_limits<double>::infinity();
  double most = high ? high->values[0] : std::numeric_limits<double>::infinity();
  auto code = [=](ScalarBuilder &scalars, ValueRange in) {
    return limit(scalars, in[0], least, most);
  };
  return give(node, mapViews(node, {*view}, code), "cannot be mapped");
}

bool GraphBuilder::leakyRelu(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  double slope = onnx::realAttribute(node, "alpha", 0.01);
  auto code = [slope](ScalarBuilder &scalars, ValueRange in) {
    Value scaled = arith::MulFOp::create(scalars, in[0], scalarConstant(scalars, in[0], slope));
    return choose(scalars, arith::CmpFPredicate::OLE, in[0], 0.0, scaled, in[0]);
  };
  return view && give(node, mapViews(node, {*view}, code), "cannot be mapped");
}

static const std::map<std::string, Value (*)(ScalarBuilder &, ValueRange)> &binaryCodes() {
  static const std::map<std::string, Value (*)(ScalarBuilder &, ValueRange)> codes = {
      {"Add", applyBoth<arith::AddFOp>},     {"Sub", applyBoth<arith::SubFOp>},
      {"Mul", applyBoth<arith::MulFOp>},     {"Div", applyBoth<arith::DivFOp>},
      {"Max", applyBoth<arith::MaximumFOp>}, {"Min", applyBoth<arith::MinimumFOp>},
  };
  return codes;
}

bool GraphBuilder::withNumber(const onnx::Node &node, const View &input,
                              const onnx::Constant &number, bool numberIsFirst) {
  View view = input;
  while (view.rank() < number.rank()) {
    view.dims.insert(view.dims.begin(), Parts());
  }
  double value = number.values[0];
  auto code = [&](ScalarBuilder &scalars, ValueRange in) {
    Value constant = scalarConstant(scalars, in[0], value);
    llvm::SmallVector<Value> both{in[0], constant};
    if (numberIsFirst) {
      std::swap(both[0], both[1]);
    }
    return binaryCodes().at(node.op)(scalars, both);
  };
  auto found = scores.find(node.input(numberIsFirst ? 1 : 0));
  if (found != scores.end() && !found->second.isSoftmax &&
      (node.op == "Mul" || (node.op == "Div" && !numberIsFirst))) {
    Scores scaled = found->second;
    scaled.scale = node.op == "Mul" ? scaled.scale * value : scaled.scale / value;
    scores[node.outputs[0]] = scaled;
  }
  return give(node, mapViews(node, {view}, code), "cannot be mapped");
}

bool GraphBuilder::withTable(const onnx::Node &node, size_t viewInput) {
  const View *view = viewOf(node, viewInput);
  if (!view) {
    return false;
  }
  if (node.op != "Mul" && node.op != "Add") {
    return fail(
        node, "arithmetic with a table of numbers is supported only for rotary positions "
              "and causal masks; is the table a parameter that the description lists as constant?");
  }
  known[node.outputs[0]] = WithTable{
      node.op == "Mul" ? WithTable::Kind::Product : WithTable::Kind::Sum, node.inputs[viewInput],
      *view, std::get<std::shared_ptr<const onnx::Constant>>(lookup(node.inputs[1 - viewInput]))};
  return true;
}

bool GraphBuilder::binary(const onnx::Node &node) {
  if (node.inputs.size() != 2) {
    return fail(node, "expected two inputs, got " + std::to_string(node.inputs.size()));
  }
  const onnx::Constant *first = constantOf(node, 0), *second = constantOf(node, 1);
  if (first || second) {
    const onnx::Constant &constant = first ? *first : *second;
    size_t viewInput = first ? 1 : 0;
    if (!constant.isScalar()) {
      return withTable(node, viewInput);
    }
    const View *view = viewOf(node, viewInput);
    return view && withNumber(node, *view, constant, first != nullptr);
  }
  const auto *tableA = std::get_if<WithTable>(&lookup(node.inputs[0]));
  const auto *tableB = std::get_if<WithTable>(&lookup(node.inputs[1]));
  if (tableA && tableB && node.op == "Add" && tableA->kind == WithTable::Kind::Product &&
      tableB->kind == WithTable::Kind::Product) {
    return rotary(node, *tableA, *tableB);
  }
  const View *a = viewOf(node, 0), *b = a ? viewOf(node, 1) : nullptr;
  if (!b) {
    return false;
  }
  return give(node, mapViews(node, {*a, *b}, binaryCodes().at(node.op)),
              "the shapes of the inputs do not go together");
}

bool GraphBuilder::power(const onnx::Node &node) {
  const View *view = viewOf(node, 0);
  const onnx::Constant *exponent = constantOf(node, 1);
  if (!view) {
    return false;
  }
  if (!exponent || !exponent->isScalar()) {
    return fail(node, "expected a constant number as the exponent");
  }
  double e = exponent->values[0];
  auto code = [e](ScalarBuilder &scalars, ValueRange in) -> Value {
    Value x = in[0];
    if (e == 2.0 || e == 3.0) {
      Value square = arith::MulFOp::create(scalars, x, x);
      return e == 2.0 ? square : arith::MulFOp::create(scalars, square, x).getResult();
    }
    if (e == 0.5) {
      return math::SqrtOp::create(scalars, x);
    }
    if (e == -0.5) {
      return math::RsqrtOp::create(scalars, x);
    }
    if (e == -1.0) {
      return reciprocal(scalars, x);
    }
    return math::PowFOp::create(scalars, x, scalarConstant(scalars, x, e));
  };
  return give(node, mapViews(node, {*view}, code), "cannot be mapped");
}

/// One side of a known mask is a number: the result is a sum with a table.
bool GraphBuilder::where(const onnx::Node &node) {
  const onnx::Constant *condition = constantOf(node, 0);
  const onnx::Constant *ifTrue = constantOf(node, 1), *ifFalse = constantOf(node, 2);
  const onnx::Constant *number = ifTrue ? ifTrue : ifFalse;
  if (!condition || !number || !number->isScalar()) {
    return fail(node, "expected a constant condition, and a constant number in one of the cases");
  }
  const View *view = viewOf(node, ifTrue ? 2 : 1);
  if (!view) {
    return false;
  }
  onnx::Constant table{onnx::ElementType::F32, condition->shape, {}};
  for (double holds : condition->values) {
    bool isNumber = (holds != 0) == (ifTrue != nullptr);
    table.values.push_back(isNumber ? number->values[0] : 0.0);
  }
  known[node.outputs[0]] = WithTable{WithTable::Kind::Sum, node.inputs[ifTrue ? 2 : 1], *view,
                                     std::make_shared<const onnx::Constant>(std::move(table))};
  return hold(node, *std::get<WithTable>(known[node.outputs[0]]).table);
}
