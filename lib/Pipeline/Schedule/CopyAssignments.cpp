//===- CopyAssignments.cpp - copies values not computed in place ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placement.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_COPYASSIGNMENTSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

Value createCopy(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  auto body = [](OpBuilder &, Location, ValueRange scalars) { return SmallVector<Value>(scalars); };
  return MapOp::create(builder, loc, TypeRange(type), ValueRange(value), identity, body)
      ->getResult(0);
}

struct CopyAssignmentsPass : impl::CopyAssignmentsPassBase<CopyAssignmentsPass> {
  void runOnOperation() override {
    ModuleSymbols symbols(getOperation());
    FailureOr<SmallVector<FlatSection, 3>> sections = linearizeSections(getOperation(), symbols);
    if (failed(sections)) {
      return signalPassFailure();
    }
    Ties ties = decideTies(*sections);
    for (const FlatSection &section : *sections) {
      insertCopies(section, placeAssignments(section, ties), symbols);
      copyCarries(section, placeCarries(section, ties));
    }
  }

  void copyCarries(const FlatSection &section, ArrayRef<Placing> placings) {
    for (auto [carry, placing] : llvm::zip_equal(section.carries, placings)) {
      if (placing == Placing::Copy) {
        func::ReturnOp op = carry.op;
        OpBuilder builder(op);
        op->setOperand(carry.result, createCopy(builder, op.getLoc(), op.getOperand(carry.result)));
        ++insertedCopies;
      }
    }
  }

  void insertCopies(const FlatSection &section, ArrayRef<Placing> placings,
                    const ModuleSymbols &symbols) {
    std::vector<bool> isOverwritten(symbols.variables.size(), false);
    for (auto [assign, placing] : llvm::zip_equal(section.assigns, placings)) {
      isOverwritten[assign.variable] = placing != Placing::Kept;
    }
    for (auto [assign, placing] : llvm::zip_equal(section.assigns, placings)) {
      if (placing != Placing::Copy) {
        continue;
      }
      AssignOp op = assign.op;
      Value value = op.getValue();
      int32_t source = section.values[assign.value].variable;
      if (source >= 0 && isOverwritten[source]) {
        OpBuilder builder = OpBuilder::atBlockBegin(op->getBlock());
        VariableOp variable = symbols.variables[source];
        auto read = ReadOp::create(builder, op.getLoc(), value.getType(), variable.getSymName());
        value = createCopy(builder, op.getLoc(), read.getOutput());
        ++insertedCopies;
      }
      OpBuilder builder(op->getBlock()->getTerminator());
      Value copy = createCopy(builder, op.getLoc(), value);
      op.getValueMutable().assign(copy);
      op->moveAfter(copy.getDefiningOp());
      ++insertedCopies;
    }
  }
};

} // namespace
} // namespace weft
