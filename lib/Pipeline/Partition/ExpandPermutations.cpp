//===- ExpandPermutations.cpp - shards that go from rank to rank --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/MapBuilders.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_EXPANDPERMUTATIONSPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

/// Expands one op over the shards of a group's ranks. In turn k each rank has the shards of the
/// rank k places before it, so that after n turns all ranks have seen all shards.
class Expansion {
public:
  explicit Expansion(PermutationOpInterface op)
      : op(op), builder(op), loc(op.getLoc()), mesh(op.getPermutedMesh()),
        axes(op.getPermutedAxes()),
        rule(cast<ShardableOpInterface>(op.getOperation()).getFactorRule()) {
    auto ranks = static_cast<int32_t>(mesh.getSize(axes));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      sources.push_back((rank + ranks - 1) % ranks);
    }
  }

  void run() {
    SmallVector<Value> operands(op->getOperands()), staying, traveling;
    for (size_t turn = 0; turn < sources.size(); ++turn) {
      // Sent before the turn, which overlaps with the exchange.
      bool isLast = turn + 1 == sources.size();
      SmallVector<Value> next = isLast ? SmallVector<Value>() : sendOperands(operands);
      Value number = arith::ConstantIndexOp::create(builder, loc, static_cast<int64_t>(turn));
      Operation *part = op.createTurn(builder, operands, number);
      join(part, staying, traveling);
      operands = std::move(next);
    }
    replaceResults(staying, traveling);
  }

private:
  bool travels(ArrayRef<unsigned> dims) { return llvm::is_contained(dims, *findPermutation(rule)); }

  Value send(Value value) {
    return PermuteOp::create(builder, loc, value.getType(), value, mesh, axes, sources);
  }

  /// Sends the operands; a value that is several operands only once.
  SmallVector<Value> sendOperands(ArrayRef<Value> operands) {
    SmallVector<Value> next(operands);
    llvm::SmallDenseMap<Value, Value> sent;
    for (auto [value, dims] : llvm::zip(next, rule.operands)) {
      if (travels(dims)) {
        Value &moved = sent[value];
        moved = moved ? moved : send(value);
        value = moved;
      }
    }
    return next;
  }

  /// Joins the results of a turn with those of all earlier turns.
  void join(Operation *part, SmallVector<Value> &staying, SmallVector<Value> &traveling) {
    SmallVector<Value> stays, goes;
    for (auto [result, dims] : llvm::zip(part->getResults(), rule.results)) {
      (travels(dims) ? goes : stays).push_back(result);
    }
    staying = staying.empty() ? stays : op.joinTurns(builder, staying, stays);
    for (auto [number, value] : llvm::enumerate(goes)) {
      if (number == traveling.size()) {
        traveling.push_back(value);
      } else {
        traveling[number] = createSum(builder, loc, {send(traveling[number]), value});
      }
    }
  }

  /// Replaces the op's results. Traveling sums are one rank away from their home, and are sent once
  /// more.
  void replaceResults(ArrayRef<Value> staying, ArrayRef<Value> traveling) {
    const auto *stay = staying.begin(), *travel = traveling.begin();
    for (auto [result, dims] : llvm::zip(op->getResults(), rule.results)) {
      Value value = travels(dims) ? send(*travel++) : *stay++;
      result.replaceAllUsesWith(
          createCast(builder, loc, value, getElementTypeOrSelf(result.getType())));
    }
    op->erase();
  }

  PermutationOpInterface op;
  OpBuilder builder;
  Location loc;
  MeshAttr mesh;
  ArrayAttr axes;
  FactorRule rule;
  /// Each rank receives from the one before it, the first from the last.
  SmallVector<int32_t> sources;
};

struct ExpandPermutationsPass : impl::ExpandPermutationsPassBase<ExpandPermutationsPass> {
  void runOnOperation() override {
    SmallVector<PermutationOpInterface> ops;
    getOperation().walk([&](PermutationOpInterface op) {
      if (op.getPermutedAxes()) {
        ops.push_back(op);
      }
    });
    for (PermutationOpInterface op : ops) {
      Expansion(op).run();
    }
    expanded += ops.size();
  }
};

} // namespace
} // namespace weft
