//===- ValueExplainer.cpp - what a search says of one value ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ValueExplainer.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace weft {

std::vector<ValueExplainer::Candidate> ValueExplainer::candidates(const OpNames &names) {
  std::vector<Candidate> all;
  for (auto &[op, end] : shardings.variables) {
    auto variable = cast<VariableOp>(op);
    all.push_back({variable.getSymName().str(), variable, nullptr, end});
  }
  module.walk([&](ShardableOpInterface op) {
    if (op->getNumResults() == 0) {
      return;
    }
    auto route = shardings.routes.find(op->getResult(0));
    if (route != shardings.routes.end()) {
      all.push_back({nameOf(op, names), nullptr, op->getResult(0), route->second.from});
    }
  });
  return all;
}

/// Ops of layers with functions of their own have the names of the first of these layers.
std::string ValueExplainer::nameOf(Operation *op, const OpNames &names) const {
  std::optional<int64_t> layer = names.layersOf(op).first;
  const bool isOneOfSeveral = layer && op->getParentOfType<func::FuncOp>().isPrivate() &&
                              module->hasAttr(kLayerBordersAttrName);
  return (isOneOfSeveral ? "layers." + std::to_string(*layer) + "." : "") + names.nameOf(op).str();
}

/// Returns the name after that of a called layer; empty if there is no such layer.
static std::string withoutLayer(ModuleOp module, const std::string &name) {
  std::string rest;
  module.walk([&](CallOp call) {
    std::string prefix = call.getLabel().str() + ".";
    if (StringRef(name).starts_with(prefix)) {
      rest = name.substr(prefix.size());
    }
  });
  return rest;
}

bool ValueExplainer::matches(const Candidate &candidate, const OpNames &names) const {
  auto fits = [&](const std::string &pattern) {
    return candidate.variable ? desc::matchesPattern(pattern, candidate.name)
                              : names.matches(pattern, candidate.value.getDefiningOp());
  };
  if (candidate.variable || fits(question.name)) {
    return fits(question.name);
  }
  std::string inLayer = withoutLayer(module, question.name);
  std::optional<int64_t> layer = desc::layerOfName(question.name);
  const OpLayers layers = names.layersOf(candidate.value.getDefiningOp());
  return !inLayer.empty() && fits(inLayer) && (!layer || layers.have(*layer));
}

LogicalResult ValueExplainer::find() {
  OpNames names(module);
  std::vector<Candidate> all = candidates(names), fitting;
  llvm::copy_if(all, std::back_inserter(fitting),
                [&](const Candidate &one) { return matches(one, names); });
  // Ops that read a parameter, such as casts, have its name too.
  if (llvm::any_of(fitting, [](const Candidate &one) { return bool(one.variable); })) {
    llvm::erase_if(fitting, [](const Candidate &one) { return !one.variable; });
  }
  auto isDecidedWith = [&](const Candidate &one) {
    return one.end->number == fitting.front().end->number;
  };
  if (fitting.empty() || !llvm::all_of(fitting, isDecidedWith)) {
    answer.isAmbiguous = !fitting.empty();
    for (const Candidate &one : fitting.empty() ? all : fitting) {
      answer.names.push_back(one.name);
    }
    return failure();
  }
  asked = fitting.front();
  answer.together = size_t(llvm::count_if(all, isDecidedWith)) - 1;
  llvm::raw_string_ostream text(answer.value);
  if (asked.variable) {
    text << asked.variable.getRole() << " " << asked.name << ", " << asked.variable.getTensorType();
  } else {
    text << asked.name << ", " << asked.value.getType();
  }
  return success();
}

std::string ValueExplainer::layoutOf(ShardingReasons &reasons, uint32_t option) {
  return asked.variable ? reasons.layoutOf(asked.variable, *asked.end, option)
                        : reasons.layoutOf(asked.value, *asked.end, option);
}

LayoutPrice ValueExplainer::price(const ShardingChoice &found, std::string layout,
                                  ReshardTables &tables) {
  planner::Evaluation evaluation = planner::evaluate(shardings.problem, found.choice);
  double seconds = evaluation.seconds - sparedSeconds(shardings, found.choice, tables.prices);
  return {std::move(layout), seconds, evaluation.bytes, found.solution.found()};
}

void ValueExplainer::explain(const ShardingChoice &found, ReshardTables &tables,
                             const PinOrigins &origins) {
  ShardingReasons reasons(module, shardings, found.choice, origins, tables.machine != nullptr);
  const ShardingEnd &end = *asked.end;
  answer.why =
      asked.variable ? reasons.whyOf(asked.variable, end) : reasons.whyOf(asked.value, end);
  uint32_t chosen = found.choice[end.node];
  answer.chosen = price(found, layoutOf(reasons, chosen), tables);
  // All options of one layout are one way.
  struct Alternative {
    double seconds = planner::kInfinity;
    SmallVector<uint32_t> options;
  };
  llvm::MapVector<uint32_t, Alternative> ways;
  for (auto [option, layout] : llvm::enumerate(end.layouts)) {
    Alternative &way = ways[layout];
    way.options.push_back(uint32_t(option));
    way.seconds = std::min(way.seconds, reasons.secondsOf(end.node, uint32_t(option)));
  }
  answer.ways = ways.size();
  ways.erase(end.layouts[chosen]);
  SmallVector<Alternative> others;
  for (auto &[layout, way] : ways) {
    others.push_back(std::move(way));
  }
  llvm::sort(others, [](const Alternative &a, const Alternative &b) {
    return std::pair(a.seconds, a.options) < std::pair(b.seconds, b.options);
  });
  others.truncate(std::min(others.size(), question.most));
  for (auto [number, way] : llvm::enumerate(others)) {
    if (question.progress) {
      question.progress(number + 1, others.size());
    }
    ShardingChoice other = chooseShardingsWith(shardings, end.node, way.options);
    if (!other.choice.empty()) {
      answer.others.push_back(price(other, layoutOf(reasons, way.options.front()), tables));
    }
  }
  auto keyOf = [](const LayoutPrice &price) {
    return std::tuple(!price.fits, price.seconds, price.layout);
  };
  llvm::sort(answer.others,
             [&](const LayoutPrice &a, const LayoutPrice &b) { return keyOf(a) < keyOf(b); });
}

} // namespace weft
