//===- EqualKernels.cpp - kernels that compute the same --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EqualKernels.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

using namespace mlir;

namespace weft {

/// Returns a hash that is equal for equal kernels; ignores operands.
static llvm::hash_code hashKernel(func::FuncOp kernel) {
  llvm::hash_code hash =
      llvm::hash_combine(kernel.getFunctionType(), kernel->getAttr(kTiedAttrName));
  kernel.getBody().walk([&](Operation *op) {
    hash = llvm::hash_combine(
        hash, OperationEquivalence::computeHash(op, OperationEquivalence::ignoreHashValue,
                                                OperationEquivalence::ignoreHashValue,
                                                OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

bool areEqual(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         a->getAttr(kTiedAttrName) == b->getAttr(kTiedAttrName) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

func::FuncOp EqualKernels::findOrInsert(func::FuncOp kernel) {
  SmallVector<func::FuncOp> &candidates = kernels[hashKernel(kernel)];
  for (func::FuncOp candidate : candidates) {
    if (areEqual(candidate, kernel)) {
      return candidate;
    }
  }
  return candidates.emplace_back(kernel);
}

} // namespace weft
