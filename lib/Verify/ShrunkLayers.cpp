//===- ShrunkLayers.cpp - the layers that stand for those of a large model -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ShrunkLayers.h"

#include "weft/Description/LayerKinds.h"

#include <algorithm>
#include <map>
#include <set>

namespace weft::verify {

std::vector<int64_t> countChunkLayers(const desc::PipelineSpec &pipeline, int64_t layers) {
  return pipeline.stages == 1 ? std::vector<int64_t>() : pipeline.layersOfChunks(layers);
}

namespace {

/// Layers of one kind in a small model without stages.
constexpr int64_t kLayersOfAKind = 2;

/// Whether a layer has experts, which `activation` entries are for it, and its kind by shardings.
using LayerKind = std::vector<int64_t>;
/// The kind of each layer.
using LayerKinds = std::vector<LayerKind>;

/// The layers of each chunk of pipeline stages.
using ChunkLayers = std::vector<std::set<int64_t>>;

LayerKinds kindsOfLayers(const desc::ModelSpec &model, const desc::PlanSpec &plan, bool byEntries) {
  LayerKinds kinds;
  const std::vector<desc::LayerKind> byShardings = desc::layerKinds(plan);
  for (int64_t layer = 0; layer < model.layers; ++layer) {
    LayerKind &kind = kinds.emplace_back();
    kind.push_back(model.hasExperts(layer));
    for (const desc::ActivationSpec &entry : plan.activations) {
      kind.push_back(byEntries && entry.layers.has(layer));
    }
    kind.push_back(byEntries ? int64_t(desc::kindOf(byShardings, layer)) : 0);
  }
  return kinds;
}

std::vector<int64_t> twoOfEachKind(const LayerKinds &kinds) {
  std::map<LayerKind, int64_t> ofKind;
  std::vector<int64_t> chosen;
  for (size_t layer = 0; layer < kinds.size(); ++layer) {
    if (++ofKind[kinds[layer]] <= kLayersOfAKind) {
      chosen.push_back(int64_t(layer));
    }
  }
  return chosen;
}

/// Returns the first layer of [begin, end), the last, and one of each kind; none of no layers.
std::set<int64_t> endsAndKinds(const LayerKinds &kinds, int64_t begin, int64_t end) {
  if (begin == end) {
    return {};
  }
  std::set<int64_t> chosen = {begin, end - 1};
  std::set<LayerKind> known = {kinds[begin], kinds[end - 1]};
  for (int64_t layer = begin; layer < end; ++layer) {
    if (known.insert(kinds[layer]).second) {
      chosen.insert(layer);
    }
  }
  return chosen;
}

/// Chooses layers of chunks of `counts` layers. Longer chunks get more layers than shorter ones.
ChunkLayers chooseOfChunks(const LayerKinds &kinds, const std::vector<int64_t> &counts) {
  ChunkLayers chosen;
  std::map<int64_t, int64_t> sizes; // Of the small chunks, by the number of layers of large ones.
  int64_t begin = 0;
  for (int64_t count : counts) {
    chosen.push_back(endsAndKinds(kinds, begin, begin + count));
    sizes[count] = std::max(sizes[count], int64_t(chosen.back().size()));
    begin += count;
  }
  int64_t before = 0;
  for (auto &[count, size] : sizes) {
    size = count == 0 ? 0 : std::max(size, before + 1);
    before = size;
  }
  for (size_t chunk = 0; chunk < counts.size(); ++chunk) {
    std::set<int64_t> &own = chosen[chunk];
    for (int64_t layer = own.empty() ? 0 : *own.begin(); int64_t(own.size()) < sizes[counts[chunk]];
         ++layer) {
      own.insert(layer);
    }
  }
  return chosen;
}

/// Returns all layers.
ChunkLayers allOfChunks(const std::vector<int64_t> &counts) {
  ChunkLayers layers(counts.size());
  int64_t next = 0;
  for (size_t chunk = 0; chunk < counts.size(); ++chunk) {
    for (int64_t i = 0; i < counts[chunk]; ++i) {
      layers[chunk].insert(next++);
    }
  }
  return layers;
}

/// Gives the small model its layers. Returns false if it cannot have experts in the same places.
bool takeLayers(const desc::ModelSpec &model, std::vector<int64_t> layers, Shrunk &small) {
  small.layers = std::move(layers);
  std::vector<int64_t> places; // Of layers with experts among the chosen ones.
  auto count = int64_t(small.layers.size());
  for (int64_t i = 0; i < count; ++i) {
    if (model.hasExperts(small.layers[i])) {
      places.push_back(i);
    }
  }
  small.model = model;
  if (!places.empty()) {
    // In the same order: plans number ops of the optimizer in the order of layers.
    desc::ExpertsSpec &experts = *small.model.experts;
    experts.firstLayer = places.front();
    experts.layerPeriod =
        places.size() > 1 ? places[1] - places[0] : std::max<int64_t>(count - places[0], 1);
  }
  small.model.layers = count;
  for (int64_t i = 0; i < count; ++i) {
    if (small.model.hasExperts(i) != model.hasExperts(small.layers[i])) {
      return false;
    }
  }
  return true;
}

bool takeChunks(const desc::ModelSpec &model, const ChunkLayers &chunks, Shrunk &small) {
  std::vector<int64_t> layers;
  small.plan.pipeline.layers.clear();
  for (const std::set<int64_t> &own : chunks) {
    layers.insert(layers.end(), own.begin(), own.end());
    small.plan.pipeline.layers.push_back(int64_t(own.size()));
  }
  return takeLayers(model, std::move(layers), small);
}

/// Gives entries the places of their layers among the chosen ones.
template <typename Entry>
void renumberLayers(std::vector<Entry> &entries, const std::vector<int64_t> &chosen) {
  std::erase_if(entries, [&](Entry &entry) {
    auto isOfEntry = [&](int64_t layer) { return entry.layers.has(layer); };
    auto first = std::find_if(chosen.begin(), chosen.end(), isOfEntry);
    auto behind = std::find_if_not(first, chosen.end(), isOfEntry);
    if (entry.layers.first) {
      entry.layers.first = first - chosen.begin();
    }
    if (entry.layers.last) {
      entry.layers.last = behind - chosen.begin() - 1;
    }
    return first == behind && !entry.layers.isOpen();
  });
}

} // namespace

void chooseLayers(const desc::ModelSpec &model, const desc::PlanSpec &plan, Shrunk &small) {
  const LayerKinds kinds = kindsOfLayers(model, plan, /*byEntries=*/true);
  const std::vector<int64_t> counts = countChunkLayers(plan.pipeline, model.layers);
  if (!counts.empty()) {
    if (!takeChunks(model, chooseOfChunks(kinds, counts), small)) {
      takeChunks(model, allOfChunks(counts), small);
    }
  } else if (!takeLayers(model, twoOfEachKind(kinds), small)) {
    takeLayers(model, twoOfEachKind(kindsOfLayers(model, plan, /*byEntries=*/false)), small);
    small.notKept.push_back(
        "which layers have which entries: of those with experts and of those without, the "
        "first two stand for all");
  }
  renumberLayers(small.plan.activations, small.layers);
  renumberLayers(small.plan.shardings, small.layers);
  renumberLayers(small.plan.homes, small.layers);
}

} // namespace weft::verify
