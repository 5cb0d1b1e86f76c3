//===- BalanceSequences.cpp - equal work for shards of a sequence -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Dimensions.h"
#include "weft/Pipeline/Partition/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_BALANCESEQUENCESPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

/// Returns `type` with dimension `dim` cut over `axes`.
RankedTensorType cutAs(Type type, int64_t dim, ArrayAttr axes) {
  auto tensor = cast<RankedTensorType>(type);
  return withSharding(tensor, withDim(getSharding(tensor), dim, axes));
}

class Balancing {
public:
  explicit Balancing(ModuleOp module) : module(module), dimensions(module) {}

  /// Stores sequences in another order if that is possible and balances work. Returns true if it
  /// did.
  bool run() {
    order = findOrder();
    if (!order || !canReorder()) {
      return false;
    }
    for (auto [op, factor] : ordered) {
      op.setOrder(factor, order);
    }
    for (auto [value, dim] : sources) {
      reorderSource(value, dim);
    }
    for (auto [observe, dim] : observed) {
      reorderObserved(observe, dim);
    }
    return true;
  }

private:
  ZigzagAttr findOrder();
  bool canReorder();
  bool canReorder(Operation *op);
  bool canReorder(ShardableOpInterface op);
  void reorderSource(Value value, int64_t dim);
  void reorderObserved(ObserveOp observe, int64_t dim);

  ModuleOp module;
  Dimensions dimensions;
  ZigzagAttr order;
  /// Classes of the dimensions to reorder.
  llvm::SmallDenseSet<uint32_t> sequence;
  /// Ops that compute positions from the order; values that come in by position; values that go
  /// out.
  SmallVector<std::pair<OrderOpInterface, unsigned>> ordered;
  SmallVector<std::pair<Value, int64_t>> sources;
  SmallVector<std::pair<ObserveOp, int64_t>> observed;
};

/// Returns the order with two chunks for each shard, if all ops whose work grows with positions are
/// cut alike. Returns null if there is no such op, or if another op needs neighbouring elements in
/// one shard.
ZigzagAttr Balancing::findOrder() {
  int64_t size = 0, shards = 0;
  bool isOneOrder = true;
  module.walk([&](PermutationOpInterface op) {
    FactorRule rule = cast<ShardableOpInterface>(op.getOperation()).getFactorRule();
    unsigned permuted = *findPermutation(rule), partner = rule.factors[permuted].partner;
    for (unsigned factor : {permuted, partner}) {
      auto [value, dim] = carriersOf(op, rule, factor).front();
      sequence.insert(dimensions.classOf(value, dim));
      int64_t count = getSharding(value.getType()).getShards(dim);
      if (factor == partner) {
        isOneOrder &= op.growsWithPosition() && (shards == 0 || shards == count);
        shards = count;
      }
      isOneOrder &= size == 0 || size == rule.factors[factor].size;
      size = rule.factors[factor].size;
    }
  });
  bool isCut = isOneOrder && shards > 1 && size % (2 * shards) == 0;
  return isCut ? ZigzagAttr::get(module.getContext(), 2 * shards, size / (2 * shards))
               : ZigzagAttr();
}

bool Balancing::canReorder() {
  bool can = true;
  module.walk([&](Operation *op) { can = can && canReorder(op); });
  return can;
}

bool Balancing::canReorder(Operation *op) {
  if (auto shardable = dyn_cast<ShardableOpInterface>(op)) {
    return canReorder(shardable);
  }
  auto findDims = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return llvm::to_vector(
        llvm::make_filter_range(llvm::seq<int64_t>(0, type ? type.getRank() : 0), [&](int64_t dim) {
          return sequence.contains(dimensions.classOf(value, dim));
        }));
  };
  if (auto read = dyn_cast<ReadOp>(op)) {
    auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(op, read.getVariableAttr());
    for (int64_t dim : findDims(read.getOutput())) {
      if (variable.getRole() != VariableRole::Input) {
        return false;
      }
      sources.push_back({read.getOutput(), dim});
    }
    return true;
  }
  if (auto observe = dyn_cast<ObserveOp>(op)) {
    for (int64_t dim : findDims(observe.getValue())) {
      observed.push_back({observe, dim});
    }
    return true;
  }
  // These only pass values on.
  return isa<CallOp, func::ReturnOp, ReshardOp>(op) ||
         llvm::all_of(op->getOperands(), [&](Value value) { return findDims(value).empty(); });
}

/// Ops without tensor operands are computed by position, and their results reordered.
bool Balancing::canReorder(ShardableOpInterface op) {
  FactorRule rule = op.getFactorRule();
  auto positional = dyn_cast<PositionOpInterface>(op.getOperation());
  auto positions = positional ? positional.getPositionFactors() : SmallVector<unsigned>();
  bool reads = llvm::any_of(rule.operands, [](auto &dims) { return !dims.empty(); });
  for (auto [number, factor] : llvm::enumerate(rule.factors)) {
    auto carriers = carriersOf(op, rule, unsigned(number));
    llvm::erase_if(carriers, [&](auto &carrier) {
      return !sequence.contains(dimensions.classOf(carrier.first, carrier.second));
    });
    if (carriers.empty()) {
      continue;
    }
    if (!reads) {
      llvm::append_range(sources, carriers);
    } else if (factor.kind == FactorKind::MustReplicate || !factor.hasOneLength) {
      return false;
    } else if (llvm::is_contained(positions, number)) {
      auto orderable = dyn_cast<OrderOpInterface>(op.getOperation());
      if (!orderable) {
        return false;
      }
      ordered.push_back({orderable, number});
    }
  }
  return true;
}

/// Gathers the whole value by position, and then takes each rank's shards of the reordered value.
void Balancing::reorderSource(Value value, int64_t dim) {
  OpBuilder builder(module.getContext());
  builder.setInsertionPointAfterValue(value);
  auto given = cast<RankedTensorType>(value.getType());
  auto whole = cutAs(given, dim, builder.getArrayAttr({}));
  Value all = value;
  llvm::SmallPtrSet<Operation *, 2> own;
  if (isa<ShardableOpInterface>(value.getDefiningOp())) {
    value.setType(whole);
  } else if (whole != given) {
    all = ReshardOp::create(builder, value.getLoc(), whole, value);
    own.insert(all.getDefiningOp());
  }
  auto stored = ReorderOp::create(builder, value.getLoc(), given, all, dim, order,
                                  /*inverse=*/false, /*offset=*/Value());
  own.insert(stored);
  value.replaceAllUsesExcept(stored.getOutput(), own);
}

void Balancing::reorderObserved(ObserveOp observe, int64_t dim) {
  OpBuilder builder(observe);
  Value value = observe.getValue();
  Type given = value.getType();
  Type whole = cutAs(given, dim, builder.getArrayAttr({}));
  if (whole != given) {
    value = ReshardOp::create(builder, observe.getLoc(), whole, value);
  }
  auto byPosition = ReorderOp::create(builder, observe.getLoc(), given, value, dim, order,
                                      /*inverse=*/true, /*offset=*/Value());
  observe.getValueMutable().assign(byPosition.getOutput());
}

struct BalanceSequencesPass : impl::BalanceSequencesPassBase<BalanceSequencesPass> {
  void runOnOperation() override { reordered += Balancing(getOperation()).run(); }
};

} // namespace
} // namespace weft
