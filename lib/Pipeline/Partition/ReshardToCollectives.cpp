//===- ReshardToCollectives.cpp - from one sharding to another ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Partition/Passes.h"
#include "weft/Pipeline/ReshardProblem.h"
#include "weft/Planner/Prices.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_RESHARDTOCOLLECTIVESPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

using planner::Axes;
using planner::Layout;
using planner::Step;
using planner::StepKind;

/// Builds the steps of one value from its sharding to the wanted one.
class ReshardExpansion {
public:
  ReshardExpansion(ReshardOp op, bool narrowReductions)
      : builder(op), loc(op.getLoc()), value(op.getInput()),
        from(getSharding(op.getInput().getType())), to(getSharding(op.getOutput().getType())),
        mesh(from.getMesh()), problem(makeReshardProblem(cast<RankedTensorType>(value.getType()),
                                                         from, to, narrowReductions)) {}

  planner::ReshardPath findPath(planner::Prices &prices) const {
    return planner::cheapestPath(problem, std::ref(prices));
  }

  Value expand(const planner::ReshardPath &path) {
    Layout layout = problem.from;
    for (const Step &step : path.steps) {
      value = create(step, layout);
      layout = step.to;
    }
    return value;
  }

private:
  /// Returns the value's type in `layout`.
  RankedTensorType typeWith(const Layout &layout) {
    auto dims =
        llvm::map_to_vector(layout.dims, [&](const Axes &dim) { return toAttribute(mesh, dim); });
    // `to` has the reduction of a value that becomes pending, `from` that of one that was pending
    // before.
    ReductionKind reduction = from.isReduced() ? to.getReduction() : from.getReduction();
    auto sharding = ShardingAttr::get(mesh, dims, toAttribute(mesh, layout.unreduced), reduction);
    return withSharding(cast<RankedTensorType>(value.getType()), sharding);
  }

  Value create(const Step &step, const Layout &layout) {
    Type type = typeWith(step.to);
    ArrayAttr axes = toAttribute(mesh, step.axes);
    switch (step.kind) {
    case StepKind::AllReduce:
      return AllReduceOp::create(builder, loc, type, value, mesh, axes, from.getReduction());
    case StepKind::ReduceScatter:
      return ReduceScatterOp::create(builder, loc, type, value, mesh, axes, step.dim,
                                     from.getReduction());
    case StepKind::AllGather:
      return AllGatherOp::create(builder, loc, type, value, mesh, axes, step.dim);
    case StepKind::AllToAll:
      return AllToAllOp::create(builder, loc, type, value, mesh, axes, /*split=*/step.otherDim,
                                /*concat=*/step.dim);
    case StepKind::Permute: {
      auto sources = planner::permutationSources(problem.mesh, step.axes, layout, step.to);
      return PermuteOp::create(builder, loc, type, value, mesh, axes,
                               SmallVector<int32_t>(sources.begin(), sources.end()));
    }
    case StepKind::Slice:
      return SliceOp::create(builder, loc, type, value, Value(), mesh, axes, step.dim);
    case StepKind::Partial:
      return PartialOp::create(builder, loc, type, value, Value(), mesh, axes);
    }
    llvm_unreachable("all kinds are named");
  }

  OpBuilder builder;
  Location loc;
  Value value;
  ShardingAttr from, to;
  MeshAttr mesh;
  const planner::ReshardProblem problem;
};

struct ReshardToCollectivesPass : impl::ReshardToCollectivesPassBase<ReshardToCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    auto predictor = makePredictor(getOperation(), getArgument(), machine);
    if (failed(predictor)) {
      return signalPassFailure();
    }
    // The types fulfil the constraints now.
    getOperation().walk([](ConstrainOp op) {
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
    DenseMap<Attribute, std::unique_ptr<planner::Prices>> prices;
    // Layers have many reshards between the same types.
    DenseMap<std::pair<Type, Type>, planner::ReshardPath> paths;
    getOperation().walk([&](ReshardOp op) {
      MeshAttr mesh = getSharding(op.getInput().getType()).getMesh();
      std::unique_ptr<planner::Prices> &onMesh = prices[mesh];
      if (!onMesh) {
        onMesh = std::make_unique<planner::Prices>(mesh.getSizes(), predictor->get());
      }
      ReshardExpansion expansion(op, narrowReductions);
      auto [path, isNew] = paths.try_emplace({op.getInput().getType(), op.getOutput().getType()});
      if (isNew) {
        path->second = expansion.findPath(*onMesh);
      }
      op.replaceAllUsesWith(expansion.expand(path->second));
      op.erase();
    });
  }
};

} // namespace
} // namespace weft
