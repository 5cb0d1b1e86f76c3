//===- ContractionsToMaps.cpp - contractions that sum nothing -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_CONTRACTIONSTOMAPSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Returns the map from the result's dimensions to those of an operand with the letters `term`;
/// null if `term` has other letters or another order.
AffineMap makeMap(StringRef term, StringRef result, MLIRContext *context) {
  SmallVector<AffineExpr> dims;
  size_t next = 0;
  for (char letter : term) {
    size_t dim = result.find(letter, next);
    if (dim == StringRef::npos) {
      return {};
    }
    dims.push_back(getAffineDimExpr(dim, context));
    next = dim + 1;
  }
  return AffineMap::get(result.size(), 0, dims, context);
}

struct ContractionsToMapsPass : impl::ContractionsToMapsPassBase<ContractionsToMapsPass> {
  void runOnOperation() override {
    getOperation().walk([&](ContractOp op) {
      if (op.getInputs().size() == 2 && !op.getTf32()) {
        convert(op);
      }
    });
  }

  void convert(ContractOp op) {
    SmallVector<StringRef> terms = op.getTerms();
    Type element = getElementTypeOrSelf(op.getOutput());
    SmallVector<AffineMap> maps;
    for (auto [term, input] : llvm::zip(ArrayRef(terms).drop_back(), op.getInputs())) {
      AffineMap map = makeMap(term, terms.back(), &getContext());
      if (!map || getElementTypeOrSelf(input) != element || isNarrow(element)) {
        return; // Rounds in its own way, sums or transposes.
      }
      maps.push_back(map);
    }
    OpBuilder builder(op);
    auto body = [](OpBuilder &inner, Location loc, ValueRange in) {
      return SmallVector<Value>{arith::MulFOp::create(inner, loc, in[0], in[1])};
    };
    auto map = MapOp::create(builder, op.getLoc(), TypeRange{op.getOutput().getType()},
                             op.getInputs(), maps, body);
    op.getOutput().replaceAllUsesWith(map.getResult(0));
    op.erase();
    ++converted;
  }
};

} // namespace
} // namespace weft
