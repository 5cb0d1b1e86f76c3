//===- Latent.cpp - latent attention in a model's description -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Latent.h"

#include "Text.h"

namespace weft::desc::detail {

/// Checks model_r29: the features that latent attention excludes.
static void checkRest(const proto::Model &model, Fields &fields) {
  auto expect = [&](const char *field, bool isRight, const char *expected) {
    if (!isRight) {
      fields.error(field, "model_r29",
                   std::string("expected ") + expected + " with latent_attention");
    }
  };
  expect("positions", model.positions() == proto::Model::ROTARY, "ROTARY");
  expect("norm", model.norm() == proto::Model::RMS_NORM, "RMS_NORM");
  expect("kv_heads", !model.has_kv_heads() || model.kv_heads() == model.heads(),
         "as many as heads");
  expect("attention_biases", !model.attention_biases(), "false");
  expect("attention_output_bias", !model.attention_output_bias(), "false");
  expect("query_key_norm", !model.query_key_norm(), "false");
}

void checkLatent(const proto::Model &model, Fields &fields) {
  Fields latent = fields.nested("latent_attention");
  // model_r27
  latent.required("model_r27", {"key_value_rank", "rotary_size"});
  latent.integer("key_value_rank", "model_r27", 1, 1 << 17);
  latent.integer("query_rank", "model_r27", 1, 1 << 17);
  latent.integer("value_size", "model_r27", 1, 1 << 12);
  int64_t headSize = model.has_head_size() ? model.head_size()
                     : model.heads() > 0   ? model.hidden() / model.heads()
                                           : 0;
  int64_t size = model.latent_attention().rotary_size();
  // model_r28
  if (latent.has("rotary_size") && (size < 2 || size % 2 != 0 || size >= headSize)) {
    latent.error("rotary_size", "model_r28",
                 "expected an even number from 2 to less than the head size " + text(headSize) +
                     ", got " + text(size));
  }
  checkRest(model, fields);
}

LatentSpec resolveLatent(const proto::LatentAttention &latent, int64_t headSize) {
  LatentSpec spec;
  spec.keyValueRank = latent.key_value_rank();
  spec.queryRank = latent.query_rank();
  spec.rotarySize = latent.rotary_size();
  spec.valueSize = latent.has_value_size() ? latent.value_size() : headSize - latent.rotary_size();
  return spec;
}

} // namespace weft::desc::detail
