//===- LayerKinds.h - layers that have the same entries of a plan -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_LAYERKINDS_H
#define WEFT_DESCRIPTION_LAYERKINDS_H

#include "weft/Description/Plan.h"

#include <string>
#include <vector>

namespace weft::desc {

/// Runs of consecutive layers, ascending, for which the same entries hold. The last run of all
/// kinds has no end.
using LayerKind = std::vector<LayerRange>;

/// Returns the kinds of layers by the shardings and homes of `plan`, whatever layers these entries
/// give, in the order of their first layers.
std::vector<LayerKind> layerKinds(const PlanSpec &plan);

/// Returns the number of the kind that has `layer`.
size_t kindOf(const std::vector<LayerKind> &kinds, int64_t layer);

/// Returns the first layers of the runs of each kind, up to `last`, and the kinds of these.
/// REQUIRES: of the latter, the first layers are some of a layerKinds.
std::vector<std::vector<int64_t>> firstLayersOf(const std::vector<LayerKind> &kinds, int64_t last);
std::vector<LayerKind> kindsFrom(const std::vector<std::vector<int64_t>> &firstLayers);

/// Returns "layer 4", "layers 4 to 7", "layers from 4" or "layers to 7". REQUIRES: the range is not
/// open.
std::string wordsOf(const LayerRange &layers);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_LAYERKINDS_H
