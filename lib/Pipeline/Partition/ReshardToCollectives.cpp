//===- ReshardToCollectives.cpp - from one sharding to another ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Predictor.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/Partition/Passes.h"
#include "weft/Planner/Reshard.h"

#include <map>

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_RESHARDTOCOLLECTIVESPASS
#include "weft/Pipeline/Partition/Passes.h.inc"

namespace {

using planner::Axes;
using planner::Layout;
using planner::Step;
using planner::StepKind;

/// What steps cost on a mesh: seconds on a machine, or without one the bytes that a rank sends.
class Prices {
public:
  Prices(ArrayRef<int64_t> mesh, const cost::Predictor *machine)
      : mesh(mesh.begin(), mesh.end()), machine(machine) {}

  double operator()(StepKind kind, const Axes &axes, double bytes) {
    auto [known, isNew] = groups.try_emplace(axes);
    cost::Group &group = known->second;
    if (isNew) {
      group = cost::placeGroup(mesh, axes, machine ? machine->devicesPerNode() : INT64_MAX);
    }
    if (!machine) {
      return planner::bytesSent(kind, group.ranks, bytes);
    }
    switch (kind) {
    case StepKind::AllReduce:
      return machine->collective(desc::CollectiveKind::AllReduce, group, bytes);
    case StepKind::ReduceScatter:
      return machine->collective(desc::CollectiveKind::ReduceScatter, group, bytes);
    case StepKind::AllGather:
      return machine->collective(desc::CollectiveKind::AllGather, group, bytes);
    case StepKind::AllToAll:
      return machine->collective(desc::CollectiveKind::AllToAll, group, bytes);
    case StepKind::Permute:
      return machine->collective(desc::CollectiveKind::Permute, group, bytes);
    case StepKind::Slice:
      return machine->kernel("slice", desc::Precision::F32, 0, 2 * bytes / double(group.ranks));
    case StepKind::Partial:
      return machine->kernel("partial", desc::Precision::F32, 0, 2 * bytes);
    }
    llvm_unreachable("all kinds are named");
  }

private:
  std::vector<int64_t> mesh;
  const cost::Predictor *machine;
  std::map<Axes, cost::Group> groups;
};

/// Walks one value from its sharding to the wanted one, a step at a time.
class ReshardExpansion {
public:
  ReshardExpansion(ReshardOp op, bool narrowReductions)
      : builder(op), loc(op.getLoc()), value(op.getInput()),
        from(getSharding(op.getInput().getType())), to(getSharding(op.getOutput().getType())),
        mesh(from.getMesh()) {
    auto type = cast<RankedTensorType>(value.getType());
    problem.mesh.assign(mesh.getSizes().begin(), mesh.getSizes().end());
    problem.shape.assign(type.getShape().begin(), type.getShape().end());
    problem.from = toLayout(from);
    problem.to = toLayout(to);
    problem.elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
    bool narrows = narrowReductions && type.getElementType().isF32() && type.getRank() > 0;
    problem.reducedBytes = narrows ? 2 : problem.elementBytes;
    problem.scatters = from.getReduction() != ReductionKind::LogSumExp;
  }

  Value expand(Prices &prices) {
    auto price = [&](StepKind kind, const Axes &axes, double bytes) {
      return prices(kind, axes, bytes);
    };
    Layout layout = problem.from;
    for (const Step &step : planner::cheapestSteps(problem, price)) {
      value = create(step, layout);
      layout = step.to;
    }
    return value;
  }

private:
  Axes toAxes(ArrayAttr axes) {
    Axes numbers;
    for (StringAttr axis : axes.getAsRange<StringAttr>()) {
      numbers.push_back(uint32_t(mesh.getIndex(axis)));
    }
    return numbers;
  }

  ArrayAttr toAttribute(const Axes &axes) {
    return builder.getArrayAttr(llvm::map_to_vector(
        axes, [&](uint32_t axis) -> Attribute { return mesh.getNames()[axis]; }));
  }

  Layout toLayout(ShardingAttr sharding) {
    Layout layout;
    for (ArrayAttr dim : sharding.getDims()) {
      layout.dims.push_back(toAxes(dim));
    }
    layout.unreduced = toAxes(sharding.getUnreduced());
    return layout;
  }

  /// The value's type under `layout`.
  RankedTensorType typeWith(const Layout &layout) {
    auto dims = llvm::map_to_vector(layout.dims, [&](const Axes &dim) { return toAttribute(dim); });
    // What a value becomes pending by is in `to`, what it is pending by before in `from`.
    ReductionKind reduction = from.isReduced() ? to.getReduction() : from.getReduction();
    auto sharding = ShardingAttr::get(mesh, dims, toAttribute(layout.unreduced), reduction);
    return withSharding(cast<RankedTensorType>(value.getType()), sharding);
  }

  Value create(const Step &step, const Layout &layout) {
    Type type = typeWith(step.to);
    ArrayAttr axes = toAttribute(step.axes);
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
  planner::ReshardProblem problem;
};

struct ReshardToCollectivesPass : impl::ReshardToCollectivesPassBase<ReshardToCollectivesPass> {
  using Base::Base;

  void runOnOperation() override {
    std::optional<cost::Predictor> predictor;
    if (!machine.empty()) {
      auto spec = desc::parseMachine(machine);
      if (!spec) {
        getOperation().emitError("reshard-to-collectives: ") << desc::str(spec.diagnostics());
        return signalPassFailure();
      }
      predictor.emplace(*spec);
    }
    DenseMap<Attribute, std::unique_ptr<Prices>> prices;
    getOperation().walk([&](ReshardOp op) {
      MeshAttr mesh = getSharding(op.getInput().getType()).getMesh();
      std::unique_ptr<Prices> &onMesh = prices[mesh];
      if (!onMesh) {
        onMesh = std::make_unique<Prices>(mesh.getSizes(), predictor ? &*predictor : nullptr);
      }
      op.replaceAllUsesWith(ReshardExpansion(op, narrowReductions).expand(*onMesh));
      op.erase();
    });
  }
};

} // namespace
} // namespace weft
