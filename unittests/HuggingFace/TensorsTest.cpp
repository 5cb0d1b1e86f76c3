//===- TensorsTest.cpp - tests of parameters' places in checkpoints -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/HuggingFace/Tensors.h"

#include "Configs.h"

using namespace weft::hf;
using namespace weft::hf::test;

static std::vector<Slot> slotsOf(const std::string &text, bool hasPrefix = true) {
  return parameterSlots(*parseConfig(text, "c", "n"), hasPrefix);
}

static Slot find(const std::vector<Slot> &slots, const std::string &parameter) {
  for (const Slot &slot : slots) {
    if (slot.parameter == parameter) {
      return slot;
    }
  }
  ADD_FAILURE() << parameter;
  return {};
}

/// The names of the parameters and the tensors that hold them.
static std::string namesOf(const std::vector<Slot> &slots, const std::string &infix) {
  std::string text;
  for (const Slot &slot : slots) {
    if (slot.parameter.find(infix) != std::string::npos) {
      text += slot.parameter + " " + slot.tensor + "\n";
    }
  }
  return text;
}

TEST(Tensors, NamesOfGpt2) {
  std::vector<Slot> slots = slotsOf(gpt2Text);
  EXPECT_EQ(slots.front().tensor, "transformer.wte.weight");
  EXPECT_EQ(slots.back().tensor, "transformer.ln_f.bias");
  EXPECT_EQ(namesOf(slots, "layers.1."),
            "layers.1.attention_norm.weight transformer.h.1.ln_1.weight\n"
            "layers.1.attention_norm.bias transformer.h.1.ln_1.bias\n"
            "layers.1.attention.query.weight transformer.h.1.attn.c_attn.weight\n"
            "layers.1.attention.query.bias transformer.h.1.attn.c_attn.bias\n"
            "layers.1.attention.key.weight transformer.h.1.attn.c_attn.weight\n"
            "layers.1.attention.key.bias transformer.h.1.attn.c_attn.bias\n"
            "layers.1.attention.value.weight transformer.h.1.attn.c_attn.weight\n"
            "layers.1.attention.value.bias transformer.h.1.attn.c_attn.bias\n"
            "layers.1.attention.output.weight transformer.h.1.attn.c_proj.weight\n"
            "layers.1.attention.output.bias transformer.h.1.attn.c_proj.bias\n"
            "layers.1.mlp_norm.weight transformer.h.1.ln_2.weight\n"
            "layers.1.mlp_norm.bias transformer.h.1.ln_2.bias\n"
            "layers.1.mlp.up.weight transformer.h.1.mlp.c_fc.weight\n"
            "layers.1.mlp.up.bias transformer.h.1.mlp.c_fc.bias\n"
            "layers.1.mlp.down.weight transformer.h.1.mlp.c_proj.weight\n"
            "layers.1.mlp.down.bias transformer.h.1.mlp.c_proj.bias\n");
  EXPECT_EQ(slotsOf(gpt2Text, /*hasPrefix=*/false).front().tensor, "wte.weight");
}

TEST(Tensors, NamesOfQwen3) {
  std::vector<Slot> slots = slotsOf(llamaText("qwen3", R"(, "head_dim": 16)"));
  EXPECT_EQ(slots.front().tensor, "model.embed_tokens.weight");
  EXPECT_EQ(slots.back().tensor, "lm_head.weight");
  EXPECT_EQ(namesOf(slots, "layers.0."),
            "layers.0.attention_norm.weight model.layers.0.input_layernorm.weight\n"
            "layers.0.attention.query.weight model.layers.0.self_attn.q_proj.weight\n"
            "layers.0.attention.key.weight model.layers.0.self_attn.k_proj.weight\n"
            "layers.0.attention.value.weight model.layers.0.self_attn.v_proj.weight\n"
            "layers.0.attention.query_norm.weight model.layers.0.self_attn.q_norm.weight\n"
            "layers.0.attention.key_norm.weight model.layers.0.self_attn.k_norm.weight\n"
            "layers.0.attention.output.weight model.layers.0.self_attn.o_proj.weight\n"
            "layers.0.mlp_norm.weight model.layers.0.post_attention_layernorm.weight\n"
            "layers.0.mlp.up.weight model.layers.0.mlp.up_proj.weight\n"
            "layers.0.mlp.gate.weight model.layers.0.mlp.gate_proj.weight\n"
            "layers.0.mlp.down.weight model.layers.0.mlp.down_proj.weight\n");
  // The head has no prefix in either.
  EXPECT_EQ(slotsOf(llamaText("llama"), /*hasPrefix=*/false).back().tensor, "lm_head.weight");
}

TEST(Tensors, ExpertsHaveATensorEach) {
  std::vector<Slot> slots =
      slotsOf(llamaText("mixtral", R"(, "num_local_experts": 2, "num_experts_per_tok": 2)"));
  EXPECT_EQ(namesOf(slots, "layers.1.router"),
            "layers.1.router.weight model.layers.1.block_sparse_moe.gate.weight\n");
  EXPECT_EQ(namesOf(slots, "layers.1.experts.up"),
            "layers.1.experts.up.weight model.layers.1.block_sparse_moe.experts.0.w3.weight\n"
            "layers.1.experts.up.weight model.layers.1.block_sparse_moe.experts.1.w3.weight\n");
  const Slot &last = *std::find_if(slots.rbegin(), slots.rend(), [](const Slot &slot) {
    return slot.parameter == "layers.1.experts.down.weight";
  });
  EXPECT_EQ(last.tensor, "model.layers.1.block_sparse_moe.experts.1.w2.weight");
  int64_t hidden = last.tensorShape[0], ffn = last.tensorShape[1];
  EXPECT_EQ(last.shape, (std::vector<int64_t>{2, hidden, ffn}));
  EXPECT_EQ(last.outputs, hidden);
  EXPECT_EQ(last.skippedOutputs, hidden);
  EXPECT_EQ(last.offset(), 0);
  slots = slotsOf(llamaText("qwen3_moe", R"(, "num_experts": 2, "num_experts_per_tok": 2,
                            "moe_intermediate_size": 4, "decoder_sparse_step": 2)"));
  EXPECT_EQ(namesOf(slots, "layers.0.mlp.up"),
            "layers.0.mlp.up.weight model.layers.0.mlp.up_proj.weight\n");
  EXPECT_EQ(namesOf(slots, "layers.1.experts.gate"),
            "layers.1.experts.gate.weight model.layers.1.mlp.experts.0.gate_proj.weight\n"
            "layers.1.experts.gate.weight model.layers.1.mlp.experts.1.gate_proj.weight\n");
}

TEST(Tensors, FusedAndTransposed) {
  std::vector<Slot> slots = slotsOf(gpt2Text);
  Slot value = find(slots, "layers.0.attention.value.weight");
  EXPECT_EQ(value.tensorShape, (std::vector<int64_t>{32, 96}));
  EXPECT_EQ(value.shape, (std::vector<int64_t>{4, 8, 32}));
  EXPECT_TRUE(value.isTransposed);
  EXPECT_EQ(value.outputs, 32);
  EXPECT_EQ(value.inputs, 32);
  EXPECT_EQ(value.offset(), 64);
  EXPECT_EQ(value.outputStride(), 1);
  EXPECT_EQ(value.inputStride(), 96);
  Slot bias = find(slots, "layers.0.attention.value.bias");
  EXPECT_EQ(bias.tensorShape, std::vector<int64_t>{96});
  EXPECT_EQ(bias.offset(), 64);
  EXPECT_EQ(bias.outputStride(), 1);
  Slot output = find(slots, "layers.0.attention.output.weight");
  EXPECT_EQ(output.outputs, 32);
  EXPECT_EQ(output.inputs, 32);
  EXPECT_EQ(find(slots, "layers.1.mlp.down.weight").tensorShape, (std::vector<int64_t>{128, 32}));
  // An embedding is no projection.
  EXPECT_FALSE(find(slots, "embed.tokens.weight").isTransposed);
}

TEST(Tensors, HeadsAreFlat) {
  std::vector<Slot> slots = slotsOf(llamaText("llama", R"(, "head_dim": 16)"));
  Slot query = find(slots, "layers.0.attention.query.weight");
  EXPECT_EQ(query.shape, (std::vector<int64_t>{2, 2, 16, 32}));
  EXPECT_EQ(query.tensorShape, (std::vector<int64_t>{64, 32}));
  Slot output = find(slots, "layers.0.attention.output.weight");
  EXPECT_EQ(output.shape, (std::vector<int64_t>{32, 2, 2, 16}));
  EXPECT_EQ(output.tensorShape, (std::vector<int64_t>{32, 64}));
}

TEST(Tensors, Buffers) {
  EXPECT_TRUE(isBuffer(Kind::Gpt2, "h.0.attn.bias"));
  EXPECT_TRUE(isBuffer(Kind::Gpt2, "transformer.h.0.attn.masked_bias"));
  EXPECT_FALSE(isBuffer(Kind::Gpt2, "transformer.h.0.attn.c_attn.bias"));
  EXPECT_TRUE(isBuffer(Kind::Llama, "model.layers.0.self_attn.rotary_emb.inv_freq"));
  EXPECT_FALSE(isBuffer(Kind::Llama, "model.layers.0.attn.bias"));
}
