//===- VariableKinds.cpp - variables that are decided together ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A layer is called many times, each time with other variables, which the update of the
// optimizer then takes by another function. Variables of equal types and pins that a function
// passes to the same arguments, and assigns from the same results, are of one kind.
//
//===----------------------------------------------------------------------===//

#include "ShardingProblem.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Sharding.h"
#include "weft/Pipeline/ReshardProblem.h"

using namespace mlir;

namespace weft {
namespace {

/// Where the variables of functions go and come from.
class VariablePlaces {
public:
  void add(func::FuncOp function) {
    for (Operation &op : function.getOps()) {
      numbers.try_emplace(&op, numbers.size());
    }
    for (auto read : function.getOps<ReadOp>()) {
      for (OpOperand &use : read.getOutput().getUses()) {
        add(read.getVariable(), "to " + placeOf(use.getOwner(), use.getOperandNumber()));
      }
      add(read.getVariable(), "read");
    }
    for (auto assign : function.getOps<AssignOp>()) {
      auto result = cast<OpResult>(assign.getValue());
      add(assign.getVariable(), "from " + placeOf(result.getOwner(), result.getResultNumber()));
    }
  }

  /// Empty for a variable that no function reads or assigns.
  std::string of(VariableOp variable) {
    std::vector<std::string> &places = found[variable.getSymName()];
    llvm::sort(places);
    return llvm::join(places, "; ");
  }

private:
  void add(StringRef variable, std::string place) { found[variable].push_back(std::move(place)); }

  std::string placeOf(Operation *op, unsigned number) const {
    auto call = dyn_cast<CallOp>(op);
    std::string name = call ? call.getCallee().str() : "op " + std::to_string(numbers.lookup(op));
    return name + " #" + std::to_string(number);
  }

  DenseMap<Operation *, size_t> numbers;
  llvm::StringMap<std::vector<std::string>> found;
};

} // namespace

LogicalResult ShardingProblem::declareVariables() {
  VariablePlaces places;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (calls.contains(function)) {
      places.add(function);
    }
  }
  for (auto variable : module.getOps<VariableOp>()) {
    std::string uses = places.of(variable);
    if (uses.empty()) {
      continue;
    }
    std::string kind;
    llvm::raw_string_ostream(kind)
        << variable.getRole() << variable.getType() << variable.getDimensions()
        << variable->getAttr(kPinsAttrName) << uses;
    const ShardingEnd *&end = variableKinds[kind];
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

/// Whether `layout` has the axes that are pinned, and elsewhere axes in the order of the mesh.
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
  std::vector<uint32_t> layouts;
  for (uint32_t number = 0; number < space.size(); ++number) {
    if (space.divides(number, type.getShape().vec()) && agrees(space.layout(number), pins)) {
      layouts.push_back(number);
    }
  }
  if (layouts.empty()) {
    return variable.emitError("search-shardings: '")
           << variable.getSymName() << "' of " << type << " cannot be cut as it is pinned, "
           << variable->getAttr(kPinsAttrName);
  }
  return addLayouts("variable " + variable.getSymName().str(), type, std::move(layouts));
}

} // namespace weft
