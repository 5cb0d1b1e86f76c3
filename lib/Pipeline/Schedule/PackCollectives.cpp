//===- PackCollectives.cpp - makes shards of collectives contiguous -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Packing.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_PACKCOLLECTIVESPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

/// A collective that cuts or joins shards, with its operand and result.
class Packable {
public:
  /// Returns nothing if `op` is another op or not of floats.
  static std::optional<Packable> get(Operation &op) {
    return TypeSwitch<Operation *, std::optional<Packable>>(&op)
        .Case([](AllGatherOp op) { return make(op, std::nullopt, op.getDim()); })
        .Case([](ReduceScatterOp op) { return make(op, op.getDim(), std::nullopt); })
        .Case([](AllToAllOp op) { return make(op, op.getSplit(), op.getConcat()); })
        .Default(std::nullopt);
  }

  /// Returns how many calls of a library the collective takes, if each call moves memory that is
  /// contiguous on both sides; and how many it takes once packed.
  int64_t calls() const {
    int64_t shard = std::min(operand.elements(), result.elements());
    return packedCalls() * (shard / std::min({shard, operand.together(), result.together()}));
  }
  int64_t packedCalls() const { return isa<AllToAllOp>(op) ? operand.count : 1; }

  /// Returns the seconds for packing on `machine`, which reads and writes each byte.
  double packingSeconds(const cost::Predictor &machine) const {
    double seconds = 0;
    for (const Shares &side : {operand, result}) {
      if (side.areScattered()) {
        seconds += machine.kernel("contract", desc::Precision::F32, /*flops=*/0,
                                  2 * double(countBytes(side.type)));
      }
    }
    return seconds;
  }

  void pack() const {
    OpBuilder builder(op);
    Operation *rows = builder.clone(*op);
    builder.setInsertionPoint(rows);
    Value packed = operand.pack(builder, op->getLoc(), op->getOperand(0));
    int64_t share = result.type.getNumElements() / result.count;
    SmallVector<int64_t> shape = {result.count, share};
    if (auto exchange = dyn_cast<AllToAllOp>(rows)) {
      // Cut along one dimension and joined along another: one of them has length 1.
      packed = reshapeTo(builder, op->getLoc(), packed, {operand.count, 1, share});
      shape.insert(shape.begin(), 1);
      exchange.setSplit(0);
      exchange.setConcat(1);
    } else {
      rows->setAttr("dim", builder.getI64IntegerAttr(0));
    }
    rows->setOperand(0, packed);
    rows->getResult(0).setType(result.type.clone(shape));
    builder.setInsertionPointAfter(rows);
    Value whole = result.unpack(builder, op->getLoc(), rows->getResult(0));
    op->getResult(0).replaceAllUsesWith(whole);
    op->erase();
  }

private:
  static std::optional<Packable> make(Operation *op, std::optional<int64_t> cut,
                                      std::optional<int64_t> joined) {
    auto operand = cast<RankedTensorType>(op->getOperand(0).getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    int64_t ranks =
        op->getAttrOfType<MeshAttr>("mesh").getSize(op->getAttrOfType<ArrayAttr>("axes"));
    if (!isa<FloatType>(operand.getElementType()) || operand.getNumElements() == 0) {
      return std::nullopt;
    }
    return Packable(op, {operand, cut.value_or(0), cut ? ranks : 1},
                    {result, joined.value_or(0), joined ? ranks : 1});
  }

  Packable(Operation *op, Shares operand, Shares result)
      : op(op), operand(operand), result(result) {}

  Operation *op;
  Shares operand, result;
};

struct PackCollectivesPass : impl::PackCollectivesPassBase<PackCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    auto predictor = makePredictor(getOperation(), getArgument(), machine);
    if (failed(predictor)) {
      return signalPassFailure();
    }
    if (!*predictor) {
      return; // Nothing to weigh it by.
    }
    double call = (*predictor)->kernel("contract", desc::Precision::F32, /*flops=*/0, /*bytes=*/0);
    SmallVector<Packable> chosen;
    getOperation().walk([&](Operation *op) {
      std::optional<Packable> one = Packable::get(*op);
      if (one &&
          one->packingSeconds(**predictor) < double(one->calls() - one->packedCalls()) * call) {
        chosen.push_back(*one);
      }
    });
    for (const Packable &one : chosen) {
      one.pack();
    }
    packed += chosen.size();
  }
};

} // namespace
} // namespace weft
