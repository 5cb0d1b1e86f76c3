//===- Config.h - config.json as a model ----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a checkpoint folder of Hugging Face transformers says of its model. Every
// key of config.json is either used, known to have no effect on training, or
// refused by name: docs/HuggingFace.md lists them.
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
  /// Pairs of elements that are rotated are neighbours in the checkpoint, not a half apart as in
  /// our parameters.
  bool rotatesNeighbours = false;
};

/// Reads the text of a config.json. `name` is any text to make the model's name of; `file` is only
/// for diagnostics. Fails where the text is no JSON, a key is missing, unknown or of the wrong
/// type, or where its value asks for a model that we do not have; then lists everything that is
/// wrong.
desc::Result<Config> parseConfig(std::string_view text, const std::string &file,
                                 const std::string &name);

} // namespace weft::hf

#endif // WEFT_HUGGINGFACE_CONFIG_H
