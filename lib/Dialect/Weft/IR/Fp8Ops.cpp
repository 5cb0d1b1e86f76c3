//===- Fp8Ops.cpp - FP8 encoding and matmuls ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Fp8Ops.h"

#include "weft/Dialect/Weft/IR/ElementTypes.h"

using namespace mlir;
using namespace weft;

#define GET_OP_CLASSES
#include "weft/Dialect/Weft/IR/WeftFp8Ops.cpp.inc"

RankedTensorType weft::scalarType(MLIRContext *context) {
  return RankedTensorType::get({}, Float32Type::get(context));
}

FloatType weft::elementTypeOf(MLIRContext *context, Float8 format) {
  return format == Float8::E4M3 ? FloatType(Float8E4M3FNType::get(context))
                                : FloatType(Float8E5M2Type::get(context));
}

LogicalResult EncodeOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  if (!wideTypeOf(input.getElementType()).isF32()) { // encode_c1
    return emitOpError() << "expected numbers of f32 or a narrow type, got " << input;
  }
  auto lead = static_cast<int64_t>(getLead());
  if (lead < 0 || lead >= std::max<int64_t>(input.getRank(), 1) ||
      (lead > 0) != bool(getTurned())) { // encode_c3
    return emitOpError()
           << "expected turned bytes if and only if some, not all, dimensions lead, got " << lead
           << " of " << input;
  }
  SmallVector<int64_t> shape(input.getShape());
  RankedTensorType rows = RankedTensorType::get(shape, elementTypeOf(getContext(), getFormat()));
  std::rotate(shape.begin(), shape.begin() + lead, shape.end());
  RankedTensorType turned = rows.clone(shape);
  if ((!getRows() && !getTurned()) || (getRows() && getRows().getType() != rows) ||
      (getTurned() && getTurned().getType() != turned)) { // encode_c2
    return emitOpError() << "expected bytes of " << rows << " or, turned, of " << turned;
  }
  return success();
}

/// Returns true if a term has one lower-case letter for each dimension.
static bool fits(StringRef term, RankedTensorType type) {
  return llvm::all_of(term, llvm::isLower) && static_cast<int64_t>(term.size()) == type.getRank();
}

LogicalResult Fp8MatmulOp::verify() {
  auto lhs = cast<RankedTensorType>(getLhs().getType());
  auto rhs = cast<RankedTensorType>(getRhs().getType());
  auto output = cast<RankedTensorType>(getOutput().getType());
  auto [operands, result] = getEquation().split("->");
  auto [first, second] = operands.split(',');
  if (!fits(first, lhs) || !fits(second, rhs) || !fits(result, output)) { // fp8_matmul_c1
    return emitOpError() << "expected an equation with a letter for each dimension of two operands "
                            "and the result, got \""
                         << getEquation() << "\"";
  }
  Type element = output.getElementType();
  bool areBothWide =
      isa<Float8E5M2Type>(lhs.getElementType()) && isa<Float8E5M2Type>(rhs.getElementType());
  if (areBothWide || (!element.isF32() && !element.isBF16())) { // fp8_matmul_c2
    return emitOpError() << "expected an operand of f8E4M3FN and a result of f32 or bf16, got "
                         << lhs << ", " << rhs << " and " << output;
  }
  auto bias = getBias() ? cast<RankedTensorType>(getBias().getType()) : RankedTensorType();
  bool isTrailing = !bias || (bias.getRank() <= output.getRank() && element.isBF16() &&
                              bias.getElementType() == element &&
                              bias.getShape() == output.getShape().take_back(bias.getRank()));
  if (!isTrailing || (getAddend() && getAddend().getType() != output)) { // fp8_matmul_c3
    return emitOpError() << "expected an addend and the last dimensions of a bias of type "
                         << output;
  }
  return success();
}
