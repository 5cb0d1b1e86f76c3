//===- CollectiveKinds.cpp - counts the collectives of a program by kind --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Verify/CollectiveKinds.h"

#include "weft/Dialect/Weft/IR/Weft.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace weft::verify {

std::string transferKind(TransferOp op) {
  return ("transfer from stage " + llvm::Twine(op.getFrom()) + " to stage " +
          llvm::Twine(op.getTo()))
      .str();
}

std::string collectiveKind(Operation *op, const MeshParts &named) {
  std::string kind = op->getName().stripDialect().str();
  llvm::replace(kind, '_', '-');
  if (auto reduction = op->getAttrOfType<ReductionKindAttr>("reduction")) {
    kind += " " + stringifyReductionKind(reduction.getValue()).str();
  }
  auto mesh = op->getAttrOfType<MeshAttr>("mesh");
  const std::vector<std::string> names = named.partNames();
  std::vector<std::string> axes;
  for (StringAttr axis : op->getAttrOfType<ArrayAttr>("axes").getAsRange<StringAttr>()) {
    axes.push_back(names[mesh.getIndex(axis)]);
  }
  return kind + " over " + llvm::join(named.join(axes), ", ");
}

std::map<std::string, int64_t> collectiveKinds(ModuleOp module, const MeshParts &named) {
  std::map<std::string, int64_t> kinds;
  module.walk([&](Operation *op) {
    if (isa<AllReduceOp, AllGatherOp, ReduceScatterOp, AllToAllOp, PermuteOp>(op)) {
      ++kinds[collectiveKind(op, named)];
    } else if (auto transfer = dyn_cast<TransferOp>(op)) {
      ++kinds[transferKind(transfer)];
    }
  });
  return kinds;
}

} // namespace weft::verify
