//===- LayerRuns.h - layers that have the same entries of a plan ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_LAYERRUNS_H
#define WEFT_DESCRIPTION_LAYERRUNS_H

#include "weft/Description/Plan.h"

#include <string>
#include <vector>

namespace weft::desc {

/// Returns the layers between `borders`, which are those of layerBorders: the first run from layer
/// 0 on, and the last one without an end. Without borders, one run has all layers.
inline std::vector<LayerRange> runsBetween(const std::vector<int64_t> &borders) {
  std::vector<LayerRange> runs = {{0, std::nullopt}};
  for (int64_t border : borders) {
    runs.back().last = border - 1;
    runs.push_back({border, std::nullopt});
  }
  return runs;
}

/// Returns "layer 4", "layers 4 to 7", "layers from 4" or "layers to 7". REQUIRES: the range is not
/// open.
inline std::string wordsOf(const LayerRange &layers) {
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

#endif // WEFT_DESCRIPTION_LAYERRUNS_H
