//===- DeepseekConfig.cpp - DeepSeek's keys of config.json ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConfigReaders.h"

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

void weft::hf::readLatentAttention(Keys &keys, Config &config) {
  desc::ModelSpec &model = config.model;
  desc::LatentSpec &latent = model.latent.emplace();
  latent.keyValueRank = keys.count("kv_lora_rank");
  // Null means that queries have no latent vector.
  latent.queryRank = keys.isNull("q_lora_rank") ? 0 : keys.count("q_lora_rank");
  latent.rotarySize = keys.count("qk_rope_head_dim");
  latent.valueSize = keys.count("v_head_dim");
  model.headSize = latent.rotarySize + keys.count("qk_nope_head_dim");
  config.rotatesNeighbours = keys.flag("rope_interleave", true);
  // Values that follow from these keys.
  keys.passOver({"q_lora_rank", "head_dim", "qk_head_dim"});
  if (double epsilon = keys.real("rms_norm_eps", 1e-6); epsilon != 1e-6) {
    keys.refuse("rms_norm_eps",
                "expected 1e-6, which the norms of latent vectors have in any case");
  }
}

void weft::hf::readDeepseekExperts(Keys &keys, desc::ModelSpec &model) {
  desc::ExpertsSpec &experts = model.experts.emplace();
  experts.count = keys.count("n_routed_experts");
  experts.perToken = keys.count("num_experts_per_tok");
  experts.ffn = keys.count("moe_intermediate_size");
  experts.sharedFfn = experts.ffn * keys.count("n_shared_experts");
  experts.firstLayer = keys.index("first_k_dense_replace", 3);
  experts.scoring = desc::ScoringKind::Sigmoid;
  experts.normalizes = keys.flag("norm_topk_prob", true);
  experts.scale = keys.real("routed_scaling_factor", 2.5);
  experts.groups = keys.count("n_group");
  experts.keptGroups = keys.count("topk_group");
  experts.selectionBias = true;
  for (auto [key, expected] :
       {std::pair("scoring_func", "sigmoid"), std::pair("topk_method", "noaux_tc")}) {
    if (std::string word = keys.word(key, StringRef(expected)); word != expected) {
      keys.refuse(key, "expected " + llvm::Twine(expected) + ", got '" + readable(word) + "'");
    }
  }
  if (int64_t period = keys.count("moe_layer_freq", 1); period != 1) {
    keys.refuse("moe_layer_freq", "expected 1, got " + llvm::Twine(period));
  }
  // The recipe decides how training balances the load. The model that transformers builds lacks the
  // layers that predict further tokens.
  keys.passOver({"ep_size", "num_nextn_predict_layers", "seq_aux", "aux_loss_alpha",
                 "output_router_logits", "router_aux_loss_coef"});
}
