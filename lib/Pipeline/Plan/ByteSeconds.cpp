//===- ByteSeconds.cpp - seconds of FP8 matmuls ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ByteSeconds.h"

#include "OpSeconds.h"
#include "weft/Dialect/Weft/IR/OpCosts.h"
#include "weft/Pipeline/Schedule/Fp8Matmuls.h"

#include "mlir/IR/TypeUtilities.h"

#include <array>

using namespace mlir;

namespace weft {

static double bytesOfElement(Value value) {
  return getElementTypeOrSelf(value).getIntOrFloatBitWidth() / 8.0;
}

std::unique_ptr<ByteSeconds> ByteSeconds::make(bool isAsked, ModuleOp module,
                                               const cost::Predictor *machine) {
  bool isThere = isAsked && machine && machine->multipliesBytes();
  return std::unique_ptr<ByteSeconds>(isThere ? new ByteSeconds(module, *machine) : nullptr);
}

std::optional<double> ByteSeconds::of(Operation *op, const FactorRule &rule,
                                      ArrayRef<int64_t> sizes) {
  auto contract = dyn_cast<ContractOp>(op);
  if (!contract || contract.getInputs().size() != 2) {
    return std::nullopt;
  }
  std::array<ByteOperand, 2> operands;
  double seconds = 0, bytes = 0;
  for (auto [number, operand] : llvm::enumerate(operands)) {
    Value value = contract.getInputs()[number];
    std::optional<Float8> format = values.formatOf(value);
    if (!format) {
      return std::nullopt;
    }
    operand.format = *format;
    operand.term = contract.getTerms()[number].str();
    double elements = 1;
    for (unsigned factor : rule.operands[number]) {
      operand.shape.push_back(sizes[factor]);
      elements *= double(sizes[factor]);
    }
    seconds += machine.kernel("encode", precisionOf(op), kQuantizeFlops * elements,
                              (bytesOfElement(value) + 1) * elements);
    bytes += elements;
  }
  auto [refusal, matmul] = formFp8Matmul(operands[0], operands[1], contract.getTerms()[2]);
  if (!refusal.empty()) {
    return std::nullopt;
  }
  bytes += double(matmul.m) * double(matmul.n) * bytesOfElement(contract.getOutput());
  return seconds +
         machine.matmul(desc::Precision::F8, matmul.m, matmul.n, matmul.k, matmul.batch, bytes);
}

} // namespace weft
