//===- MatmulOp.cpp - verifies fused matmuls ------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft;

namespace {

/// Returns the three terms of "bk,nk->bn"; fewer if the equation has another form.
SmallVector<StringRef, 3> splitTerms(StringRef equation) {
  auto [operands, result] = equation.split("->");
  auto [lhs, rhs] = operands.split(',');
  bool isThree =
      equation.contains("->") && operands.contains(',') && llvm::all_of(result, llvm::isLower);
  return isThree && llvm::all_of(lhs, llvm::isLower) && llvm::all_of(rhs, llvm::isLower)
             ? SmallVector<StringRef, 3>{lhs, rhs, result}
             : SmallVector<StringRef, 3>();
}

/// Returns the dimensions of the term `lhs` that `result` has as well.
SmallVector<int64_t> keptShape(StringRef lhs, StringRef result, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> kept;
  for (auto [letter, size] : llvm::zip_equal(lhs, shape)) {
    if (result.contains(letter)) {
      kept.push_back(size);
    }
  }
  return kept;
}

} // namespace

LogicalResult MatmulOp::verify() {
  SmallVector<StringRef, 3> terms = splitTerms(getEquation());
  Value matrices[] = {getLhs(), getRhs(), getOutput()};
  bool fits = terms.size() == 3;
  for (size_t i = 0; fits && i < 3; ++i) {
    fits = static_cast<int64_t>(terms[i].size()) ==
           cast<RankedTensorType>(matrices[i].getType()).getRank();
  }
  if (!fits) { // matmul_c1
    return emitOpError() << "expected an equation with a letter for each dimension of two operands "
                            "and the result, got \""
                         << getEquation() << "\"";
  }
  auto output = cast<RankedTensorType>(getOutput().getType());
  for (Value other : {getAddend(), getPreactivation(), getKept()}) { // matmul_c2
    if (other && other.getType() != output) {
      return emitOpError() << "expected " << output << ", as of the result, got "
                           << other.getType();
    }
  }
  auto bias = getBias() ? cast<RankedTensorType>(getBias().getType()) : RankedTensorType();
  if (bias && (bias.getRank() > output.getRank() || // matmul_c3
               bias.getShape() != output.getShape().take_back(bias.getRank()) ||
               bias.getElementType() != output.getElementType())) {
    return emitOpError() << "expected a bias with the last dimensions of " << output << ", got "
                         << bias;
  }
  if ((getGelu() && getPreactivation()) || (getKept() && !getGelu())) { // matmul_c4
    return emitOpError("expected GELU or its gradient, not both, and a kept value only with GELU");
  }
  SmallVector<int64_t> shape =
      keptShape(terms[0], terms[2], cast<RankedTensorType>(getLhs().getType()).getShape());
  auto sums = RankedTensorType::get(shape, output.getElementType());
  if (getSums() && getSums().getType() != sums) { // matmul_c5
    return emitOpError() << "expected sums of " << sums << ", got " << getSums().getType();
  }
  return success();
}
