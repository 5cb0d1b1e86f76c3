//===- Config.cpp - reads config.json as a model --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/HuggingFace/Config.h"

#include "ConfigReaders.h"

#include "llvm/ADT/StringExtras.h"

using namespace weft;
using namespace weft::hf;
using llvm::StringLiteral;
using llvm::StringRef;

namespace {

constexpr StringLiteral kKinds[] = {"gpt2",  "llama",   "mistral",   "qwen2",
                                    "qwen3", "mixtral", "qwen3_moe", "deepseek_v3"};

/// Keys without effect on training: bookkeeping, generation, and heads of other tasks.
constexpr StringLiteral kHarmless[] = {"_attn_implementation",
                                       "_attn_implementation_autoset",
                                       "_commit_hash",
                                       "_name_or_path",
                                       "_num_labels",
                                       "architectures",
                                       "attn_implementation",
                                       "bad_words_ids",
                                       "begin_suppress_tokens",
                                       "bos_token_id",
                                       "chunk_size_feed_forward",
                                       "decoder_start_token_id",
                                       "diversity_penalty",
                                       "do_sample",
                                       "dtype",
                                       "early_stopping",
                                       "encoder_no_repeat_ngram_size",
                                       "eos_token_id",
                                       "exponential_decay_length_penalty",
                                       "finetuning_task",
                                       "forced_bos_token_id",
                                       "forced_eos_token_id",
                                       "gradient_checkpointing",
                                       "id2label",
                                       "is_decoder",
                                       "label2id",
                                       "length_penalty",
                                       "max_length",
                                       "min_length",
                                       "model_type",
                                       "no_repeat_ngram_size",
                                       "num_beam_groups",
                                       "num_beams",
                                       "num_labels",
                                       "num_return_sequences",
                                       "output_attentions",
                                       "output_hidden_states",
                                       "output_past",
                                       "output_scores",
                                       "pad_token_id",
                                       "prefix",
                                       "pretraining_tp",
                                       "problem_type",
                                       "remove_invalid_values",
                                       "repetition_penalty",
                                       "return_dict",
                                       "return_dict_in_generate",
                                       "sep_token_id",
                                       "suppress_tokens",
                                       "task_specific_params",
                                       "temperature",
                                       "tf_legacy_loss",
                                       "tokenizer_class",
                                       "top_k",
                                       "top_p",
                                       "torch_dtype",
                                       "torchscript",
                                       "transformers.js_config",
                                       "transformers_version",
                                       "typical_p",
                                       "unsloth_fixed",
                                       "unsloth_version",
                                       "use_bfloat16",
                                       "use_cache",
                                       "use_return_dict",
                                       "xla_device"};

/// The key of config.json that a field of the description comes from.
struct FieldKey {
  StringLiteral field, gpt2, others;
};
constexpr FieldKey kFieldKeys[] = {
    {"layers", "n_layer", "num_hidden_layers"},
    {"hidden", "n_embd", "hidden_size"},
    {"heads", "n_head", "num_attention_heads"},
    {"kv_heads", "n_head", "num_key_value_heads"},
    {"head_size", "n_embd", "head_dim"},
    {"ffn", "n_inner", "intermediate_size"},
    {"norm_epsilon", "layer_norm_epsilon", "rms_norm_eps"},
    {"experts.experts", "", "num_local_experts"},
    {"experts.experts_per_token", "", "num_experts_per_tok"},
    {"experts.ffn", "", "moe_intermediate_size"},
    {"experts.normalize", "", "norm_topk_prob"},
    {"experts.layer_period", "", "decoder_sparse_step"},
    {"experts.first_layer", "", "mlp_only_layers"},
    {"attention_window", "", "sliding_window"},
    {"dropout", "resid_pdrop", ""},
    {"attention_dropout", "attn_pdrop", "attention_dropout"},
    {"vocabulary", "vocab_size", "vocab_size"},
    {"maximum_length", "n_positions", "max_position_embeddings"},
    {"initialization.standard_deviation", "initializer_range", "initializer_range"},
    {"experts.shared_ffn", "", "n_shared_experts"},
    {"experts.scale", "", "routed_scaling_factor"},
    {"experts.groups", "", "n_group"},
    {"experts.kept_groups", "", "topk_group"},
    {"latent_attention.key_value_rank", "", "kv_lora_rank"},
    {"latent_attention.query_rank", "", "q_lora_rank"},
    {"latent_attention.rotary_size", "", "qk_rope_head_dim"},
    {"latent_attention.value_size", "", "v_head_dim"},
    {"rotary.fast_turns", "", "beta_fast"},
    {"rotary.slow_turns", "", "beta_slow"},
    {"rotary.rotated_scale", "", "attention_factor"},
    {"rotary.score_scale", "", "mscale_all_dim"},
    {"rotary.theta", "", "rope_theta"},
    {"rotary.factor", "", "factor"},
    {"rotary.low_frequency_factor", "", "low_freq_factor"},
    {"rotary.high_frequency_factor", "", "high_freq_factor"},
    {"rotary.original_maximum_length", "", "original_max_position_embeddings"},
};

/// Returns nothing, and adds an error, if the kind is not known.
std::optional<Kind> readKind(Keys &keys, desc::Diagnostics &diagnostics) {
  std::string type = keys.word("model_type");
  auto found = llvm::find(kKinds, StringRef(type));
  if (found != std::end(kKinds)) {
    return static_cast<Kind>(found - kKinds);
  }
  if (diagnostics.empty()) {
    keys.refuse("model_type", "expected one of " + llvm::join(llvm::ArrayRef(kKinds), ", ") +
                                  ", got '" + readable(type) + "'");
  }
  return std::nullopt;
}

void readCommon(Keys &keys, desc::ModelSpec &model) {
  keys.passOver(kHarmless);
  keys.expectFlag("is_encoder_decoder", false, "only decoders are supported");
  keys.expectFlag("add_cross_attention", false, "only decoders are supported");
  keys.expectFlag("tie_encoder_decoder", false, "only decoders are supported");
  for (StringRef key : {"quantization_config", "auto_map", "cross_attention_hidden_size"}) {
    if (keys.has(key)) {
      keys.refuse(key, key == "quantization_config" ? "quantized weights are not supported"
                       : key == "auto_map" ? "models with code of their own are not supported"
                                           : "only decoders are supported");
    }
  }
  keys.passOver({"quantization_config", "auto_map", "cross_attention_hidden_size"});
  if (const llvm::json::Object *pruned = keys.nested("pruned_heads"); pruned && !pruned->empty()) {
    keys.refuse("pruned_heads", "expected no pruned heads");
  }
  model.vocabulary = keys.count("vocab_size");
  model.initialization.standardDeviation = keys.real("initializer_range", 0.02);
}

/// Checks the rules of descriptions for an imported model, and reports violations by the keys of
/// config.json.
void checkRules(Keys &keys, Kind kind, const desc::ModelSpec &model) {
  desc::Result<desc::ModelSpec> checked = desc::parseModel(desc::printModel(model));
  for (const desc::Diagnostic &broken : checked.diagnostics()) {
    StringRef key = broken.field;
    for (const FieldKey &names : kFieldKeys) {
      if (key == names.field) {
        key = kind == Kind::Gpt2 ? names.gpt2 : names.others;
        break;
      }
    }
    std::string path = keys.has("rope_scaling") ? "rope_scaling." : "rope_parameters.";
    bool isInside = StringRef(broken.field).starts_with("rotary.") && key != "rope_theta";
    keys.refuse(isInside ? path + key.str() : key.str(), broken.message);
  }
}

/// Makes a valid name for descriptions from any text.
std::string modelName(std::string name, Kind kind) {
  constexpr size_t longest = 64;
  name = name.substr(0, longest);
  for (char &c : name) {
    c = llvm::isAlnum(c) || StringRef("._-").contains(c) ? c : '-';
  }
  return name.empty() ? nameOf(kind) : name;
}

} // namespace

const char *weft::hf::nameOf(Kind kind) { return kKinds[static_cast<size_t>(kind)].data(); }

desc::Result<Config> weft::hf::parseConfig(std::string_view text, const std::string &file,
                                           const std::string &name) {
  desc::Result<llvm::json::Object> object = parseObject(text, file);
  if (!object) {
    return object.diagnostics();
  }
  desc::Diagnostics diagnostics;
  Keys keys(*object, file, "", diagnostics);
  std::optional<Kind> kind = readKind(keys, diagnostics);
  if (!kind) {
    return diagnostics;
  }
  Config config{*kind, {}};
  config.model.name = modelName(name, *kind);
  readCommon(keys, config.model);
  if (*kind == Kind::Gpt2) {
    readGpt2(keys, config.model);
  } else {
    readLlama(keys, config);
  }
  keys.refuseOthers();
  if (diagnostics.empty()) {
    checkRules(keys, *kind, config.model);
  }
  if (!diagnostics.empty()) {
    return diagnostics;
  }
  return config;
}
