//===- Configs.h - configs that tests start from --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_UNITTESTS_HUGGINGFACE_CONFIGS_H
#define WEFT_UNITTESTS_HUGGINGFACE_CONFIGS_H

#include "weft/HuggingFace/Config.h"

#include <gtest/gtest.h>

namespace weft::hf::test {

inline const std::string gpt2Text = R"({
  "model_type": "gpt2",
  "n_layer": 2,
  "n_embd": 32,
  "n_head": 4,
  "n_positions": 64,
  "vocab_size": 300
})";

/// Returns a config with the keys that Llama and similar models need; `more` begins with a comma,
/// or is empty.
inline std::string llamaText(const std::string &type, const std::string &more = "") {
  return R"({"model_type": ")" + type + R"(", "num_hidden_layers": 2, "hidden_size": 32,
    "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
    "max_position_embeddings": 64, "vocab_size": 300)" +
         more + "}";
}

/// Returns `text` with the first `from` replaced by `to`; fails the test if there is none.
inline std::string with(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

} // namespace weft::hf::test

#endif // WEFT_UNITTESTS_HUGGINGFACE_CONFIGS_H
