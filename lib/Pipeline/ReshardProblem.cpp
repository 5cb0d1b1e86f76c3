//===- ReshardProblem.cpp - between attributes and the planner's layouts --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;
using namespace weft;

planner::Axes weft::toAxes(MeshAttr mesh, ArrayAttr axes) {
  planner::Axes numbers;
  for (StringAttr axis : axes.getAsRange<StringAttr>()) {
    numbers.push_back(uint32_t(mesh.getIndex(axis)));
  }
  return numbers;
}

ArrayAttr weft::toAttribute(MeshAttr mesh, const planner::Axes &axes) {
  return ArrayAttr::get(
      mesh.getContext(),
      llvm::map_to_vector(axes, [&](uint32_t axis) -> Attribute { return mesh.getNames()[axis]; }));
}

FailureOr<std::unique_ptr<cost::Predictor>> weft::makePredictor(Operation *op, StringRef pass,
                                                                const std::string &machine) {
  if (machine.empty()) {
    return std::unique_ptr<cost::Predictor>();
  }
  auto spec = desc::parseMachine(machine);
  if (!spec) {
    return op->emitError() << pass << ": " << desc::str(spec.diagnostics());
  }
  return std::make_unique<cost::Predictor>(*spec);
}

planner::Layout weft::toLayout(ShardingAttr sharding) {
  planner::Layout layout;
  for (ArrayAttr dim : sharding.getDims()) {
    layout.dims.push_back(toAxes(sharding.getMesh(), dim));
  }
  layout.unreduced = toAxes(sharding.getMesh(), sharding.getUnreduced());
  return layout;
}

planner::ReshardProblem weft::makeReshardProblem(RankedTensorType type, ShardingAttr from,
                                                 ShardingAttr to, bool narrowReductions) {
  planner::ReshardProblem problem;
  problem.mesh.assign(from.getMesh().getSizes().begin(), from.getMesh().getSizes().end());
  problem.shape.assign(type.getShape().begin(), type.getShape().end());
  problem.from = toLayout(from);
  problem.to = toLayout(to);
  problem.elementBytes = double(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
  bool narrows = narrowReductions && type.getElementType().isF32() && type.getRank() > 0;
  problem.reducedBytes = narrows ? 2 : problem.elementBytes;
  problem.scatters = from.getReduction() != ReductionKind::LogSumExp;
  problem.isSum = from.getReduction() == ReductionKind::Sum;
  return problem;
}
