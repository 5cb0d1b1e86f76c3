//===- Config.h - reads config.json as a model ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads the description of a model from a checkpoint folder of Hugging Face transformers. Every key
// of config.json is either used, known to have no effect on training, or refused by name:
// docs/HuggingFace.md lists them.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_HUGGINGFACE_CONFIG_H
#define WEFT_HUGGINGFACE_CONFIG_H

#include "weft/Description/Model.h"

namespace weft::hf {

/// The value of model_type.
enum class Kind { Gpt2, Llama, Mistral, Qwen2, Qwen3, Mixtral, Qwen3Moe, DeepseekV3 };

/// "gpt2", "llama", ...
const char *nameOf(Kind kind);

struct Config {
  Kind kind = Kind::Llama;
  desc::ModelSpec model;
  /// True if rotated pairs of elements are neighbours in the checkpoint; in Weft's parameters they
  /// are half a head apart.
  bool rotatesNeighbours = false;
};

/// Reads the text of a config.json. The model's name is made from `name`, which may be any text;
/// `file` is only for diagnostics. Fails if the text is not JSON, a key is missing, unknown or of
/// the wrong type, or its value asks for an unsupported model, and then lists all errors.
desc::Result<Config> parseConfig(std::string_view text, const std::string &file,
                                 const std::string &name);

} // namespace weft::hf

#endif // WEFT_HUGGINGFACE_CONFIG_H
