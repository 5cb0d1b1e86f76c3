//===- VariableKinds.cpp - variables that are decided together ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each call of a layer has other variables, which the optimizer's update passes to another
// function. Variables of equal types and pins are of one kind if functions pass them to the same
// arguments, and assign them from the same results.
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {

/// Returns the places where functions read and assign each variable, as text.
static llvm::StringMap<std::string> placesOfVariables(ModuleOp module, ValuePlaces &places) {
  llvm::StringMap<std::string> found;
  module.walk([&](Operation *op) {
    if (!places.holds(op)) {
      return;
    }
    if (auto read = dyn_cast<ReadOp>(op)) {
      found[read.getVariable()] += "to " + std::to_string(places.of(read.getOutput())) + ". ";
    } else if (auto assign = dyn_cast<AssignOp>(op)) {
      found[assign.getVariable()] += "from " + places.sourceOf(assign.getValue()) + ". ";
    }
  });
  return found;
}

LogicalResult ShardingProblem::declareVariables() {
  llvm::StringMap<std::string> found = placesOfVariables(module, places);
  for (auto variable : module.getOps<VariableOp>()) {
    std::string uses = found.lookup(variable.getSymName());
    if (uses.empty()) {
      continue;
    }
    if (getSharding(variable.getTensorType())) {
      uses = ""; // Its uses decide nothing.
    }
    Attribute pins = variable->getAttr(kPinsAttrName);
    const ShardingEnd *&end = variableKinds[{
        variable.getRole(), variable.getType().getAsOpaquePointer(),
        variable.getDimensions().getAsOpaquePointer(), pins.getAsOpaquePointer(), std::move(uses)}];
    if (!end) {
      FailureOr<const ShardingEnd *> declared = declareKind(variable);
      if (failed(declared)) {
        return failure();
      }
      end = *declared;
    }
    variables[variable] = end;
    std::vector<planner::Option> &options = problem.nodes[end->node].options;
    for (size_t option = 0; option < options.size(); ++option) {
      options[option].bytes += bytesOf(variable.getTensorType(), end->layouts[option]);
    }
  }
  return success();
}

/// Returns true if `layout` has the pinned axes, and elsewhere axes in the order of the mesh.
static bool agrees(const planner::Layout &layout, ArrayRef<std::optional<planner::Axes>> pins) {
  for (auto [axes, pin] : llvm::zip(layout.dims, pins)) {
    if (pin ? axes != *pin : !llvm::is_sorted(axes)) {
      return false;
    }
  }
  return layout.unreduced.empty();
}

FailureOr<const ShardingEnd *> ShardingProblem::declareKind(VariableOp variable) {
  RankedTensorType type = variable.getTensorType();
  const planner::LayoutSpace &space = spaces.of(type);
  SmallVector<std::optional<planner::Axes>> pins(type.getRank());
  if (ShardingAttr sharding = getSharding(type)) {
    llvm::transform(toLayout(sharding).dims, pins.begin(),
                    [](const planner::Axes &axes) { return axes; });
  } else if (auto pinned = variable->getAttrOfType<ArrayAttr>(kPinsAttrName)) {
    for (auto [dim, pin] : llvm::enumerate(pinned)) {
      if (auto axes = dyn_cast<ArrayAttr>(pin)) {
        pins[dim] = toAxes(spaces.getMesh(), axes);
      }
    }
  }
  planner::Axes pinned;
  for (const std::optional<planner::Axes> &axes : pins) {
    llvm::append_range(pinned, axes.value_or(planner::Axes()));
  }
  std::vector<uint32_t> layouts;
  for (uint32_t number = 0; number < space.size(); ++number) {
    const planner::Layout &layout = space.layout(number);
    bool allowed = llvm::all_of(llvm::seq(type.getRank()), [&](int64_t dim) {
      return layout.dims[dim].empty() || mayBeCut(variable, dim);
    });
    if (allowed && space.divides(number, type.getShape().vec()) && agrees(layout, pins)) {
      layouts.push_back(number);
    }
  }
  layouts = spaces.searchedOf(type.getRank(), layouts, pinned);
  if (layouts.empty()) {
    return variable.emitError("search-shardings: '")
           << variable.getSymName() << "' of " << type << " cannot be cut as it is pinned, "
           << variable->getAttr(kPinsAttrName);
  }
  return addLayouts("variable " + variable.getSymName().str(), type, std::move(layouts));
}

} // namespace weft
