//===- Fold.cpp - evaluates nodes at compile time -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Onnx/Fold.h"

#include "FoldParts.h"

#include "support/Text.h"
#include "weft/Onnx/Slices.h"

#include <algorithm>
#include <cmath>

namespace weft::onnx {

namespace {

using Shape = std::vector<int64_t>;
using Scalars = double (*)(double, double);

/// Element types of results.
enum class Gives { Same, Truth };

struct Arithmetic {
  Scalars code;
  Gives gives = Gives::Same;
  /// True if the batch may be an operand.
  bool ofBatch = false;
};

const std::map<std::string, Arithmetic> &binaries() {
  static const std::map<std::string, Arithmetic> table = {
      {"Add", {[](double a, double b) { return a + b; }}},
      {"Sub", {[](double a, double b) { return a - b; }}},
      {"Mul", {[](double a, double b) { return a * b; }, Gives::Same, true}},
      {"Div", {[](double a, double b) { return a / b; }, Gives::Same, true}},
      {"Pow", {[](double a, double b) { return std::pow(a, b); }}},
      {"Mod", {[](double a, double b) { return a - b * std::floor(a / b); }}},
      {"Min", {[](double a, double b) { return std::min(a, b); }, Gives::Same, true}},
      {"Max", {[](double a, double b) { return std::max(a, b); }, Gives::Same, true}},
      {"Equal", {[](double a, double b) { return double(a == b); }, Gives::Truth, true}},
      {"Less", {[](double a, double b) { return double(a < b); }, Gives::Truth}},
      {"LessOrEqual", {[](double a, double b) { return double(a <= b); }, Gives::Truth}},
      {"Greater", {[](double a, double b) { return double(a > b); }, Gives::Truth}},
      {"GreaterOrEqual", {[](double a, double b) { return double(a >= b); }, Gives::Truth}},
      {"And", {[](double a, double b) { return double(a != 0 && b != 0); }, Gives::Truth}},
      {"Or", {[](double a, double b) { return double(a != 0 || b != 0); }, Gives::Truth}},
  };
  return table;
}

const std::map<std::string, double (*)(double)> &unaries() {
  static const std::map<std::string, double (*)(double)> table = {
      {"Neg", [](double a) { return -a; }},
      {"Abs", [](double a) { return std::fabs(a); }},
      {"Sqrt", [](double a) { return std::sqrt(a); }},
      {"Reciprocal", [](double a) { return 1 / a; }},
      {"Exp", [](double a) { return std::exp(a); }},
      {"Log", [](double a) { return std::log(a); }},
      {"Cos", [](double a) { return std::cos(a); }},
      {"Sin", [](double a) { return std::sin(a); }},
      {"Floor", [](double a) { return std::floor(a); }},
      {"Ceil", [](double a) { return std::ceil(a); }},
      {"Not", [](double a) { return double(a == 0); }},
  };
  return table;
}

/// Evaluates one node.
class Folder {
public:
  Folder(const Node &node, const std::vector<const Constant *> &inputs)
      : node(node), inputs(inputs) {}

  rt::Result<std::vector<Constant>> run();

private:
  rt::Status elementwise();
  rt::Status unary(double (*code)(double));
  rt::Status where();
  rt::Status cast();
  rt::Status constant();
  rt::Status constantOfShape();
  rt::Status expand();
  rt::Status range();
  rt::Status trilu();
  rt::Status einsum();

  rt::Status allocate(ElementType type, const Shape &shape);
  rt::Status takes(size_t count);

  const Node &node;
  const std::vector<const Constant *> &inputs;
  Constant result;
};

rt::Status Folder::allocate(ElementType type, const Shape &shape) {
  result.type = type;
  result.shape = shape;
  return allocateValues(result);
}

rt::Status Folder::takes(size_t count) {
  if (inputs.size() < count || std::any_of(inputs.begin(), inputs.begin() + long(count),
                                           [](const Constant *input) { return !input; })) {
    return rt::makeError("expected " + std::to_string(count) + " inputs");
  }
  return {};
}

rt::Status Folder::elementwise() {
  const Arithmetic &arithmetic = binaries().at(node.op);
  if (rt::Status status = takes(2); !status) {
    return status;
  }
  const Constant &a = *inputs[0], &b = *inputs[1];
  Shape shape;
  if (!broadcastShapes({&a.shape, &b.shape}, shape)) {
    return rt::makeError("shapes " + textOf(a.shape) + " and " + textOf(b.shape) +
                         " do not go together");
  }
  ElementType type = arithmetic.gives == Gives::Truth ? ElementType::Bool : a.type;
  if (rt::Status status = allocate(type, shape); !status) {
    return status;
  }
  bool isFine = true;
  double *next = result.values.data();
  std::array strides{spreadStrides(a.shape, shape), spreadStrides(b.shape, shape)};
  forEachPlace<2>(shape, strides, {0, 0}, [&](const std::array<int64_t, 2> &places) {
    double x = a.values[size_t(places[0])], y = b.values[size_t(places[1])];
    bool mixes = (isPerSample(x) || isPerSample(y)) && !arithmetic.ofBatch;
    double value = arithmetic.code(x, y);
    if (!isFloat(type)) {
      value = std::trunc(value);
    }
    // n * batch / m must be a whole multiple of the batch.
    bool isOdd =
        isPerSample(x) && node.op == "Div" && std::fmod(value, kBatch) != 0 && isPerSample(value);
    *next++ = value;
    isFine &= !mixes && !isOdd;
  });
  return isFine ? rt::Status()
                : rt::makeError("only products can be taken of the batch, whose size is not known");
}

rt::Status Folder::unary(double (*code)(double)) {
  if (rt::Status status = takes(1); !status) {
    return status;
  }
  result = *inputs[0];
  std::transform(result.values.begin(), result.values.end(), result.values.begin(), code);
  return {};
}

rt::Status Folder::where() {
  if (rt::Status status = takes(3); !status) {
    return status;
  }
  Shape shape;
  if (!broadcastShapes({&inputs[0]->shape, &inputs[1]->shape, &inputs[2]->shape}, shape)) {
    return rt::makeError("the shapes of the inputs do not go together");
  }
  if (rt::Status status = allocate(inputs[1]->type, shape); !status) {
    return status;
  }
  std::array<Shape, 3> strides;
  for (size_t i = 0; i < 3; ++i) {
    strides[i] = spreadStrides(inputs[i]->shape, shape);
  }
  double *next = result.values.data();
  forEachPlace<3>(shape, strides, {0, 0, 0}, [&](const std::array<int64_t, 3> &places) {
    bool holds = inputs[0]->values[size_t(places[0])] != 0;
    *next++ = inputs[holds ? 1 : 2]->values[size_t(places[holds ? 1 : 2])];
  });
  return {};
}

rt::Status Folder::cast() {
  if (rt::Status status = takes(node.op == "CastLike" ? 2 : 1); !status) {
    return status;
  }
  std::optional<ElementType> type = node.op == "CastLike"
                                        ? std::optional(inputs[1]->type)
                                        : elementTypeOfNumber(integerAttribute(node, "to", 0));
  if (!type) {
    return rt::makeError("casts to an element type that is not supported");
  }
  result = *inputs[0];
  result.type = *type;
  for (double &value : result.values) {
    if (*type == ElementType::Bool) {
      value = value != 0;
    } else if (!isFloat(*type)) {
      value = std::trunc(value);
    } else if (*type == ElementType::F32 && !isPerSample(value)) {
      value = static_cast<float>(value);
    }
  }
  return {};
}

rt::Status Folder::constant() {
  for (const auto &[name, attribute] : node.attributes) {
    if (const auto *tensor = std::get_if<Constant>(&attribute)) {
      result = *tensor;
    } else if (const auto *integer = std::get_if<int64_t>(&attribute)) {
      result = {ElementType::I64, {}, {static_cast<double>(*integer)}};
    } else if (const auto *real = std::get_if<double>(&attribute)) {
      result = {ElementType::F32, {}, {*real}};
    } else if (const auto *integers = std::get_if<std::vector<int64_t>>(&attribute)) {
      result = {ElementType::I64,
                {static_cast<int64_t>(integers->size())},
                {integers->begin(), integers->end()}};
    } else if (const auto *reals = std::get_if<std::vector<double>>(&attribute)) {
      result = {ElementType::F32, {static_cast<int64_t>(reals->size())}, *reals};
    } else {
      return rt::makeError("attribute '" + name + "' is not supported");
    }
    return {};
  }
  return rt::makeError("has no value");
}

rt::Status Folder::constantOfShape() {
  if (rt::Status status = takes(1); !status) {
    return status;
  }
  rt::Result<Shape> shape = lengthsOf(*inputs[0]);
  if (!shape) {
    return shape.error();
  }
  Constant value{ElementType::F32, {1}, {0.0}};
  auto found = node.attributes.find("value");
  if (found != node.attributes.end() && std::holds_alternative<Constant>(found->second)) {
    value = std::get<Constant>(found->second);
  }
  if (value.values.size() != 1) {
    return rt::makeError("expected one value");
  }
  if (rt::Status status = allocate(value.type, *shape); !status) {
    return status;
  }
  std::fill(result.values.begin(), result.values.end(), value.values.front());
  return {};
}

/// A constant is the same for all samples: along the batch it keeps length 1.
rt::Status Folder::expand() {
  if (rt::Status status = takes(2); !status) {
    return status;
  }
  Constant target = *inputs[1];
  std::replace_if(target.values.begin(), target.values.end(), isPerSample, 1.0);
  rt::Result<Shape> asked = lengthsOf(target);
  if (!asked) {
    return asked.error();
  }
  Shape shape;
  if (!broadcastShapes({&inputs[0]->shape, &*asked}, shape)) {
    return rt::makeError("shape " + textOf(inputs[0]->shape) + " does not expand to " +
                         textOf(*asked));
  }
  if (rt::Status status = allocate(inputs[0]->type, shape); !status) {
    return status;
  }
  double *next = result.values.data();
  std::array strides{spreadStrides(inputs[0]->shape, shape)};
  forEachPlace<1>(shape, strides, {0}, [&](const std::array<int64_t, 1> &places) {
    *next++ = inputs[0]->values[size_t(places[0])];
  });
  return {};
}

rt::Status Folder::range() {
  if (!takes(3) || !inputs[0]->isScalar() || !inputs[1]->isScalar() || !inputs[2]->isScalar()) {
    return rt::makeError("expected three numbers");
  }
  double start = inputs[0]->values[0], limit = inputs[1]->values[0], step = inputs[2]->values[0];
  double count = step == 0 ? -1 : std::max(0.0, std::ceil((limit - start) / step));
  if (isPerSample(limit) || isPerSample(start) || !(count >= 0 && count < 0x1p40)) {
    return rt::makeError("expected a range of known length");
  }
  if (rt::Status status = allocate(inputs[0]->type, {static_cast<int64_t>(count)}); !status) {
    return status;
  }
  for (size_t i = 0; i < result.values.size(); ++i) {
    result.values[i] = start + static_cast<double>(i) * step;
  }
  return {};
}

rt::Status Folder::trilu() {
  if (!takes(1) || inputs[0]->rank() < 2) {
    return rt::makeError("expected a tensor of at least two dimensions");
  }
  int64_t diagonal = inputs.size() > 1 && inputs[1] && inputs[1]->isScalar()
                         ? clampedInteger(inputs[1]->values[0])
                         : 0;
  bool isUpper = integerAttribute(node, "upper", 1) != 0;
  result = *inputs[0];
  int64_t columns = result.shape.back(), rows = result.shape[result.shape.size() - 2];
  for (size_t i = 0; i < result.values.size(); ++i) {
    int64_t column = static_cast<int64_t>(i) % columns;
    int64_t row = static_cast<int64_t>(i) / columns % rows;
    bool keeps = isUpper ? column - row >= diagonal : column - row <= diagonal;
    result.values[i] = keeps ? result.values[i] : 0.0;
  }
  return {};
}

/// Computes the outer product of two vectors, as tables of positions need.
rt::Status Folder::einsum() {
  if (!takes(2) || inputs[0]->rank() != 1 || inputs[1]->rank() != 1) {
    return rt::makeError("of constants, only the outer product of two vectors is taken");
  }
  std::string equation = textAttribute(node, "equation", "");
  std::erase(equation, ' ');
  bool isOuter = equation.size() == 7 && equation[0] != equation[2] && equation[1] == ',' &&
                 equation.substr(3) == std::string("->") + equation[0] + equation[2];
  if (!isOuter) {
    return rt::makeError("of constants, only the outer product of two vectors is taken, got '" +
                         equation + "'");
  }
  if (rt::Status status = allocate(inputs[0]->type, {inputs[0]->shape[0], inputs[1]->shape[0]});
      !status) {
    return status;
  }
  size_t place = 0;
  for (double a : inputs[0]->values) {
    for (double b : inputs[1]->values) {
      result.values[place++] = a * b;
    }
  }
  return {};
}

rt::Result<std::vector<Constant>> Folder::run() {
  static const std::map<std::string, rt::Status (Folder::*)()> others = {
      {"Where", &Folder::where},   {"Cast", &Folder::cast},
      {"CastLike", &Folder::cast}, {"Constant", &Folder::constant},
      {"Expand", &Folder::expand}, {"ConstantOfShape", &Folder::constantOfShape},
      {"Range", &Folder::range},   {"Trilu", &Folder::trilu},
      {"Einsum", &Folder::einsum},
  };
  rt::Status status;
  if (binaries().contains(node.op)) {
    status = elementwise();
  } else if (auto found = unaries().find(node.op); found != unaries().end()) {
    status = unary(found->second);
  } else if (auto other = others.find(node.op); other != others.end()) {
    status = (this->*other->second)();
  } else {
    return foldMovement(node, inputs);
  }
  if (!status) {
    return status.error();
  }
  return std::vector<Constant>{result};
}

} // namespace

bool canFold(const std::string &op) {
  static const std::set<std::string> others = {"Where",    "Cast",   "CastLike",
                                               "Constant", "Expand", "ConstantOfShape",
                                               "Range",    "Trilu",  "Einsum"};
  return binaries().contains(op) || unaries().contains(op) || others.contains(op) ||
         canFoldMovement(op);
}

rt::Result<std::vector<Constant>> fold(const Node &node,
                                       const std::vector<const Constant *> &inputs) {
  return Folder(node, inputs).run();
}

} // namespace weft::onnx
