//===- ModelBuilder.cpp - short forms of the ops that a model is made of --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"

#include "Activations.h"
#include "weft/Description/Validate.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"

#include "llvm/ADT/DenseMap.h"

using namespace mlir;
using namespace weft;

// The dialect lists the values of these enumerations in the same order.
static_assert(getMaxEnumValForNormKind() == unsigned(desc::NormKind::RmsNorm));
static_assert(getMaxEnumValForFloat8() == unsigned(desc::Float8::E5M2));

Location ModelBuilder::location(llvm::StringRef name) {
  return NameLoc::get(builder.getStringAttr(name));
}

Type ModelBuilder::wideElement() { return wideTypeOf(activationElement()); }

Type ModelBuilder::activationElement() {
  switch (recipe.precision) {
  case desc::Precision::F64:
    return builder.getF64Type();
  case desc::Precision::F32:
    return builder.getF32Type();
  case desc::Precision::TF32:
    return builder.getF32Type();
  case desc::Precision::F16:
    return builder.getF16Type();
  default:
    break;
  }
  return builder.getBF16Type();
}

RankedTensorType ModelBuilder::wideType(llvm::ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, wideElement());
}

RankedTensorType ModelBuilder::streamType() {
  return RankedTensorType::get({ShapedType::kDynamic, recipe.sequenceLength, model.hidden},
                               activationElement());
}

RankedTensorType ModelBuilder::idType() {
  return RankedTensorType::get({ShapedType::kDynamic, recipe.sequenceLength}, builder.getI32Type());
}

RankedTensorType ModelBuilder::counterType() {
  return RankedTensorType::get({}, builder.getI64Type());
}

RankedTensorType ModelBuilder::rotaryTableType() {
  return wideType({2, recipe.sequenceLength, model.rotarySize() / 2});
}

RankedTensorType ModelBuilder::parameterType(llvm::ArrayRef<llvm::StringRef> dimensions) {
  llvm::SmallVector<int64_t> shape;
  for (llvm::StringRef dimension : dimensions) {
    shape.push_back(*desc::dimensionSize(model, recipe, dimension));
  }
  return wideType(shape);
}

RankedTensorType ModelBuilder::heldType(const Parameter &parameter) {
  return wideType(parameterShape(model, parameter));
}

RankedTensorType ModelBuilder::usedType(const Parameter &parameter) {
  RankedTensorType type = heldType(parameter);
  return parameter.isMatrix() ? type.clone(activationElement()) : type;
}

func::FuncOp ModelBuilder::function(llvm::StringRef name, TypeRange arguments, TypeRange results,
                                    bool isPrivate) {
  // The builder may still stand in the previous function.
  Operation *around = builder.getBlock()->getParentOp();
  auto module = llvm::dyn_cast<ModuleOp>(around);
  module = module ? module : around->getParentOfType<ModuleOp>();
  builder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(builder, location(name), name,
                                       builder.getFunctionType(arguments, results));
  if (isPrivate) {
    function.setPrivate();
  }
  builder.setInsertionPointToStart(function.addEntryBlock());
  return function;
}

Value ModelBuilder::index(llvm::StringRef name, int64_t value) {
  return arith::ConstantIndexOp::create(builder, location(name), value);
}

Value ModelBuilder::read(llvm::StringRef variable, RankedTensorType type) {
  return ReadOp::create(builder, location(variable), type, variable);
}

Value ModelBuilder::round(llvm::StringRef name, Value value) {
  return createCast(builder, location(name), value, activationElement());
}

Value ModelBuilder::quantize(llvm::StringRef name, Value value) {
  return recipe.fp8 ? createQuantize(builder, location(name), Float8(recipe.fp8->values), value,
                                     activationElement(), history(name))
                    : round(name, value);
}

HistoryAttr ModelBuilder::history(const llvm::Twine &name) {
  return recipe.fp8->history > 0
             ? HistoryAttr::get(builder.getContext(), builder.getStringAttr(name),
                                recipe.fp8->history)
             : HistoryAttr();
}

Value ModelBuilder::contract(llvm::StringRef name, llvm::StringRef equation,
                             llvm::ArrayRef<Value> inputs, bool isOfLayer) {
  auto [terms, result] = equation.split("->");
  llvm::SmallVector<llvm::StringRef, 2> inputTerms;
  terms.split(inputTerms, ',');
  llvm::DenseMap<char, int64_t> sizes;
  for (auto [term, input] : llvm::zip_equal(inputTerms, inputs)) {
    auto shape = llvm::cast<RankedTensorType>(input.getType()).getShape();
    for (auto [letter, size] : llvm::zip_equal(term, shape)) {
      sizes[letter] = size;
    }
  }
  llvm::SmallVector<int64_t> shape;
  for (char letter : result) {
    shape.push_back(sizes.at(letter));
  }
  auto matmul = ContractOp::create(builder, location(name), wideType(shape), equation, inputs);
  if (isOfLayer && recipe.fp8) {
    matmul.setGradientFormat(Float8(recipe.fp8->gradients));
    if (HistoryAttr kept = history(name + ".gradient")) {
      matmul.setGradientHistoryAttr(kept);
    }
  }
  matmul.setTf32(recipe.precision == desc::Precision::TF32 && inputs.size() == 2);
  return matmul;
}

Value ModelBuilder::map(llvm::StringRef name, llvm::ArrayRef<Value> inputs, Type element,
                        ScalarCode code) {
  auto type = llvm::cast<RankedTensorType>(inputs.front().getType()).clone(element);
  unsigned rank = type.getRank();
  llvm::SmallVector<AffineMap> maps;
  for (Value input : inputs) {
    unsigned inputRank = llvm::cast<RankedTensorType>(input.getType()).getRank();
    maps.push_back(AffineMap::getMinorIdentityMap(rank, inputRank, builder.getContext()));
  }
  auto body = [&](OpBuilder &inner, Location loc, ValueRange scalars) {
    ImplicitLocOpBuilder scalarBuilder(loc, inner);
    llvm::SmallVector<Value> wide;
    for (Value scalar : scalars) {
      wide.push_back(castScalar(inner, loc, scalar, wideElement()));
    }
    return llvm::SmallVector<Value>{castScalar(inner, loc, code(scalarBuilder, wide), element)};
  };
  return MapOp::create(builder, location(name), TypeRange{type}, ValueRange(inputs), maps, body)
      ->getResult(0);
}

Value ModelBuilder::activate(llvm::StringRef name, Value up, Value gate) {
  switch (model.activation) {
  case desc::ActivationKind::Gelu:
    return map(name, {up},
               [](ImplicitLocOpBuilder &scalars, ValueRange in) { return gelu(scalars, in[0]); });
  case desc::ActivationKind::GeluTanh:
    return map(name, {up}, [](ImplicitLocOpBuilder &scalars, ValueRange in) {
      return geluTanh(scalars, in[0]);
    });
  case desc::ActivationKind::SwiGlu:
    break;
  }
  return map(name, {gate, up}, [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
    return arith::MulFOp::create(scalars, silu(scalars, in[0]), in[1]);
  });
}

Value ModelBuilder::add(llvm::StringRef name, Value a, Value b) {
  return map(name, {a, b}, [](ImplicitLocOpBuilder &scalars, ValueRange in) -> Value {
    return arith::AddFOp::create(scalars, in[0], in[1]);
  });
}

Value ModelBuilder::norm(llvm::StringRef name, Value input, Value scale, Value bias) {
  return NormOp::create(builder, location(name), input.getType(), NormKind(model.norm), input,
                        scale, bias, llvm::APFloat(model.normEpsilon));
}

Value ModelBuilder::dropout(llvm::StringRef name, Value input, const RandomKey &key,
                            DropoutSite site) {
  if (model.dropout == 0.0) {
    return input;
  }
  return DropoutOp::create(builder, location(name), input.getType(), input, key.seed, key.step,
                           key.layer, /*offsets=*/ValueRange{}, llvm::APFloat(model.dropout),
                           static_cast<int64_t>(site), /*global_shape=*/DenseI64ArrayAttr{},
                           /*order=*/ZigzagAttr{}, /*ordered_dim=*/IntegerAttr{});
}

Value ModelBuilder::embedding(llvm::StringRef name, Value table, Value ids) {
  auto shape = llvm::to_vector(llvm::cast<RankedTensorType>(ids.getType()).getShape());
  shape.push_back(model.hidden);
  return EmbeddingOp::create(builder, location(name), wideType(shape), table, ids,
                             /*offset=*/Value{});
}

Value weft::scalarConstant(ImplicitLocOpBuilder &builder, Value like, double value) {
  return arith::ConstantOp::create(builder, builder.getFloatAttr(like.getType(), value));
}
