//===- FindPeakPoint.cpp - the instant when values take most memory -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "weft/Dialect/Weft/IR/Sharding.h"

using namespace mlir;

namespace weft {
namespace {

double bytesOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  if (!tensor || isa_and_nonnull<ReadOp>(value.getDefiningOp())) {
    return 0;
  }
  return double(countBytes(tensor));
}

struct PeakPoint {
  SmallVector<Operation *> ops;
  double bytes = -1;
};

/// Finds peak points; visits each function once.
class PeakPointFinder {
public:
  explicit PeakPointFinder(const SymbolTable &symbols) : symbols(symbols) {}

  const PeakPoint &find(func::FuncOp function) {
    auto [known, isNew] = peakPoints.try_emplace(function);
    return isNew ? known->second = compute(function) : known->second;
  }

private:
  PeakPoint compute(func::FuncOp function);
  /// Returns the peak point of the function that `op` calls, or null if that has no calls itself.
  const PeakPoint *inside(Operation &op) {
    auto call = dyn_cast<CallOp>(op);
    auto callee = call ? symbols.lookup<func::FuncOp>(call.getCallee()) : func::FuncOp();
    return callee && !callee.getOps<CallOp>().empty() ? &find(callee) : nullptr;
  }

  const SymbolTable &symbols;
  /// A std::map, as pointers to its values stay valid.
  std::map<Operation *, PeakPoint> peakPoints;
};

PeakPoint PeakPointFinder::compute(func::FuncOp function) {
  Block &block = function.getBody().front();
  DenseMap<Operation *, double> dying; // Bytes of values whose last user is the op.
  double live = 0;
  auto count = [&](Value value) {
    Operation *last = nullptr;
    for (Operation *user : value.getUsers()) {
      last = last && user->isBeforeInBlock(last) ? last : user;
    }
    if (last) {
      dying[last] += bytesOf(value);
    }
  };
  for (BlockArgument argument : block.getArguments()) {
    count(argument);
    live += argument.use_empty() ? 0 : bytesOf(argument);
  }
  for (Operation &op : block) {
    llvm::for_each(op.getResults(), count);
  }
  PeakPoint peak;
  for (Operation &op : block) {
    for (Value result : op.getResults()) {
      live += result.use_empty() ? 0 : bytesOf(result);
    }
    live -= dying.lookup(&op);
    const PeakPoint *callee = inside(op);
    double bytes = live + (callee ? callee->bytes : 0);
    if (bytes > peak.bytes) {
      peak = {{&op}, bytes};
      if (callee) {
        llvm::append_range(peak.ops, callee->ops);
      }
    }
  }
  return peak;
}

} // namespace

SmallVector<Operation *> findPeakPoints(func::FuncOp function, const SymbolTable &symbols) {
  return PeakPointFinder(symbols).find(function).ops;
}

} // namespace weft
