//===- ExpertsConfig.cpp - keys of config.json for experts ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigReaders.h"

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

namespace {

/// Returns the number of layers with a plain MLP, which must be the first ones.
int64_t countPlainLayers(Keys &keys) {
  const llvm::json::Array *layers = keys.array("mlp_only_layers");
  int64_t count = 0;
  for (const llvm::json::Value &layer : layers ? *layers : llvm::json::Array()) {
    if (layer.getAsInteger() != count) {
      keys.refuse("mlp_only_layers",
                  "expected 0, 1, 2, ...: only the first layers may be without experts");
      break;
    }
    ++count;
  }
  return count;
}

} // namespace

void weft::hf::readExperts(Keys &keys, Kind kind, desc::ModelSpec &model) {
  desc::ExpertsSpec &experts = model.experts.emplace();
  // The recipe decides how training balances the load.
  keys.passOver({"output_router_logits", "router_aux_loss_coef"});
  // The names in Qwen3Moe before transformers 5.
  StringRef count = keys.has("num_experts") ? "num_experts" : "num_local_experts";
  experts.count = keys.count(count);
  experts.perToken = keys.count("num_experts_per_tok");
  experts.ffn = model.ffn;
  if (kind == Kind::Mixtral) {
    if (double noise = keys.real("router_jitter_noise", 0.0); noise != 0.0) {
      keys.refuse("router_jitter_noise",
                  "expected 0: noise on the input of routers is not supported");
    }
    return;
  }
  experts.ffn = keys.count("moe_intermediate_size");
  experts.normalizes = keys.flag("norm_topk_prob", false);
  experts.layerPeriod = keys.count("decoder_sparse_step", 1);
  experts.firstLayer = countPlainLayers(keys);
}
