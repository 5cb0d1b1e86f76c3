//===- FuseMaps.cpp - merges elementwise ops with their users -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpKinds.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Schedule/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_FUSEMAPSPASS
#include "weft/Pipeline/Schedule/Passes.h.inc"

namespace {

// `OpTy`, the op that takes in others, is a map or a sum of a map.

template <typename OpTy> Attribute mapOf(OpTy op, unsigned number) { return op.getMaps()[number]; }

template <typename OpTy> void eraseOperand(OpTy op, unsigned number) {
  SmallVector<Attribute> maps(op.getMaps().getValue());
  maps.erase(maps.begin() + number);
  op->eraseOperand(number);
  op.setMapsAttr(ArrayAttr::get(op.getContext(), maps));
  op.getBody().front().eraseArgument(number);
}

/// Erases unused and duplicate operands.
template <typename OpTy> void simplifyOperands(OpTy op) {
  Block &body = op.getBody().front();
  for (unsigned number = op.getNumOperands(); number-- > 0;) {
    for (unsigned other = 0; other < number; ++other) {
      if (op->getOperand(other) == op->getOperand(number) &&
          mapOf(op, other) == mapOf(op, number)) {
        body.getArgument(number).replaceAllUsesWith(body.getArgument(other));
        break;
      }
    }
    if (body.getArgument(number).use_empty()) {
      eraseOperand(op, number);
    }
  }
}

/// Erases unused results, but keeps one.
MapOp simplifyResults(MapOp op) {
  SmallVector<unsigned> used;
  for (OpResult result : op->getResults()) {
    if (!result.use_empty()) {
      used.push_back(result.getResultNumber());
    }
  }
  if (used.empty() || used.size() == op.getNumResults()) {
    return op;
  }
  OpBuilder builder(op);
  auto yield = cast<YieldOp>(op.getBody().front().getTerminator());
  OperationState state(op.getLoc(), MapOp::getOperationName());
  state.addOperands(op->getOperands());
  state.addAttribute(op.getMapsAttrName(), op.getMapsAttr());
  SmallVector<Value> values;
  for (unsigned number : used) {
    state.addTypes(op->getResult(number).getType());
    values.push_back(yield->getOperand(number));
  }
  yield->setOperands(values);
  eraseDeadOps(op.getBody().front());
  state.addRegion()->takeBody(op.getBody());
  auto smaller = cast<MapOp>(builder.create(state));
  for (auto [position, number] : llvm::enumerate(used)) {
    op->getResult(number).replaceAllUsesWith(smaller->getResult(position));
  }
  op.erase();
  return smaller;
}

/// The operations for each element that take less time than to write and reread it.
constexpr double kFewFlops = 16;

/// The most operations for each element of a map that others join. A write and a reread are nothing
/// beside them, and the time that a kernel takes to compile grows with the square of its code.
constexpr double kMostFlops = 512;

/// Returns the operations for each element; those that only move or compare count as one.
template <typename OpTy> double countFlops(OpTy op) {
  double flops = 0;
  for (Operation &scalar : op.getBody().front().without_terminator()) {
    if (!scalar.hasTrait<OpTrait::ConstantLike>()) {
      flops += std::max(1.0, cast<ScalarOpInterface>(scalar).getFlops());
    }
  }
  return flops;
}

bool readsWhole(OpOperand &use) {
  Operation *op = use.getOwner();
  if (!isa<MapOp, MapSumOp>(op)) {
    return false;
  }
  unsigned number = use.getOperandNumber();
  Attribute map =
      isa<MapOp>(op) ? mapOf(cast<MapOp>(op), number) : mapOf(cast<MapSumOp>(op), number);
  return cast<AffineMapAttr>(map).getValue().isIdentity();
}

int64_t bytesOf(Value tensor) { return countBytes(cast<RankedTensorType>(tensor.getType())); }

/// Returns true if all readers of the result may compute it themselves: it takes few operations,
/// and they then read no more memory than a write of the result and its reads take.
bool mayRepeat(MapOp producer) {
  Value result = producer->getResult(0);
  int64_t read = 0;
  for (auto [number, input] : llvm::enumerate(producer.getInputs())) {
    if (cast<AffineMapAttr>(mapOf(producer, number)).getValue().isIdentity()) {
      read += bytesOf(input);
    }
  }
  double flops = 0;
  for (Operation &op : producer.getBody().front().without_terminator()) {
    flops += cast<ScalarOpInterface>(op).getFlops();
  }
  SmallPtrSet<Operation *, 4> users(result.user_begin(), result.user_end());
  auto count = static_cast<int64_t>(users.size());
  return flops <= kFewFlops && count * read <= read + (1 + count) * bytesOf(result) &&
         llvm::all_of(result.getUses(), [&](OpOperand &use) {
           return use.getOwner()->getBlock() == producer->getBlock() && readsWhole(use);
         });
}

/// Returns the map that computes operand `number` of `consumer`, if it can become part of it.
template <typename OpTy> MapOp findProducer(OpTy consumer, unsigned number) {
  auto producer = consumer->getOperand(number).template getDefiningOp<MapOp>();
  if (!producer || producer->getBlock() != consumer->getBlock()) {
    return {};
  }
  if (countFlops(producer) + countFlops(consumer) > kMostFlops) {
    return {};
  }
  if (producer.getNumOperands() == 0) {
    return producer; // A constant: costs nothing, wherever it is spread.
  }
  bool isWholeSpace = readsWhole(consumer->getOpOperand(number));
  bool joins =
      producer.getNumResults() == 1 && (producer->getResult(0).hasOneUse() || mayRepeat(producer));
  return isWholeSpace && joins ? producer : MapOp();
}

/// Copies the code of `producer` into `consumer`, and its operands in place of operand `number`.
/// The consumer reads that operand at the point it computes, so the producer's maps stay valid.
template <typename OpTy> void fuse(MapOp producer, OpTy consumer, unsigned number) {
  Block &body = consumer.getBody().front();
  Block &code = producer.getBody().front();
  SmallVector<Attribute> maps(consumer.getMaps().getValue());
  IRMapping mapping;
  for (unsigned i = 0; i < producer.getNumOperands(); ++i) {
    unsigned position = number + 1 + i;
    consumer->insertOperands(position, producer->getOperand(i));
    maps.insert(maps.begin() + position, mapOf(producer, i));
    BlockArgument argument = code.getArgument(i);
    mapping.map(argument, body.insertArgument(position, argument.getType(), argument.getLoc()));
  }
  consumer.setMapsAttr(ArrayAttr::get(consumer.getContext(), maps));

  OpBuilder builder = OpBuilder::atBlockBegin(&body);
  for (Operation &op : code.without_terminator()) {
    builder.clone(op, mapping);
  }
  unsigned result = cast<OpResult>(consumer->getOperand(number)).getResultNumber();
  Value scalar = mapping.lookupOrDefault(code.getTerminator()->getOperand(result));
  body.getArgument(number).replaceAllUsesWith(scalar);
  eraseOperand(consumer, number);
  if (producer->use_empty()) {
    producer.erase();
  }
}

struct FuseMapsPass : impl::FuseMapsPassBase<FuseMapsPass> {
  void runOnOperation() override {
    if (getOperation().isExternal()) {
      return;
    }
    eraseDeadOps(getOperation());
    for (Block &block : getOperation().getBody()) {
      for (Operation &op : llvm::make_early_inc_range(block)) {
        if (auto map = dyn_cast<MapOp>(op)) {
          fuseInto(simplifyResults(map));
        } else if (auto sum = dyn_cast<MapSumOp>(op)) {
          fuseInto(sum);
        }
      }
    }
    eraseDeadOps(getOperation());
  }

  /// Visits ops in order, so that every producer has already taken in its own producers.
  template <typename OpTy> void fuseInto(OpTy consumer) {
    simplifyOperands(consumer);
    for (unsigned number = 0; number < consumer.getNumOperands();) {
      if (MapOp producer = findProducer(consumer, number)) {
        fuse(producer, consumer, number);
        simplifyOperands(consumer);
        number = 0; // Operands moved; what is left is looked at again.
        ++fusedMaps;
      } else {
        ++number;
      }
    }
  }
};

} // namespace
} // namespace weft
