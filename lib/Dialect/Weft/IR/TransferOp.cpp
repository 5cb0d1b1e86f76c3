//===- TransferOp.cpp - values that cross pipeline stages -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/OpCost.h"
#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;
using namespace weft;

LogicalResult TransferOp::verify() {
  auto from = static_cast<int64_t>(getFrom()), to = static_cast<int64_t>(getTo());
  if (from < 0 || to < 0 || from == to) { // transfer_c1
    return emitOpError() << "expected two stages, numbered from 0, got " << from << " and " << to;
  }
  return success();
}

static LogicalResult verifyHalf(Operation *op, int64_t stage, int64_t number) {
  if (stage < 0 || number < 1) {
    return op->emitOpError() << "expected a stage, numbered from 0, and a number from 1, got "
                             << stage << " and " << number;
  }
  return success();
}

LogicalResult SendOp::verify() { // send_c1
  return verifyHalf(*this, static_cast<int64_t>(getTo()), static_cast<int64_t>(getNumber()));
}

LogicalResult ReceiveOp::verify() { // receive_c1
  return verifyHalf(*this, static_cast<int64_t>(getFrom()), static_cast<int64_t>(getNumber()));
}

/// Not additive, so that the operand is not pending (transfer_c2).
FactorRule TransferOp::getFactorRule() {
  std::string dims = letters(cast<RankedTensorType>(getInput().getType()).getRank());
  return makeFactorRule(*this, {dims}, {dims});
}

bool TransferOp::isNothingBeyond(unsigned, ArrayRef<unsigned> zeros, unsigned) {
  return !zeros.empty();
}

OpCost TransferOp::getCost() { return elementwiseCost(*this, 0); }
