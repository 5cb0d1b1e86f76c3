//===- StageLayers.h - equal pipeline stages -------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_STAGELAYERS_H
#define WEFT_DESCRIPTION_STAGELAYERS_H

#include <cstdint>
#include <vector>

namespace weft::desc {

/// Returns the number of layers of each of `stages` stages that are as equal as possible: the first
/// ones have one more where `layers` do not divide. REQUIRES: there is a stage.
inline std::vector<int64_t> splitLayers(int64_t layers, int64_t stages) {
  std::vector<int64_t> counts;
  for (int64_t stage = 0; stage < stages; ++stage) {
    counts.push_back(layers / stages + (stage < layers % stages ? 1 : 0));
  }
  return counts;
}

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_STAGELAYERS_H
