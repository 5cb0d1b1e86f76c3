//===- LayerKinds.cpp - layers that have the same entries of a plan ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/LayerKinds.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace weft::desc {

/// What an entry says, without its layers: first whether it is a home.
using Saying = std::tuple<bool, std::string, std::string, std::vector<std::string>, int64_t>;

/// Returns what all entries for `layer` say, in their order.
static std::vector<Saying> sayingsOf(const PlanSpec &plan, int64_t layer) {
  std::vector<Saying> sayings;
  for (const std::vector<ShardingSpec> *entries : {&plan.shardings, &plan.homes}) {
    for (const ShardingSpec &entry : *entries) {
      if (entry.layers.has(layer)) {
        sayings.emplace_back(entries == &plan.homes, entry.value, entry.dimension, entry.axes,
                             entry.priority);
      }
    }
  }
  return sayings;
}

std::vector<LayerKind> layerKinds(const PlanSpec &plan) {
  std::vector<std::vector<int64_t>> firstLayers;
  std::map<std::vector<Saying>, size_t> numbers;
  std::vector<int64_t> borders = layerBorders(plan);
  borders.insert(borders.begin(), 0);
  for (size_t before = 0; int64_t border : borders) {
    auto [known, isNew] = numbers.try_emplace(sayingsOf(plan, border), firstLayers.size());
    if (isNew) {
      firstLayers.emplace_back();
    }
    if (isNew || known->second != before) {
      firstLayers[known->second].push_back(border);
    }
    before = known->second;
  }
  return kindsFrom(firstLayers);
}

size_t kindOf(const std::vector<LayerKind> &kinds, int64_t layer) {
  auto found = std::find_if(kinds.begin(), kinds.end(), [&](const LayerKind &kind) {
    return std::any_of(kind.begin(), kind.end(),
                       [&](const LayerRange &run) { return run.has(layer); });
  });
  return size_t(found - kinds.begin());
}

std::vector<std::vector<int64_t>> firstLayersOf(const std::vector<LayerKind> &kinds, int64_t last) {
  std::vector<std::vector<int64_t>> firstLayers;
  for (const LayerKind &kind : kinds) {
    std::vector<int64_t> own;
    for (const LayerRange &run : kind) {
      if (*run.first <= last) {
        own.push_back(*run.first);
      }
    }
    if (!own.empty()) {
      firstLayers.push_back(std::move(own));
    }
  }
  return firstLayers;
}

std::vector<LayerKind> kindsFrom(const std::vector<std::vector<int64_t>> &firstLayers) {
  std::vector<int64_t> all;
  for (const std::vector<int64_t> &own : firstLayers) {
    all.insert(all.end(), own.begin(), own.end());
  }
  std::sort(all.begin(), all.end());
  std::vector<LayerKind> kinds;
  for (const std::vector<int64_t> &own : firstLayers) {
    LayerKind &kind = kinds.emplace_back();
    for (int64_t first : own) {
      auto next = std::upper_bound(all.begin(), all.end(), first);
      kind.push_back({first, next == all.end() ? std::nullopt : std::optional(*next - 1)});
    }
  }
  return kinds;
}

std::string wordsOf(const LayerRange &layers) {
  if (layers.first && layers.first == layers.last) {
    return "layer " + std::to_string(*layers.first);
  }
  std::string text = "layers";
  if (layers.first) {
    text += (layers.last ? " " : " from ") + std::to_string(*layers.first);
  }
  return text + (layers.last ? " to " + std::to_string(*layers.last) : "");
}

} // namespace weft::desc
