//===- LayerLabels.h - which layer a call is a use of -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PIPELINE_LAYERLABELS_H
#define WEFT_PIPELINE_LAYERLABELS_H

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <optional>

namespace weft {

/// What follows the label of a layer's call in the label of the call of its derivative.
inline constexpr llvm::StringLiteral kBackwardSuffix = " backward";

/// Returns N for the label "layers.N", else nothing.
inline std::optional<int64_t> layerOfLabel(llvm::StringRef label) {
  int64_t number = 0;
  bool isLayer = label.consume_front("layers.") && !label.getAsInteger(10, number) && number >= 0;
  return isLayer ? std::optional<int64_t>(number) : std::nullopt;
}

/// Returns N for the label of a call that belongs to layer N: "layers.N", "layers.N backward" or
/// "layers.N update".
inline std::optional<int64_t> layerOfCallLabel(llvm::StringRef label) {
  return layerOfLabel(label.split(' ').first);
}

} // namespace weft

#endif // WEFT_PIPELINE_LAYERLABELS_H
