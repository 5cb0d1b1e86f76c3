//===- ConfigReaders.h - readers of config.json, one for each kind of model -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_LIB_HUGGINGFACE_CONFIGREADERS_H
#define WEFT_LIB_HUGGINGFACE_CONFIGREADERS_H

#include "Json.h"
#include "weft/HuggingFace/Config.h"

namespace weft::hf {

// Each function reads the keys that only its kinds of models have, and fills in all fields of the
// model that depend on them.

void readGpt2(Keys &keys, desc::ModelSpec &model);

/// Llama, Mistral, Qwen2 and Qwen3, and of these with experts Mixtral, Qwen3Moe and DeepseekV3.
void readLlama(Keys &keys, Config &config);

/// DeepseekV3's keys for the sizes of its latent attention, and for its experts.
void readLatentAttention(Keys &keys, Config &config);
void readDeepseekExperts(Keys &keys, desc::ModelSpec &model);

/// The keys that Mixtral and Qwen3Moe have for experts.
void readExperts(Keys &keys, Kind kind, desc::ModelSpec &model);

} // namespace weft::hf

#endif // WEFT_LIB_HUGGINGFACE_CONFIGREADERS_H
