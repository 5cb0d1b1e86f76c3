//===- ShardingReasons.cpp - why values are sharded as they are -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShardingReasons.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace weft {

ShardingReasons::ShardingReasons(ModuleOp module, const ShardingProblem &shardings,
                                 const planner::Choice &choice, const PinOrigins &origins,
                                 bool hasMachine)
    : shardings(shardings), choice(choice), origins(origins), hasMachine(hasMachine),
      dimensions(module), edges(shardings.problem.nodes.size()) {
  for (auto [number, edge] : llvm::enumerate(shardings.problem.edges)) {
    edges[edge.a].push_back(uint32_t(number));
    edges[edge.b].push_back(uint32_t(number));
  }
}

double ShardingReasons::secondsOf(uint32_t node, uint32_t option) const {
  const planner::Problem &problem = shardings.problem;
  double seconds = problem.nodes[node].options[option].seconds;
  for (uint32_t number : edges[node]) {
    const planner::Edge &edge = problem.edges[number];
    seconds += problem.seconds(edge, edge.a == node ? option : choice[edge.a],
                               edge.b == node ? option : choice[edge.b]);
  }
  return seconds;
}

ShardingAttr ShardingReasons::shardingOf(Type type, const ShardingEnd &end, uint32_t option) const {
  planner::Choice other = choice;
  other[end.node] = option;
  return shardings.shardingOf(type, end, other);
}

std::string ShardingReasons::layoutText(ShardingAttr sharding, ArrayRef<std::string> names) const {
  std::vector<std::string> parts;
  auto add = [&](StringRef what, ArrayAttr axes) {
    if (!axes.empty()) {
      parts.push_back((what + " over ").str() +
                      llvm::join(llvm::map_range(axes.getAsRange<StringAttr>(),
                                                 [](StringAttr axis) { return axis.str(); }),
                                 " and "));
    }
  };
  for (auto [name, axes] : llvm::zip(names, sharding.getDims())) {
    add(name, axes);
  }
  add("terms", sharding.getUnreduced());
  return parts.empty() ? "whole" : llvm::join(parts, ", ");
}

/// Returns the names that variables give the dimensions of `value`, or else their numbers.
SmallVector<std::string> ShardingReasons::dimensionsOf(Value value) {
  SmallVector<std::string> names;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(value.getType()).getRank(); ++dim) {
    StringRef name = dimensions.nameOf(value, dim);
    names.push_back(name.empty() ? "dimension " + std::to_string(dim) : name.str());
  }
  return names;
}

std::string ShardingReasons::layoutOf(Value value, const ShardingEnd &end, uint32_t option) {
  return layoutText(shardingOf(value.getType(), end, option), dimensionsOf(value));
}

std::string ShardingReasons::layoutOf(VariableOp variable, const ShardingEnd &end,
                                      uint32_t option) {
  auto names = llvm::map_to_vector(variable.getDimensions().getAsRange<StringAttr>(),
                                   [](StringAttr name) { return name.str(); });
  return layoutText(shardingOf(variable.getTensorType(), end, option), names);
}

std::string ShardingReasons::whyOf(Value value, const ShardingEnd &end) {
  return whyOf(value.getDefiningOp(), end,
               [&](uint32_t option) { return layoutOf(value, end, option); });
}

std::string ShardingReasons::whyOf(VariableOp variable, const ShardingEnd &end) {
  return whyOf(variable.getOperation(), end,
               [&](uint32_t option) { return layoutOf(variable, end, option); });
}

/// Returns the origin of the pins of `owner`; empty if it has none.
std::string ShardingReasons::pinOf(Operation *owner) const {
  if (!owner || !owner->hasAttr(kPinsAttrName)) {
    return "";
  }
  if (isa<ConstrainOp>(owner)) {
    return "constrained";
  }
  llvm::SetVector<StringRef> texts;
  if (ArrayAttr given = origins.lookup(owner)) {
    for (Attribute origin : given) {
      if (auto text = dyn_cast<StringAttr>(origin)) {
        texts.insert(text.getValue());
      }
    }
  }
  return texts.empty() ? "pinned by the plan" : "pinned by " + llvm::join(texts, " and ");
}

std::string ShardingReasons::whyOf(Operation *owner, const ShardingEnd &end,
                                   LayoutText layoutOf) const {
  std::string pin = pinOf(owner);
  if (!llvm::all_equal(end.layouts)) {
    return (pin.empty() ? "" : pin + "; of what that leaves open, ") + compare(end, layoutOf);
  }
  return pin.empty() ? "the only way that is allowed" : pin;
}

std::string ShardingReasons::timeText(double seconds) const {
  if (!hasMachine) {
    return llvm::formatv("{0:F0} bytes", seconds).str();
  }
  return seconds < 1e-4 ? llvm::formatv("{0:F3} us", 1e6 * seconds).str()
                        : llvm::formatv("{0:F3} ms", 1e3 * seconds).str();
}

/// Compares with the best option that has another layout of the value.
std::string ShardingReasons::compare(const ShardingEnd &end, LayoutText layoutOf) const {
  const std::vector<planner::Option> &options = shardings.problem.nodes[end.node].options;
  uint32_t chosen = choice[end.node];
  std::optional<uint32_t> next;
  double least = planner::kInfinity;
  for (uint32_t option = 0; option < options.size(); ++option) {
    double seconds = secondsOf(end.node, option);
    if (end.layouts[option] != end.layouts[chosen] && seconds < least) {
      next = option;
      least = seconds;
    }
  }
  double own = secondsOf(end.node, chosen);
  std::string text = "chosen for " + timeText(own) + " here";
  if (!next) {
    return text + ", while nothing else moves there is no other way";
  }
  bool isSlower = least >= own;
  text += "; " + layoutOf(*next) + " would take " + timeText(std::abs(least - own)) +
          (isSlower ? " more" : " less");
  double bytes = options[*next].bytes - options[chosen].bytes;
  if (bytes != 0) {
    text +=
        llvm::formatv(" and {0:F0} bytes {1} memory", std::abs(bytes), bytes > 0 ? "more" : "less")
            .str();
  }
  return text;
}

void writeReasons(ModuleOp module, const ShardingProblem &shardings, const planner::Choice &choice,
                  const PinOrigins &origins, bool hasMachine) {
  ShardingReasons reasons(module, shardings, choice, origins, hasMachine);
  auto toAttr = [&](const std::string &text) { return StringAttr::get(module.getContext(), text); };
  for (auto &[op, end] : shardings.variables) {
    op->setAttr(kWhyAttrName, toAttr(reasons.whyOf(cast<VariableOp>(op), *end)));
  }
  for (auto &[value, route] : shardings.routes) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      cast<func::FuncOp>(argument.getOwner()->getParentOp())
          .setArgAttr(argument.getArgNumber(), kWhyAttrName,
                      toAttr(reasons.whyOf(value, *route.from)));
    } else if (auto op = dyn_cast<ShardableOpInterface>(value.getDefiningOp());
               op && op->getResult(0) == value) {
      op->setAttr(kWhyAttrName, toAttr(reasons.whyOf(value, *route.from)));
    }
  }
}

} // namespace weft
