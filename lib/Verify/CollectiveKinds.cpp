//===- CollectiveKinds.cpp - counts the collectives of a program by kind --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/CollectiveKinds.h"

#include "weft/Dialect/Weft/IR/Weft.h"

using namespace mlir;

namespace weft::verify {

std::string collectiveKind(Operation *op) {
  std::string kind = op->getName().stripDialect().str();
  llvm::replace(kind, '_', '-');
  if (auto reduction = op->getAttrOfType<ReductionKindAttr>("reduction")) {
    kind += " " + stringifyReductionKind(reduction.getValue()).str();
  }
  std::string separator = " over ";
  for (StringAttr axis : op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>()) {
    kind += separator + axis.str();
    separator = ", ";
  }
  return kind;
}

std::map<std::string, int64_t> collectiveKinds(ModuleOp module) {
  std::map<std::string, int64_t> kinds;
  module.walk([&](Operation *op) {
    if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op)) {
      ++kinds[collectiveKind(op)];
    }
  });
  return kinds;
}

} // namespace weft::verify
