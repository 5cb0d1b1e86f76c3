//===- HuggingFaceConfigs.cpp - config.json of transformers ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "weft/HuggingFace/Tensors.h"

using namespace weft;

/// Each layer has parameters of its own, and many are as one.
static constexpr int64_t kMostLayers = 64;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  desc::Result<hf::Config> config = hf::parseConfig(text, "config.json", "name of a folder");
  require(bool(config) == config.diagnostics().empty(), "either a result or a reason");
  for (const desc::Diagnostic &diagnostic : config.diagnostics()) {
    require(!diagnostic.message.empty(), "what is refused is explained");
    require(diagnostic.str().find('\n') == std::string::npos, "in one line");
  }
  if (!config) {
    return 0;
  }
  require(bool(desc::parseModel(desc::printModel(config->model))),
          "what is imported is a description that can be read");
  if (config->model.layers <= kMostLayers) {
    for (const hf::Slot &slot : hf::parameterSlots(*config, /*hasPrefix=*/true)) {
      require(slot.outputs > 0 && slot.inputs > 0, "parameters have elements");
    }
  }
  return 0;
}
