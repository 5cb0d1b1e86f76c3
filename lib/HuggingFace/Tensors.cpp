//===- Tensors.cpp - where parameters lie in a checkpoint -----------------===//
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

/// A module's name here and there, without ".weight" or ".bias".
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

// Of experts; the star stands for the number of one.
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

/// What a module of ours is called in checkpoints of this kind.
StringRef theirName(Kind kind, StringRef module) {
  llvm::SmallVector<ModuleName> names(kind == Kind::Gpt2 ? llvm::ArrayRef(kGpt2Names)
                                                         : llvm::ArrayRef(kLlamaNames));
  llvm::append_range(names, kind == Kind::Mixtral ? llvm::ArrayRef(kMixtralNames)
                                                  : llvm::ArrayRef(kQwenExpertNames));
  return llvm::find_if(names, [&](const ModuleName &name) { return name.ours == module; })->theirs;
}

/// "layers.3.mlp" -> "layers.3." and "mlp"; nothing and the name where it is in no layer.
std::pair<StringRef, StringRef> splitLayer(StringRef name) {
  if (!name.starts_with("layers.")) {
    return {"", name};
  }
  size_t end = name.find('.', StringRef("layers.").size()) + 1;
  return {name.take_front(end), name.drop_front(end)};
}

/// The tensor that holds parameter `name`, or that of expert number `expert` if it is of experts.
std::string tensorName(Kind kind, StringRef prefix, StringRef name, int64_t expert) {
  if (name == "head.weight") {
    return kHeadName;
  }
  auto [layer, inside] = splitLayer(name);
  auto [module, part] = inside.rsplit('.');
  auto [before, after] = theirName(kind, module).split('*');
  std::string inLayer = before.str();
  if (!after.empty()) {
    inLayer += std::to_string(expert) + after.str();
  }
  // GPT-2 calls its layers "h".
  std::string theirs = kind == Kind::Gpt2 && !layer.empty()
                           ? "h." + layer.drop_front(StringRef("layers.").size()).str()
                           : layer.str();
  return (prefix + llvm::Twine(theirs) + inLayer + "." + part).str();
}

/// Experts that have a tensor each for this parameter; 1 for what is not of experts.
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

} // namespace

const char *weft::hf::namePrefix(Kind kind) {
  return kind == Kind::Gpt2 ? "transformer." : "model.";
}

std::vector<Slot> weft::hf::parameterSlots(const Config &config, bool hasPrefix) {
  StringRef prefix = hasPrefix ? namePrefix(config.kind) : "";
  std::vector<Slot> slots;
  llvm::StringMap<int64_t> outputsOf; // of tensors, so far
  for (const Parameter &parameter : modelParameters(config.model)) {
    int64_t parts = countParts(config.model, parameter);
    for (int64_t part = 0; part < parts; ++part) {
      Slot slot = makeSlot(config.model, parameter);
      slot.outputs /= parts;
      slot.skippedOutputs = part * slot.outputs;
      slot.tensor = tensorName(config.kind, prefix, parameter.name, part);
      // Embeddings and the head are no Conv1D.
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
