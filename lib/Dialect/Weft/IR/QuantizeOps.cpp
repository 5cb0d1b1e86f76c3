//===- QuantizeOps.cpp - rounding to FP8 numbers ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Dialect/Weft/IR/OpCosts.h"

using namespace mlir;
using namespace weft;

static std::string dimsOf(Value value) {
  return letters(cast<RankedTensorType>(value.getType()).getRank());
}

// Ranks and sizes are those of the factor rules.

LogicalResult HistoryAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                                  StringAttr name, int64_t steps) {
  if (!name || name.empty() || steps < 1) { // history_c1
    return emitError() << "expected a name and at least one step, got '"
                       << (name ? name.getValue() : "") << "' of " << steps;
  }
  return success();
}

LogicalResult AmaxOp::verify() { // amax_c1
  return verifyElementType(*this, "output", getOutput(),
                           wideTypeOf(getElementTypeOrSelf(getInput())));
}

FactorRule AmaxOp::getFactorRule() {
  return makeFactorRule(*this, {dimsOf(getInput())}, {""}, "", {ReductionKind::Max});
}

bool AmaxOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return llvm::is_contained(zeros, 0);
}

LogicalResult QuantizeOp::verify() {
  Type from = getElementTypeOrSelf(getInput()), to = getElementTypeOrSelf(getOutput());
  if (to != from && wideTypeOf(to) != from) { // quantize_c2
    return emitOpError() << "output must be of " << from << " or narrower, got " << to;
  }
  return verifyElementType(*this, "amax", getAmax(), wideTypeOf(from)); // quantize_c1
}

FactorRule QuantizeOp::getFactorRule() {
  std::string dims = dimsOf(getInput());
  return makeFactorRule(*this, {dims, ""}, {dims});
}

OpCost QuantizeOp::getCost() { return elementwiseCost(*this, kQuantizeFlops); }

bool QuantizeOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return llvm::is_contained(zeros, 0);
}

LogicalResult QuantizeOp::buildGradient(OpBuilder &, ValueRange resultGradients,
                                        SmallVectorImpl<Value> &operandGradients) {
  operandGradients[0] = resultGradients[0];
  return success();
}

const llvm::fltSemantics &weft::semanticsOf(Float8 format) {
  return format == Float8::E4M3 ? llvm::APFloat::Float8E4M3FN() : llvm::APFloat::Float8E5M2();
}

Value weft::createQuantize(OpBuilder &builder, Location loc, Float8 format, Value tensor,
                           Type element, HistoryAttr history) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type wide = wideTypeOf(type.getElementType());
  Value amax = AmaxOp::create(builder, loc, RankedTensorType::get({}, wide), tensor, history);
  return QuantizeOp::create(builder, loc, type.clone(element), format, tensor, amax);
}
