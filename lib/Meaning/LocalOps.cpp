//===- LocalOps.cpp - what ops compute on one rank ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LocalProgram.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft::meaning {

int64_t countOf(Type type) { return cast<RankedTensorType>(type).getNumElements(); }

Sizes shapeOf(Value value) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(value.getType()).getShape();
  return Sizes(shape.begin(), shape.end());
}

namespace {

Sizes stridesOf(ArrayRef<int64_t> shape) {
  Sizes strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;) {
    strides[dim - 1] = strides[dim] * shape[dim];
  }
  return strides;
}

/// An operand of a map, for the dimensions of the iteration space.
Access accessOf(ArrayId array, ArrayRef<int64_t> shape, AffineMap map) {
  Access access;
  access.array = array;
  access.strides.assign(map.getNumDims(), 0);
  for (auto [stride, expr] : llvm::zip_equal(stridesOf(shape), map.getResults())) {
    access.strides[cast<AffineDimExpr>(expr).getPosition()] = stride;
  }
  return access;
}

SmallVector<ArrayId> arraysOf(ArrayRef<LocalValue> values) {
  SmallVector<ArrayId> arrays;
  for (const LocalValue &value : values) {
    arrays.push_back(value.array);
  }
  return arrays;
}

} // namespace

LocalValue LocalOps::variable(llvm::StringRef name, int64_t count) {
  return {arrays.other((Words() << uint64_t('V') << name).print(), count), {}, {}};
}

/// The op's name and attributes, but for those that say which of equal ops it is and who runs it.
static Print makeFunction(Operation *op) {
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase(kRecomputedAttrName);
  attributes.erase(kStageAttrName);
  return (Words() << uint64_t('O') << op->getName().getStringRef()
                  << attributes.getDictionary(op->getContext()).getAsOpaquePointer())
      .print();
}

Print LocalOps::functionOf(Operation *op) {
  auto [known, isNew] = functions.try_emplace(op);
  if (isNew) {
    known->second = makeFunction(op);
  }
  return known->second;
}

LocalOps::LocalOps(Arrays &arrays, MeshAttr mesh) : arrays(arrays), mesh(mesh) {
  // As built by default, with the flags of no fast math.
  OpBuilder builder(mesh.getContext());
  Value zero =
      arith::ConstantOp::create(builder, builder.getUnknownLoc(), builder.getF64FloatAttr(0));
  auto tanh = math::TanhOp::create(builder, builder.getUnknownLoc(), zero);
  tanhFunction = makeFunction(tanh);
  tanh->erase();
  zero.getDefiningOp()->erase();
}

LocalValues LocalOps::unknown(Operation *op, ArrayRef<LocalValue> operands) {
  Words words;
  words << functionOf(op);
  for (auto [value, operand] : llvm::zip_equal(operands, op->getOperands())) {
    if (operand.getType().isIndex()) {
      words << value.number;
    } else {
      words << arrays[value.array].print << ArrayRef<int64_t>(shapeOf(operand));
    }
  }
  return results(words.print(), op);
}

LocalValue LocalOps::unknown(const Print &name, Type type) {
  return type.isIndex() ? LocalValue{0, name, {}}
                        : LocalValue{arrays.other(name, countOf(type)), {}, {}};
}

LocalValues LocalOps::results(const Print &name, Operation *op) {
  LocalValues results;
  for (auto [number, type] : llvm::enumerate(op->getResultTypes())) {
    results.push_back(unknown((Words() << name << uint64_t(number)).print(), type));
  }
  return results;
}

LocalValues LocalOps::application(CallOp call, ArrayRef<LocalValue> operands) {
  Words words;
  words << uint64_t('c') << call.getCallee();
  for (auto [value, type] : llvm::zip_equal(operands, call->getOperandTypes())) {
    words << (type.isIndex() ? value.number : arrays[value.array].print);
  }
  return results(words.print(), call);
}

LocalValues LocalOps::index(Operation *op, ArrayRef<LocalValue> operands) {
  auto join = [&](auto number, auto constant) -> LocalValues {
    bool isKnown = operands[0].constant && operands[1].constant;
    return {{0, number(operands[0].number, operands[1].number),
             isKnown
                 ? std::optional<int64_t>(constant(*operands[0].constant, *operands[1].constant))
                 : std::nullopt}};
  };
  return TypeSwitch<Operation *, LocalValues>(op)
      .Case([&](arith::ConstantOp constant) -> LocalValues {
        return {LocalValue::of(cast<IntegerAttr>(constant.getValue()).getInt())};
      })
      .Case([&](AxisIndexOp own) -> LocalValues {
        return {{0, (Words() << uint64_t('X') << own.getAxis()).print(), {}}};
      })
      .Case([&](arith::AddIOp) { return join(std::plus<>(), std::plus<>()); })
      .Case([&](arith::SubIOp) { return join(std::minus<>(), std::minus<>()); })
      .Case([&](arith::MulIOp) { return join(std::multiplies<>(), std::multiplies<>()); })
      .Default([&](Operation *) { return unknown(op, operands); });
}

/// In kernels the deviation is an operand.
LocalValue LocalOps::fill(FillOp op, ArrayRef<LocalValue> operands) {
  int64_t count = countOf(op.getType());
  if (op.getDistribution() == Distribution::Constant) {
    Nest nest{{count}, 1, {}};
    double value = op.getValue().convertToDouble();
    return {arrays.compute(nest,
                           [&](ArrayRef<ScalarId>) {
                             return SmallVector<ScalarId>{arrays.constant(value)};
                           })[0],
            {},
            {}};
  }
  auto bits = std::bit_cast<int64_t>(op.getValue().convertToDouble());
  Words words;
  words << uint64_t('R') << ArrayRef<int64_t>(shapeOf(op.getOutput()))
        << op.getGlobalShapeAttr().getAsOpaquePointer();
  Print deviation = Print::of(bits);
  for (OpOperand &operand : op->getOpOperands()) {
    const LocalValue &value = operands[operand.getOperandNumber()];
    if (op.getDeviation() &&
        operand.getOperandNumber() == op.getDeviationMutable().begin()->getOperandNumber()) {
      deviation = value.number;
    } else if (operand.get().getType().isIndex()) {
      words << value.number;
    } else {
      words << arrays[value.array].print;
    }
  }
  words << deviation;
  return {arrays.other(words.print(), count), {}, {}};
}

SmallVector<ScalarId> LocalOps::body(Block &block, ArrayRef<ScalarId> arguments) {
  llvm::DenseMap<Value, ScalarId> known;
  for (auto [argument, scalar] : llvm::zip_equal(block.getArguments(), arguments)) {
    known[argument] = scalar;
  }
  for (Operation &op : block.without_terminator()) {
    SmallVector<ScalarId, 3> operands;
    for (Value operand : op.getOperands()) {
      operands.push_back(known.lookup(operand));
    }
    auto combine = [&](ScalarKind kind) { return arrays.combine(kind, operands); };
    auto other = [&](Operation *) {
      return arrays.combine(ScalarKind::Other, operands, functionOf(&op));
    };
    known[op.getResult(0)] =
        TypeSwitch<Operation *, ScalarId>(&op)
            .Case([&](arith::AddFOp) { return combine(ScalarKind::Add); })
            .Case([&](arith::SubFOp) { return combine(ScalarKind::Subtract); })
            .Case([&](arith::MulFOp) { return combine(ScalarKind::Multiply); })
            .Case([&](arith::DivFOp) { return combine(ScalarKind::Divide); })
            .Case([&](arith::NegFOp) {
              return arrays.combine(ScalarKind::Subtract, {arrays.constant(0), operands[0]});
            })
            // Rounding is not looked at.
            .Case<arith::ExtFOp, arith::TruncFOp>([&](Operation *) { return operands[0]; })
            .Case([&](arith::ConstantOp constant) {
              auto number = dyn_cast<FloatAttr>(constant.getValue());
              bool isFinite = number && number.getValue().isFinite();
              return isFinite ? arrays.constant(number.getValueAsDouble()) : other(&op);
            })
            .Default(other);
  }
  SmallVector<ScalarId> results;
  for (Value yielded : block.getTerminator()->getOperands()) {
    results.push_back(known.lookup(yielded));
  }
  return results;
}

static LocalValues valuesOf(ArrayRef<ArrayId> arrays) {
  LocalValues values;
  for (ArrayId array : arrays) {
    values.push_back({array, {}, {}});
  }
  return values;
}

LocalValues LocalOps::map(MapOp op, ArrayRef<LocalValue> operands) {
  ArrayRef<int64_t> shape = op.getOutputType().getShape();
  Nest nest{Sizes(shape.begin(), shape.end()), shape.size(), {}};
  for (auto [value, operand, attribute] : llvm::zip_equal(operands, op.getInputs(), op.getMaps())) {
    nest.operands.push_back(
        accessOf(value.array, shapeOf(operand), cast<AffineMapAttr>(attribute).getValue()));
  }
  return valuesOf(
      arrays.compute(nest, [&](ArrayRef<ScalarId> in) { return body(op.getBody().front(), in); }));
}

LocalValues LocalOps::mapSum(MapSumOp op, ArrayRef<LocalValue> operands) {
  SmallVector<int64_t> order(op.getKept());
  for (int64_t dim = 0; dim < int64_t(op.getSpace().size()); ++dim) {
    if (!llvm::is_contained(op.getKept(), dim)) {
      order.push_back(dim);
    }
  }
  Nest nest{{}, op.getKept().size(), {}};
  for (int64_t dim : order) {
    nest.extents.push_back(op.getSpace()[dim]);
  }
  for (auto [value, operand, attribute] : llvm::zip_equal(operands, op.getInputs(), op.getMaps())) {
    Access access =
        accessOf(value.array, shapeOf(operand), cast<AffineMapAttr>(attribute).getValue());
    Access sorted = access;
    for (auto [stride, dim] : llvm::zip_equal(sorted.strides, order)) {
      stride = access.strides[dim];
    }
    nest.operands.push_back(std::move(sorted));
  }
  return valuesOf(
      arrays.compute(nest, [&](ArrayRef<ScalarId> in) { return body(op.getBody().front(), in); }));
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

ArrayId LocalOps::product(const Product &product, ArrayRef<ArrayId> operands) {
  Nest nest{product.extents, product.kept, {}};
  for (auto [array, strides] : llvm::zip_equal(operands, product.strides)) {
    Access access;
    access.array = array;
    access.strides = strides;
    nest.operands.push_back(std::move(access));
  }
  return arrays.compute(nest, [&](ArrayRef<ScalarId> in) {
    return SmallVector<ScalarId>{in.size() == 1 ? in[0] : arrays.combine(ScalarKind::Multiply, in)};
  })[0];
}

ArrayId LocalOps::equation(llvm::StringRef text, ArrayRef<ArrayId> operands,
                           ArrayRef<Sizes> shapes) {
  auto [left, result] = text.split("->");
  SmallVector<llvm::StringRef, 2> terms;
  left.split(terms, ',');
  std::string letters = result.str();
  for (llvm::StringRef term : terms) {
    for (char letter : term) {
      if (letters.find(letter) == std::string::npos) {
        letters.push_back(letter);
      }
    }
  }
  Product sum;
  sum.kept = result.size();
  sum.extents.assign(letters.size(), 1);
  for (auto [term, shape] : llvm::zip_equal(terms, shapes)) {
    Sizes &strides = sum.strides.emplace_back(letters.size(), 0);
    for (auto [letter, size, stride] : llvm::zip_equal(term, shape, stridesOf(shape))) {
      strides[letters.find(letter)] = stride;
      sum.extents[letters.find(letter)] = size;
    }
  }
  return product(sum, operands);
}

LocalValue LocalOps::contract(ContractOp op, ArrayRef<LocalValue> operands) {
  SmallVector<llvm::StringRef> terms = op.getTerms();
  if (terms.size() == 2 && terms[0].size() == terms[1].size()) {
    SmallVector<int64_t> order;
    for (char letter : terms[1]) {
      order.push_back(int64_t(terms[0].find(letter)));
    }
    std::optional<ArrayId> turned =
        arrays.transpose(operands[0].array, shapeOf(op.getInputs()[0]), order);
    if (turned) {
      return {*turned, {}, {}};
    }
  }
  SmallVector<Sizes, 2> shapes;
  for (Value input : op.getInputs()) {
    shapes.push_back(shapeOf(input));
  }
  return {equation(op.getEquation(), arraysOf(operands), shapes), {}, {}};
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

LocalValues LocalOps::evaluate(Operation *op, ArrayRef<LocalValue> operands) {
  if (llvm::all_of(op->getResultTypes(), [](Type type) { return type.isIndex(); })) {
    return index(op, operands);
  }
  LocalValues results =
      TypeSwitch<Operation *, LocalValues>(op)
          .Case([&](FillOp own) { return LocalValues{fill(own, operands)}; })
          .Case([&](MapOp own) { return map(own, operands); })
          .Case([&](MapSumOp own) { return mapSum(own, operands); })
          .Case([&](ContractOp own) { return LocalValues{contract(own, operands)}; })
          .Case([&](EncodeOp own) { return encode(own, operands); })
          .Case([&](QuantizeOp own) {
            return LocalValues{
                {quantized(own.getFormatAttr(), operands[0].array, operands[1].array), {}, {}}};
          })
          .Case<ReshapeOp, ConstrainOp, TransferOp>(
              [&](Operation *) { return LocalValues{operands[0]}; })
          .Case([&](SplitOp own) { return split(own, operands[0]); })
          .Default([](Operation *) { return LocalValues(); });
  if (!results.empty()) {
    return results;
  }
  if (isa<MatmulOp, Fp8MatmulOp>(op)) {
    std::optional<LocalValues> matmul = this->matmul(op, operands);
    return matmul ? *matmul : unknown(op, operands);
  }
  std::optional<ArrayId> array = convolution(op, arraysOf(operands));
  array = array ? array : move(op, operands);
  return array ? LocalValues{{*array, {}, {}}} : unknown(op, operands);
}

} // namespace weft::meaning
