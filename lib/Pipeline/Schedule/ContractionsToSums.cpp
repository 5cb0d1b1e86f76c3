//===- ContractionsToSums.cpp - sums that maps can join -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/ElementTypes.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_CONTRACTIONSTOSUMSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// Returns the positions in `space` of the letters of `term`, if they are ascending.
std::optional<SmallVector<int64_t>> placesOf(StringRef term, StringRef space) {
  SmallVector<int64_t> places;
  size_t next = 0;
  for (char letter : term) {
    size_t place = space.find(letter, next);
    if (place == StringRef::npos) {
      return std::nullopt;
    }
    places.push_back(static_cast<int64_t>(place));
    next = place + 1;
  }
  return places;
}

/// Returns the number of the operand with the longest term.
unsigned findSpace(ArrayRef<StringRef> terms) {
  return terms.size() == 3 && terms[1].size() > terms[0].size() ? 1 : 0;
}

/// Replaces a contraction by a sum and returns that, or null: the contraction must sum along rows
/// of memory, and a map must compute one of its operands.
MapSumOp convert(ContractOp op) {
  SmallVector<StringRef> terms = op.getTerms();
  auto output = cast<RankedTensorType>(op.getOutput().getType());
  unsigned largest = findSpace(terms);
  StringRef space = terms[largest], result = terms.back();
  bool isComputed = llvm::any_of(
      op.getInputs(), [](Value input) { return input.getDefiningOp<MapOp>() != nullptr; });
  auto kept = placesOf(result, space);
  if (!isComputed || !kept || result.empty() || space.back() == result.back() ||
      isNarrow(output.getElementType()) || op.getTf32() || isMatmul(op)) {
    return {};
  }
  OpBuilder builder(op);
  SmallVector<AffineMap> maps;
  for (StringRef term : ArrayRef(terms).drop_back()) {
    auto places = placesOf(term, space);
    if (!places) {
      return {};
    }
    SmallVector<AffineExpr> exprs;
    for (int64_t place : *places) {
      exprs.push_back(builder.getAffineDimExpr(static_cast<unsigned>(place)));
    }
    maps.push_back(AffineMap::get(space.size(), 0, exprs, builder.getContext()));
  }
  ArrayRef<int64_t> sizes = cast<RankedTensorType>(op.getInputs()[largest].getType()).getShape();
  auto sum = MapSumOp::create(builder, op.getLoc(), TypeRange{output}, op.getInputs(),
                              builder.getAffineMapArrayAttr(maps), sizes, *kept);
  Block *body = builder.createBlock(&sum.getBody());
  Value product;
  for (Value input : op.getInputs()) {
    Value scalar = body->addArgument(getElementTypeOrSelf(input), op.getLoc());
    scalar = castScalar(builder, op.getLoc(), scalar, output.getElementType());
    product = product ? arith::MulFOp::create(builder, op.getLoc(), product, scalar) : scalar;
  }
  YieldOp::create(builder, op.getLoc(), product);
  op.getOutput().replaceAllUsesWith(sum.getResult(0));
  op.erase();
  return sum;
}

/// Returns true if `first` can move to `second` and both read a common tensor.
bool goTogether(MapSumOp first, MapSumOp second) {
  auto isShared = [&](Value input) { return llvm::is_contained(second.getInputs(), input); };
  return first->getBlock() == second->getBlock() && first.getSpace() == second.getSpace() &&
         first.getKept() == second.getKept() &&
         first->getResultTypes().front() == second->getResultTypes().front() &&
         llvm::any_of(first.getInputs(), isShared) &&
         llvm::all_of(first->getUsers(), [&](Operation *user) {
           return user->getBlock() == second->getBlock() && second->isBeforeInBlock(user);
         });
}

/// Merges both into one op in the place of `second`.
MapSumOp merge(MapSumOp first, MapSumOp second) {
  OpBuilder builder(second);
  SmallVector<Value> inputs(first.getInputs()), yielded;
  llvm::append_range(inputs, second.getInputs());
  SmallVector<Type> types(first->getResultTypes());
  llvm::append_range(types, second->getResultTypes());
  SmallVector<Attribute> maps(first.getMaps().getValue());
  llvm::append_range(maps, second.getMaps().getValue());
  auto sum = MapSumOp::create(builder, second.getLoc(), types, inputs, builder.getArrayAttr(maps),
                              second.getSpace(), second.getKept());
  Block *body = builder.createBlock(&sum.getBody());
  SmallVector<Value> results;
  for (MapSumOp part : {first, second}) {
    IRMapping mapping;
    Block &code = part.getBody().front();
    for (BlockArgument argument : code.getArguments()) {
      mapping.map(argument, body->addArgument(argument.getType(), argument.getLoc()));
    }
    for (Operation &op : code.without_terminator()) {
      builder.clone(op, mapping);
    }
    for (Value value : code.getTerminator()->getOperands()) {
      yielded.push_back(mapping.lookup(value));
    }
    llvm::append_range(results, part->getResults());
  }
  YieldOp::create(builder, second.getLoc(), yielded);
  for (auto [before, after] : llvm::zip_equal(results, sum->getResults())) {
    before.replaceAllUsesWith(after);
  }
  first.erase();
  second.erase();
  return sum;
}

struct ContractionsToSumsPass : impl::ContractionsToSumsPassBase<ContractionsToSumsPass> {
  void runOnOperation() override {
    SmallVector<ContractOp> contractions;
    getOperation().walk([&](ContractOp op) { contractions.push_back(op); });
    SmallVector<MapSumOp> sums;
    for (ContractOp op : contractions) {
      MapSumOp sum = convert(op);
      if (!sum) {
        continue;
      }
      ++converted;
      auto *other = llvm::find_if(sums, [&](MapSumOp first) { return goTogether(first, sum); });
      if (other == sums.end()) {
        sums.push_back(sum);
      } else {
        *other = merge(*other, sum);
        ++merged;
      }
    }
  }
};

} // namespace
} // namespace weft
