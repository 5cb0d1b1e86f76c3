//===- MutateCollective.cpp - plants a mistake, to test the tests -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Partition/CollectiveMistake.h"
#include "weft/Pipeline/Partition/Passes.h"

#include <limits>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_MUTATECOLLECTIVEPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

struct MutateCollectivePass : impl::MutateCollectivePassBase<MutateCollectivePass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<CollectiveMistake> mistake = parseCollectiveMistake(kind);
    if (!mistake) {
      getOperation().emitError("mutate-collective: expected ")
          << collectiveMistakeNames() << ", got '" << kind << "'";
      return signalPassFailure();
    }
    SmallVector<Operation *> found, marked;
    getOperation().walk([&](Operation *op) {
      if (mayMutate(op)) {
        found.push_back(op);
        if (op->removeAttr(kMutatedAttrName)) {
          marked.push_back(op);
        }
      }
    });
    if (!marked.empty()) {
      for (Operation *op : marked) {
        mutate(op, *mistake);
      }
      return;
    }
    if (index < 0 || index >= static_cast<int64_t>(found.size())) {
      getOperation().emitError("mutate-collective: no collective number ")
          << static_cast<int64_t>(index) << ", there are " << found.size();
      return signalPassFailure();
    }
    mutate(found[index], *mistake);
  }

  void mutate(Operation *op, CollectiveMistake mistake) {
    if (auto transfer = dyn_cast<TransferOp>(op)) {
      dropTransfer(transfer, mistake);
    } else {
      mutateReduction(cast<AllReduceOp>(op), mistake);
    }
  }

  /// Lets the ranks that receive keep what an earlier transfer brought.
  void dropTransfer(TransferOp op, CollectiveMistake mistake) {
    if (mistake != CollectiveMistake::Drop) {
      op.emitError("mutate-collective: expected drop for a transfer, got '") << kind << "'";
      return signalPassFailure();
    }
    TransferOp earlier;
    for (auto other : op->getBlock()->getOps<TransferOp>()) {
      if (other == op) {
        break;
      }
      bool isLike = other.getFrom() == op.getFrom() && other.getTo() == op.getTo() &&
                    other.getOutput().getType() == op.getOutput().getType();
      earlier = isLike ? other : earlier;
    }
    if (!earlier) {
      op.emitError("mutate-collective: no earlier transfer is of the same stages and type");
      return signalPassFailure();
    }
    op.replaceAllUsesWith(earlier.getOutput());
    op.erase();
  }

  void mutateReduction(AllReduceOp op, CollectiveMistake mistake) {
    switch (mistake) {
    case CollectiveMistake::Drop:
      op.replaceAllUsesWith(op.getInput());
      return op.erase();
    case CollectiveMistake::Double:
      return replaceWith(op, [&](OpBuilder &builder) -> Value {
        return AllReduceOp::create(builder, op.getLoc(), op.getOutput().getType(), op.getOutput(),
                                   op.getMesh(), op.getAxes(), op.getReduction());
      });
    case CollectiveMistake::Scale:
      return multiply(op, 0.5);
    case CollectiveMistake::Axis:
      return moveAxis(op);
    case CollectiveMistake::Operator:
      return op.setReduction(op.getReduction() == ReductionKind::Sum ? ReductionKind::Max
                                                                     : ReductionKind::Sum);
    case CollectiveMistake::Root:
      return keepAtRoot(op);
    case CollectiveMistake::Infinite:
      return multiply(op, std::numeric_limits<double>::infinity());
    }
  }

  /// Reduces over the axes of the mesh that the reduction is not over.
  void moveAxis(AllReduceOp op) {
    SmallVector<Attribute> others;
    for (StringAttr axis : op.getMesh().getNames()) {
      if (!llvm::is_contained(op.getAxes(), axis)) {
        others.push_back(axis);
      }
    }
    if (others.empty()) {
      op.emitError("mutate-collective: there is no other axis than those of the reduction");
      return signalPassFailure();
    }
    op.setAxesAttr(ArrayAttr::get(&getContext(), others));
  }

  /// Gives the result to the first rank of each group only; others keep their operand.
  void keepAtRoot(AllReduceOp op) {
    auto type = cast<RankedTensorType>(op.getOutput().getType());
    if (type.getRank() == 0) {
      op.emitError("mutate-collective: root is for tensors with dimensions");
      return signalPassFailure();
    }
    replaceWith(op, [&](OpBuilder &builder) {
      Location loc = op.getLoc();
      Value distance = arith::ConstantIndexOp::create(builder, loc, 0);
      for (StringAttr axis : op.getAxes().getAsRange<StringAttr>()) {
        Value coordinate =
            AxisIndexOp::create(builder, loc, builder.getIndexType(), axis, op.getMesh());
        distance = arith::AddIOp::create(builder, loc, distance, coordinate);
      }
      return chooseAtFirst(builder, loc, distance, op.getOutput(), op.getInput());
    });
  }

  /// Selects `first` if `distance` is 0, else `other`: an iota that begins with a multiple of the
  /// distance is below its length only if the distance is 0.
  static Value chooseAtFirst(OpBuilder &builder, Location loc, Value distance, Value first,
                             Value other) {
    auto type = cast<RankedTensorType>(first.getType());
    int64_t length = type.getDimSize(0);
    auto numbers = RankedTensorType::get({length}, builder.getI32Type());
    Value step = arith::ConstantIndexOp::create(builder, loc, length);
    Value offset = arith::MulIOp::create(builder, loc, distance, step);
    Value places = IotaOp::create(builder, loc, numbers, offset);
    AffineMap whole = builder.getMultiDimIdentityMap(type.getRank());
    auto choose = [&](OpBuilder &inner, Location at, ValueRange in) {
      Value end = arith::ConstantIntOp::create(inner, at, inner.getI32Type(), length);
      Value isFirst = arith::CmpIOp::create(inner, at, arith::CmpIPredicate::slt, in[2], end);
      return SmallVector<Value>{arith::SelectOp::create(inner, at, isFirst, in[0], in[1])};
    };
    return MapOp::create(builder, loc, type, {first, other, places},
                         {whole, whole, whole.getSubMap(0)}, choose)
        .getResult(0);
  }

  /// Replaces the op's result by the value that `build` makes of it.
  static void replaceWith(AllReduceOp op, llvm::function_ref<Value(OpBuilder &)> build) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Value changed = build(builder);
    op.getOutput().replaceAllUsesExcept(changed, changed.getDefiningOp());
  }

  static void multiply(AllReduceOp op, double factor) {
    auto body = [factor](OpBuilder &inner, Location at, ValueRange in) {
      Value by = arith::ConstantOp::create(inner, at, inner.getFloatAttr(in[0].getType(), factor));
      return SmallVector<Value>{arith::MulFOp::create(inner, at, in[0], by)};
    };
    replaceWith(op, [&](OpBuilder &builder) {
      Type type = op.getOutput().getType();
      return createMap(builder, op.getLoc(), type, op.getOutput(), body).getResult(0);
    });
  }
};

} // namespace
} // namespace weft
