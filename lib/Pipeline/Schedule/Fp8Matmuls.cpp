//===- Fp8Matmuls.cpp - which matmuls can be FP8 matmuls ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/Fp8Matmuls.h"

#include "weft/Pipeline/Schedule/MatmulForm.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>

using namespace weft;

/// Moves the dimensions that `result` lacks from the front to the end; false if they are at
/// neither.
static bool turn(ByteOperand &operand, llvm::StringRef result) {
  llvm::StringRef term = operand.term;
  size_t first = term.find_if([&](char letter) { return !result.contains(letter); });
  size_t end = term.find_if([&](char letter) { return result.contains(letter); }, first);
  if (first == llvm::StringRef::npos) {
    return false;
  }
  if (end == llvm::StringRef::npos) {
    return true;
  }
  if (first != 0 || term.drop_front(end).find_if([&](char letter) {
        return !result.contains(letter);
      }) != llvm::StringRef::npos) {
    return false;
  }
  operand.lead = static_cast<int64_t>(end);
  std::rotate(operand.term.begin(), operand.term.begin() + end, operand.term.end());
  std::rotate(operand.shape.begin(), operand.shape.begin() + end, operand.shape.end());
  return true;
}

/// Returns true if the matmul is a batch.
static bool isBatch(const ByteOperand &lhs, const ByteOperand &rhs, llvm::StringRef result) {
  return llvm::any_of(llvm::zip_equal(lhs.term, lhs.shape), [&](auto dim) {
    auto [letter, size] = dim;
    return size != 1 && llvm::is_contained(rhs.term, letter) && result.contains(letter);
  });
}

Fp8MatmulForm weft::formFp8Matmul(ByteOperand &lhs, ByteOperand &rhs, llvm::StringRef result) {
  if (isBatch(lhs, rhs, result)) {
    return {"it is a batch of matmuls", {}};
  }
  if (!lhs.format || !rhs.format) {
    return {"the scale of an operand is unknown", {}};
  }
  if (lhs.format == Float8::E5M2 && rhs.format == Float8::E5M2) {
    return {"both operands are of e5m2", {}};
  }
  if (!turn(lhs, result) || !turn(rhs, result)) {
    return {"the summed dimensions are not contiguous", {}};
  }
  std::optional<MatmulForm> form =
      classifyMatmul({lhs.term, rhs.term, result}, lhs.shape, rhs.shape, rt::ElementType::F8E4M3);
  if (!form) {
    return {"it is no matmul of two matrices", {}};
  }
  return {rt::fitsFp8(form->matmul) ? "" : "expected sizes that are multiples of 16", form->matmul};
}
