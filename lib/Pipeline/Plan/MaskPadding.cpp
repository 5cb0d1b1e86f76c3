//===- MaskPadding.cpp - keeps padding out of results ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayoutSpaces.h"
#include "Padding.h"

#include "weft/Dialect/Weft/IR/PaddingMask.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Plan/Passes.h"

#include <limits>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_MASKPADDINGPASS
#include "weft/Pipeline/Plan/Passes.h.inc"

namespace {

/// Values whose padding to set to zero, and the bytes of these values.
struct Masks {
  double bytes = 0;
  SmallVector<Value> values;
};

const Masks kImpossible = {std::numeric_limits<double>::infinity(), {}};

/// Finds the cheapest masks that remove a fault of one class of dimensions.
class MaskChoice {
public:
  MaskChoice(Padding &padding, uint32_t dimension) : padding(padding), dimension(dimension) {}

  /// Masks so that elements beyond the end of `factor` do not affect the result.
  Masks choose(ShardableOpInterface op, unsigned factor, unsigned result) {
    SmallVector<unsigned> zeros, others;
    for (unsigned operand : padding.operandsWith(op, factor)) {
      (padding.isZero(op->getOperand(operand), dimension) ? zeros : others).push_back(operand);
    }
    Masks best = kImpossible;
    auto consider = [&](ArrayRef<unsigned> masked) {
      SmallVector<unsigned> all(zeros);
      llvm::append_range(all, masked);
      if (!isNothingBeyond(op, factor, all, result)) {
        return;
      }
      Masks sum;
      for (unsigned operand : masked) {
        Masks more = choose(op->getOperand(operand));
        sum.bytes += more.bytes;
        llvm::append_range(sum.values, more.values);
      }
      if (sum.bytes < best.bytes) {
        best = std::move(sum);
      }
    };
    for (unsigned operand : others) {
      consider(operand);
    }
    consider(others);
    return best;
  }

  /// Masks so that `value` is zero beyond the end.
  Masks choose(Value value) {
    auto known = chosen.find(value);
    if (known != chosen.end()) {
      return known->second;
    }
    Masks best;
    if (!padding.isZero(value, dimension)) {
      best = chooseAnew(value);
    }
    return chosen.insert({value, best}).first->second;
  }

private:
  Masks chooseAnew(Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    if (!isa<FloatType>(type.getElementType())) {
      return kImpossible;
    }
    Masks best = {double(countBytes(type)), {value}};
    auto op = dyn_cast_or_null<ShardableOpInterface>(value.getDefiningOp());
    if (!op) {
      return best;
    }
    unsigned result = cast<OpResult>(value).getResultNumber();
    SmallVector<unsigned> factors = padding.factorsOf(op, value, dimension);
    // Ops with several are rare: their result is masked.
    Masks before = factors.size() == 1 ? choose(op, factors.front(), result) : kImpossible;
    return before.bytes < best.bytes ? before : best;
  }

  Padding &padding;
  uint32_t dimension;
  DenseMap<Value, Masks> chosen;
};

/// Replaces `value` by a copy that is zero beyond the end of `dimension`.
void mask(Value value, Padding &padding, uint32_t dimension, MaskedDims &masked) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  SmallVector<int64_t> dims = padding.dimsOf(value, dimension);
  for (int64_t dim : dims) {
    MapOp map = createPaddingMask(builder, value.getLoc(), value, dim, padding.endOf(dimension));
    value.replaceAllUsesExcept(map.getResult(0), map);
    value = map.getResult(0);
  }
  for (int64_t dim : dims) {
    masked.insert({value, dim});
  }
}

struct MaskPaddingPass : impl::MaskPaddingPassBase<MaskPaddingPass> {
  void runOnOperation() override {
    auto isPadded = [](VariableOp variable) { return bool(variable.getUnpadded()); };
    if (llvm::none_of(getOperation().getOps<VariableOp>(), isPadded)) {
      return;
    }
    masked.clear();
    // A mask makes many later values zero, also in called functions.
    for (bool isDone = false; !isDone;) {
      Padding padding(getOperation(), masked);
      std::optional<PaddingFault> fault = padding.findFault();
      isDone = !fault;
      if (fault && failed(mend(*fault, padding))) {
        return signalPassFailure();
      }
    }
  }

  LogicalResult mend(const PaddingFault &fault, Padding &padding) {
    MaskChoice choice(padding, fault.dimension);
    Masks masks = fault.value ? choice.choose(fault.value)
                              : choice.choose(cast<ShardableOpInterface>(fault.op), fault.factor,
                                              fault.result);
    if (masks.values.empty()) {
      return fault.op->emitError("mask-padding: ")
             << fault.op->getName() << " depends on the padding after the "
             << padding.endOf(fault.dimension) << " elements of a padded dimension";
    }
    for (Value value : masks.values) {
      mask(value, padding, fault.dimension, masked);
    }
    numMasks += masks.values.size();
    return success();
  }

  MaskedDims masked;
};

} // namespace
} // namespace weft
