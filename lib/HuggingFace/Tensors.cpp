//===- Tensors.cpp - the tensors of parameters in a checkpoint ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/HuggingFace/Tensors.h"

#include "weft/Pipeline/Import/Parameters.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/Twine.h"

using namespace weft;
using namespace weft::hf;
using llvm::StringRef;

namespace {

/// A module's names in Weft and in checkpoints, without ".weight" or ".bias".
struct ModuleName {
  StringRef ours, theirs;
};

constexpr ModuleName kGpt2Names[] = {
    {"embed.tokens", "wte"},
    {"embed.positions", "wpe"},
    {"final_norm", "ln_f"},
    {"attention_norm", "ln_1"},
    {"attention.query", "attn.c_attn"},
    {"attention.key", "attn.c_attn"},
    {"attention.value", "attn.c_attn"},
    {"attention.output", "attn.c_proj"},
    {"mlp_norm", "ln_2"},
    {"mlp.up", "mlp.c_fc"},
    {"mlp.down", "mlp.c_proj"},
};

constexpr ModuleName kLlamaNames[] = {
    {"embed.tokens", "embed_tokens"},
    {"final_norm", "norm"},
    {"attention_norm", "input_layernorm"},
    {"attention.query", "self_attn.q_proj"},
    {"attention.key", "self_attn.k_proj"},
    {"attention.value", "self_attn.v_proj"},
    {"attention.query_norm", "self_attn.q_norm"},
    {"attention.key_norm", "self_attn.k_norm"},
    {"attention.output", "self_attn.o_proj"},
    {"mlp_norm", "post_attention_layernorm"},
    {"mlp.up", "mlp.up_proj"},
    {"mlp.gate", "mlp.gate_proj"},
    {"mlp.down", "mlp.down_proj"},
};

// Modules of experts; the star stands for the expert's number.
constexpr ModuleName kMixtralNames[] = {
    {"router", "block_sparse_moe.gate"},
    {"experts.up", "block_sparse_moe.experts.*.w3"},
    {"experts.gate", "block_sparse_moe.experts.*.w1"},
    {"experts.down", "block_sparse_moe.experts.*.w2"},
};

constexpr ModuleName kQwenExpertNames[] = {
    {"router", "mlp.gate"},
    {"experts.up", "mlp.experts.*.up_proj"},
    {"experts.gate", "mlp.experts.*.gate_proj"},
    {"experts.down", "mlp.experts.*.down_proj"},
};

// Modules that differ from Llama. The keys and values of a head are rows of one tensor.
constexpr ModuleName kDeepseekNames[] = {
    {"attention.query_latent", "self_attn.q_a_proj"},
    {"attention.query_latent_norm", "self_attn.q_a_layernorm"},
    {"attention.latent", "self_attn.kv_a_proj_with_mqa"},
    {"attention.latent_norm", "self_attn.kv_a_layernorm"},
    {"attention.key_rotary", "self_attn.kv_a_proj_with_mqa"},
    {"attention.key", "self_attn.kv_b_proj"},
    {"attention.value", "self_attn.kv_b_proj"},
    {"shared.up", "mlp.shared_experts.up_proj"},
    {"shared.gate", "mlp.shared_experts.gate_proj"},
    {"shared.down", "mlp.shared_experts.down_proj"},
};

/// Returns the name of a module in checkpoints of this kind.
StringRef theirName(const Config &config, StringRef module) {
  Kind kind = config.kind;
  if (module == "attention.query" && config.model.latent && config.model.latent->queryRank > 0) {
    return "self_attn.q_b_proj";
  }
  llvm::SmallVector<ModuleName> names;
  if (kind == Kind::DeepseekV3) {
    llvm::append_range(names, kDeepseekNames);
  }
  llvm::append_range(names,
                     kind == Kind::Gpt2 ? llvm::ArrayRef(kGpt2Names) : llvm::ArrayRef(kLlamaNames));
  llvm::append_range(names, kind == Kind::Mixtral ? llvm::ArrayRef(kMixtralNames)
                                                  : llvm::ArrayRef(kQwenExpertNames));
  return llvm::find_if(names, [&](const ModuleName &name) { return name.ours == module; })->theirs;
}

/// Splits "layers.3.mlp" into "layers.3." and "mlp", and a name outside of layers into "" and the
/// name.
std::pair<StringRef, StringRef> splitLayer(StringRef name) {
  if (!name.starts_with("layers.")) {
    return {"", name};
  }
  size_t end = name.find('.', StringRef("layers.").size()) + 1;
  return {name.take_front(end), name.drop_front(end)};
}

/// Returns the tensor of parameter `name`, or, for a parameter of experts, that of expert number
/// `expert`.
std::string tensorName(const Config &config, StringRef prefix, StringRef name, int64_t expert) {
  if (name == "head.weight") {
    return kHeadName;
  }
  auto [layer, inside] = splitLayer(name);
  if (inside == "router.bias") {
    return (prefix + layer + "mlp.gate.e_score_correction_bias").str();
  }
  auto [module, part] = inside.rsplit('.');
  auto [before, after] = theirName(config, module).split('*');
  std::string inLayer = before.str();
  if (!after.empty()) {
    inLayer += std::to_string(expert) + after.str();
  }
  // GPT-2 calls its layers "h".
  std::string theirs = config.kind == Kind::Gpt2 && !layer.empty()
                           ? "h." + layer.drop_front(StringRef("layers.").size()).str()
                           : layer.str();
  return (prefix + llvm::Twine(theirs) + inLayer + "." + part).str();
}

/// Returns the number of experts that have a tensor each for this parameter; 1 for other
/// parameters.
int64_t countParts(const desc::ModelSpec &model, const Parameter &parameter) {
  bool isOfExperts = splitLayer(parameter.name).second.starts_with("experts.");
  return isOfExperts ? model.experts->count : 1;
}

/// Splits the parameter's dimensions into those of outputs and of inputs.
Slot makeSlot(const desc::ModelSpec &model, const Parameter &parameter) {
  Slot slot;
  slot.parameter = parameter.name;
  slot.outputs = slot.inputs = 1;
  // Only the attention output sums over several dimensions: all but its first.
  bool sumsOverHeads = StringRef(parameter.name).ends_with("attention.output.weight");
  slot.isVector = !parameter.decays();
  size_t rank = parameter.dimensions.size();
  llvm::SmallVector<int64_t> shape = parameterShape(model, parameter);
  size_t outputs = slot.isVector ? rank : sumsOverHeads ? 1 : rank - 1;
  for (size_t i = 0; i < rank; ++i) {
    slot.shape.push_back(shape[i]);
    (i < outputs ? slot.outputs : slot.inputs) *= slot.shape.back();
  }
  return slot;
}

/// Rows of a tensor that follow one another in a parameter.
struct Rows {
  int64_t first, count, step = 1;
};

/// Adds `count` rows that are rotated, of which a parameter has the first of all pairs before the
/// second ones.
void addRotated(const Config &config, int64_t first, int64_t count, std::vector<Rows> &rows) {
  if (config.rotatesNeighbours) {
    rows.push_back({first, count / 2, 2});
    rows.push_back({first + 1, count / 2, 2});
  } else {
    rows.push_back({first, count});
  }
}

/// For a projection of latent attention whose rows have another order in the checkpoint, returns
/// their places there, in the parameter's order. Empty for all other parameters.
std::vector<Rows> rowsOf(const Config &config, StringRef name) {
  if (!config.model.latent || !name.consume_front("attention.")) {
    return {};
  }
  const desc::LatentSpec &latent = *config.model.latent;
  int64_t plain = config.model.headSize - latent.rotarySize;
  std::vector<Rows> rows;
  if (name == "latent.weight") {
    rows.push_back({0, latent.keyValueRank});
  } else if (name == "key_rotary.weight") {
    addRotated(config, latent.keyValueRank, latent.rotarySize, rows);
  }
  for (int64_t head = 0; head < config.model.heads; ++head) {
    int64_t first = head * (plain + latent.valueSize);
    if (name == "query.weight") {
      // Here the rotated elements of a head are the last.
      addRotated(config, head * config.model.headSize + plain, latent.rotarySize, rows);
      rows.push_back({head * config.model.headSize, plain});
    } else if (name == "key.weight") {
      rows.push_back({first, plain});
    } else if (name == "value.weight") {
      rows.push_back({first + plain, latent.valueSize});
    }
  }
  return rows;
}

} // namespace

const char *weft::hf::namePrefix(Kind kind) {
  return kind == Kind::Gpt2 ? "transformer." : "model.";
}

std::vector<Slot> weft::hf::parameterSlots(const Config &config, bool hasPrefix) {
  StringRef prefix = hasPrefix ? namePrefix(config.kind) : "";
  std::vector<Slot> slots;
  llvm::StringMap<int64_t> outputsOf; // of tensors, so far
  for (const Parameter &parameter : modelParameters(config.model)) {
    if (std::vector<Rows> rows = rowsOf(config, splitLayer(parameter.name).second); !rows.empty()) {
      int64_t skipped = 0;
      for (const Rows &some : rows) {
        Slot slot = makeSlot(config.model, parameter);
        slot.outputs = some.count;
        slot.skippedOutputs = skipped;
        slot.tensor = tensorName(config, prefix, parameter.name, 0);
        slot.firstOutput = some.first;
        slot.outputStep = some.step;
        skipped += some.count;
        outputsOf[slot.tensor] += some.count;
        slots.push_back(std::move(slot));
      }
      continue;
    }
    int64_t parts = countParts(config.model, parameter);
    for (int64_t part = 0; part < parts; ++part) {
      Slot slot = makeSlot(config.model, parameter);
      slot.outputs /= parts;
      slot.skippedOutputs = part * slot.outputs;
      slot.tensor = tensorName(config, prefix, parameter.name, part);
      // Embeddings and the head are not Conv1D.
      bool isProjection = !slot.isVector && !splitLayer(parameter.name).first.empty();
      slot.isTransposed = config.kind == Kind::Gpt2 && isProjection;
      slot.firstOutput = outputsOf[slot.tensor];
      outputsOf[slot.tensor] += slot.outputs;
      slots.push_back(std::move(slot));
    }
  }
  for (Slot &slot : slots) {
    int64_t outputs = outputsOf[slot.tensor];
    slot.tensorShape = slot.isVector       ? std::vector<int64_t>{outputs}
                       : slot.isTransposed ? std::vector<int64_t>{slot.inputs, outputs}
                                           : std::vector<int64_t>{outputs, slot.inputs};
  }
  return slots;
}

bool weft::hf::isBuffer(Kind kind, std::string_view tensor) {
  StringRef name = tensor;
  if (kind == Kind::Gpt2) {
    return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias");
  }
  return name.ends_with(".rotary_emb.inv_freq");
}
