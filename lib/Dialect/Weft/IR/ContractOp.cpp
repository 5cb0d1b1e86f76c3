//===- ContractOp.cpp - einsums -----------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

SmallVector<StringRef> ContractOp::getTerms() {
  auto [operands, result] = getEquation().split("->");
  SmallVector<StringRef> terms;
  operands.split(terms, ',');
  terms.push_back(result);
  return terms;
}

/// contract_c1 and contract_c2.
static LogicalResult verifyEquation(ContractOp op) {
  if (op.getInputs().empty() || op.getInputs().size() > 2) {
    return op.emitOpError() << "takes one or two operands, got " << op.getInputs().size();
  }
  SmallVector<StringRef> terms = op.getTerms();
  if (!op.getEquation().contains("->") || terms.size() != op.getInputs().size() + 1) {
    return op.emitOpError() << "expected an equation with " << op.getInputs().size()
                            << " operand terms and a result, got '" << op.getEquation() << "'";
  }
  SmallVector<Type> types(op.getInputs().getTypes());
  types.push_back(op.getOutput().getType());
  for (auto [term, type] : llvm::zip(terms, types)) {
    for (auto [i, letter] : llvm::enumerate(term)) {
      if (letter < 'a' || letter > 'z' || term.take_front(i).contains(letter)) {
        return op.emitOpError() << "expected distinct lower-case letters, got '" << term << "'";
      }
    }
    if (static_cast<int64_t>(term.size()) != cast<RankedTensorType>(type).getRank()) {
      return op.emitOpError() << "expected one letter for each dimension of " << type << ", got '"
                              << term << "'";
    }
  }
  for (char letter : terms.back()) {
    if (llvm::none_of(ArrayRef(terms).drop_back(),
                      [&](StringRef term) { return term.contains(letter); })) {
      return op.emitOpError() << "letter '" << letter << "' of the result occurs in no operand";
    }
  }
  return success();
}

LogicalResult ContractOp::verify() {
  if (getGradientFormat() && getInputs().size() != 2) { // contract_c5
    return emitOpError("quantizes its gradient, but has one operand: expected two");
  }
  if (getGradientHistory() && !getGradientFormat()) { // contract_c7
    return emitOpError("keeps a history of its gradient, which is not quantized");
  }
  Type element = getElementTypeOrSelf(getOutput().getType());
  if (getTf32() && (getInputs().size() != 2 || !element.isF32() ||
                    !getElementTypeOrSelf(getInputs().front()).isF32())) { // contract_c6
    return emitOpError("rounds to tf32, expected two operands of f32");
  }
  for (Type type : getInputs().getTypes()) { // contract_c4
    Type own = getElementTypeOrSelf(type);
    if (own != element && wideTypeOf(own) != element) {
      return emitOpError() << "operand of " << own << " must have the result's element type "
                           << element;
    }
    if (own != getElementTypeOrSelf(getInputs().front())) {
      return emitOpError() << "operands must have one element type, got "
                           << getElementTypeOrSelf(getInputs().front()) << " and " << own;
    }
  }
  return success();
}

FactorRule ContractOp::getFactorRule() {
  if (failed(verifyEquation(*this))) {
    return {};
  }
  SmallVector<StringRef> terms = getTerms();
  std::vector<std::string> operands;
  for (StringRef term : ArrayRef(terms).drop_back()) {
    operands.push_back(term.str());
  }
  return makeFactorRule(*this, operands, {terms.back().str()});
}

bool ContractOp::isAdditiveIn(ArrayRef<unsigned> operands) { return operands.size() == 1; }

/// Returns true if a contraction is a matmul: it sums over letters that both inputs share, and an
/// input has letters that the other lacks. A sum of squares or a scaling is not a matmul.
static bool isMatmul(ArrayRef<StringRef> inputs, StringRef result) {
  if (inputs.size() != 2) {
    return false;
  }
  auto has = [](StringRef term) { return [term](char letter) { return term.contains(letter); }; };
  bool isSummed = llvm::any_of(inputs[0], [&](char letter) {
    return inputs[1].contains(letter) && !result.contains(letter);
  });
  return isSummed &&
         !(llvm::all_of(inputs[0], has(inputs[1])) && llvm::all_of(inputs[1], has(inputs[0])));
}

OpCost ContractOp::getCost() {
  SmallVector<StringRef> terms = getTerms();
  bool isTransposition = terms.size() == 2 && terms[0].size() == terms[1].size();
  OpCost cost = iterationCost(*this, isTransposition ? 0 : getInputs().size());
  if (isMatmul(ArrayRef(terms).drop_back(), terms.back())) {
    cost.modelFlops = cost.flops;
  }
  return cost;
}

/// Broadcasts `value`, which has the dimensions `from`, to the type of `like`, which has the
/// dimensions `to` in an order that agrees. `like` is an operand of the map only to give the result
/// its sharding.
static Value broadcastLike(OpBuilder &builder, Location loc, Value value, StringRef from,
                           Value like, StringRef to) {
  if (from == to) {
    return value;
  }
  SmallVector<AffineExpr> dims;
  for (char letter : from) {
    dims.push_back(builder.getAffineDimExpr(to.find(letter)));
  }
  AffineMap map = AffineMap::get(to.size(), 0, dims, builder.getContext());
  Type type = cast<RankedTensorType>(like.getType()).clone(getElementTypeOrSelf(value));
  return MapOp::create(builder, loc, TypeRange{type}, ValueRange{value, like},
                       {map, builder.getMultiDimIdentityMap(to.size())},
                       [](OpBuilder &, Location, ValueRange scalars) {
                         return SmallVector<Value>{scalars[0]};
                       })
      .getResult(0);
}

/// Quantizes the gradient. A wide gradient is rounded only once, to the FP8 format.
static Value quantizeGradient(OpBuilder &builder, Location loc, Float8 format, Value gradient,
                              Type element, HistoryAttr history) {
  bool isWider = wideTypeOf(element) == getElementTypeOrSelf(gradient);
  Value source = isWider ? gradient : createCast(builder, loc, gradient, element);
  return createQuantize(builder, loc, format, source, element, history);
}

LogicalResult ContractOp::buildGradient(OpBuilder &builder, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  SmallVector<StringRef> terms = getTerms();
  StringRef result = terms.back();
  Type element = getElementTypeOrSelf(getInputs().front());
  Value outputGradient = resultGradients[0];
  if (getGradientFormat()) {
    outputGradient = quantizeGradient(builder, getLoc(), *getGradientFormat(), outputGradient,
                                      element, getGradientHistoryAttr());
  } else if (getInputs().size() == 2) {
    outputGradient = createCast(builder, getLoc(), outputGradient, element);
  }
  Type wide = wideTypeOf(getElementTypeOrSelf(outputGradient));
  for (auto [number, operand] : llvm::enumerate(getInputs())) {
    SmallVector<Value> factors = {outputGradient};
    std::string equation = result.str();
    std::string known = result.str();
    if (getInputs().size() == 2) {
      factors.push_back(getInputs()[1 - number]);
      equation += "," + terms[1 - number].str();
      known += terms[1 - number].str();
    }
    // Only this operand has these letters, over which the op sums: the gradient is the same along
    // them.
    std::string kept;
    SmallVector<int64_t> shape;
    auto type = cast<RankedTensorType>(operand.getType());
    for (auto [dim, letter] : llvm::enumerate(terms[number])) {
      if (StringRef(known).contains(letter)) {
        kept.push_back(letter);
        shape.push_back(type.getDimSize(dim));
      }
    }
    Value gradient = outputGradient;
    if (factors.size() == 2 || kept != result) {
      auto matmul = ContractOp::create(builder, getLoc(), type.clone(shape, wide),
                                       equation + "->" + kept, factors);
      matmul.setTf32(getTf32());
      gradient = matmul;
    }
    operandGradients[number] =
        broadcastLike(builder, getLoc(), gradient, kept, operand, terms[number]);
  }
  return success();
}
