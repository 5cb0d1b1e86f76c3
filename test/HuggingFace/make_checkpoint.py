#!/usr/bin/python3
#===- make_checkpoint.py - small checkpoints of transformers, and broken ones --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Writes a checkpoint folder as `save_pretrained` of transformers does, with random weights.

    make_checkpoint.py KIND FOLDER [--dtype BF16] [--files 3] [--set KEY=JSON]... [--unset KEY]...
        [--rename OLD=NEW]... [--shape NAME=2,3] [--no-weights] [--no-prefix] [--repeat-head] [--zeros]

The names and shapes are written here from transformers' own, not from the compiler's table.
"""

import argparse
import json
import math
import random
import struct
from pathlib import Path

CONFIGS = {
    "gpt2": dict(activation_function="gelu_new", attn_pdrop=0.1, embd_pdrop=0.1, resid_pdrop=0.1,
                 initializer_range=0.02, layer_norm_epsilon=1e-5, n_embd=8, n_head=2, n_inner=None,
                 n_layer=2, n_positions=16, reorder_and_upcast_attn=False,
                 scale_attn_by_inverse_layer_idx=False, scale_attn_weights=True,
                 summary_type="cls_index", tie_word_embeddings=True, vocab_size=32),
    "llama": dict(attention_bias=False, attention_dropout=0.0, head_dim=4, hidden_act="silu",
                  hidden_size=8, initializer_range=0.02, intermediate_size=12,
                  max_position_embeddings=64, mlp_bias=False, num_attention_heads=4,
                  num_hidden_layers=2, num_key_value_heads=2, pretraining_tp=1, rms_norm_eps=1e-6,
                  rope_scaling=None, rope_theta=500000.0, tie_word_embeddings=False, vocab_size=32),
}
CONFIGS["mistral"] = {key: value for key, value in CONFIGS["llama"].items()
                      if key not in ("attention_bias", "mlp_bias", "pretraining_tp",
                                     "rope_scaling")} | dict(sliding_window=5)
CONFIGS["qwen3"] = {key: value for key, value in CONFIGS["llama"].items()
                    if key not in ("mlp_bias", "pretraining_tp")} | dict(
                        sliding_window=4096, use_sliding_window=False, max_window_layers=28)
CONFIGS["qwen2"] = {key: value for key, value in CONFIGS["qwen3"].items()
                    if key != "attention_bias"}
CONFIGS["mixtral"] = CONFIGS["mistral"] | dict(
    num_local_experts=3, num_experts_per_tok=2, router_jitter_noise=0.0, router_aux_loss_coef=0.02,
    output_router_logits=False)
CONFIGS["qwen3_moe"] = {key: value for key, value in CONFIGS["qwen3"].items()} | dict(
    num_experts=4, num_experts_per_tok=2, moe_intermediate_size=6, norm_topk_prob=True,
    decoder_sparse_step=2, mlp_only_layers=[], router_aux_loss_coef=0.001,
    output_router_logits=False)


def shapes(kind, config):
    """The shape of every tensor, by name."""
    return gpt2_shapes(config) if kind == "gpt2" else llama_shapes(kind, config)


def gpt2_shapes(config):
    n, inner = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    found = {"transformer.wte.weight": [config["vocab_size"], n],
             "transformer.wpe.weight": [config["n_positions"], n]}
    for layer in range(config["n_layer"]):
        # Conv1D: [inputs, outputs].
        for name, inputs, outputs in (("attn.c_attn", n, 3 * n), ("attn.c_proj", n, n),
                                      ("mlp.c_fc", n, inner), ("mlp.c_proj", inner, n)):
            found[f"transformer.h.{layer}.{name}.weight"] = [inputs, outputs]
            found[f"transformer.h.{layer}.{name}.bias"] = [outputs]
        for name in ("ln_1", "ln_2"):
            found[f"transformer.h.{layer}.{name}.weight"] = [n]
            found[f"transformer.h.{layer}.{name}.bias"] = [n]
    found["transformer.ln_f.weight"] = found["transformer.ln_f.bias"] = [n]
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = [config["vocab_size"], n]
    return found


def llama_shapes(kind, config):
    n, inner = config["hidden_size"], config["intermediate_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    found = {"model.embed_tokens.weight": [config["vocab_size"], n], "model.norm.weight": [n]}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        for name in ("q", "k", "v"):
            size = queries if name == "q" else keys
            found[f"{prefix}self_attn.{name}_proj.weight"] = [size, n]
            if kind == "qwen2" or config.get("attention_bias"):
                found[f"{prefix}self_attn.{name}_proj.bias"] = [size]
            if kind.startswith("qwen3") and name != "v":
                found[f"{prefix}self_attn.{name}_norm.weight"] = [config["head_dim"]]
        found[f"{prefix}self_attn.o_proj.weight"] = [n, queries]
        if config.get("attention_bias"):
            found[f"{prefix}self_attn.o_proj.bias"] = [n]
        if kind in ("mixtral", "qwen3_moe"):
            experts = expert_shapes(kind, config, layer)
            found.update({prefix + name: shape for name, shape in experts.items()})
        for name, outputs, inputs in (("gate", inner, n), ("up", inner, n), ("down", n, inner)):
            if kind in ("mixtral", "qwen3_moe") and experts:
                break
            found[f"{prefix}mlp.{name}_proj.weight"] = [outputs, inputs]
            if config.get("mlp_bias"):
                found[f"{prefix}mlp.{name}_proj.bias"] = [outputs]
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{prefix}{name}.weight"] = [n]
    if not config["tie_word_embeddings"]:
        found["lm_head.weight"] = [config["vocab_size"], n]
    return found


def expert_shapes(kind, config, layer):
    """Router and experts of a layer, by names inside of it; none if it has a plain MLP."""
    n = config["hidden_size"]
    if kind == "mixtral":
        inner, count, block = config["intermediate_size"], config["num_local_experts"], (
            "block_sparse_moe")
        names = {"w1": [inner, n], "w2": [n, inner], "w3": [inner, n]}
    else:
        inner, count, block = config["moe_intermediate_size"], config["num_experts"], "mlp"
        names = {"gate_proj": [inner, n], "up_proj": [inner, n], "down_proj": [n, inner]}
        if (layer + 1) % config["decoder_sparse_step"] or layer in config["mlp_only_layers"]:
            return {}
    found = {f"{block}.experts.{expert}.{name}.weight": shape
             for expert in range(count) for name, shape in names.items()}
    return {f"{block}.gate.weight": [count, n], **found}


SIZES = {"F64": 8, "F32": 4, "BF16": 2, "F16": 2, "I8": 1, "I32": 4}


def content(dtype, shape, source):
    """Random values below 0.1, of both signs, and some bits that are no usual number; without
    `source`, zeros."""
    count = math.prod(shape)
    if dtype in ("I8", "I32") or not source:
        return bytes(count * SIZES[dtype])
    values = [source.uniform(-0.1, 0.1) for _ in range(count)]
    values[0] = 1e-41 if dtype in ("F32", "BF16") else 6e-8  # below the normal numbers
    if dtype == "BF16":
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{count}{dict(F64='d', F32='f', F16='e')[dtype]}", *values)


def write_safetensors(path, tensors):
    """`tensors` are (name, dtype, shape, bytes)."""
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, dtype, shape, data in tensors:
        header[name] = dict(dtype=dtype, shape=shape, data_offsets=[offset, offset + len(data)])
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[3] for t in tensors))


def write_weights(folder, tensors, files):
    """One file, or several and their index."""
    if files == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    index = {"metadata": {"total_size": sum(len(t[3]) for t in tensors)}, "weight_map": {}}
    for number in range(files):
        name = f"model-{number + 1:05}-of-{files:05}.safetensors"
        mine = tensors[number::files]
        write_safetensors(folder / name, mine)
        index["weight_map"].update({tensor[0]: name for tensor in mine})
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))


def make_tensors(kind, config, options):
    """(name, dtype, shape, bytes) of all tensors, by name, in the order of their names."""
    source = None if options.zeros else random.Random(1)
    wanted = shapes(kind, config)
    for change in options.shape:
        name, sizes = change.split("=")
        wanted[name] = [int(size) for size in sizes.split(",")]
    made = {name: (options.dtype, shape, content(options.dtype, shape, source))
            for name, shape in sorted(wanted.items())}
    prefix = "transformer." if kind == "gpt2" else "model."
    embedding = "wte" if kind == "gpt2" else "embed_tokens"
    if options.repeat_head:
        made["lm_head.weight"] = made[f"{prefix}{embedding}.weight"]
    if options.no_prefix:
        made = {name.removeprefix(prefix): value for name, value in made.items()}
    for change in options.rename:
        old, new = change.split("=")
        value = made.pop(old)
        if new:
            made[new] = value
    return [(name, *value) for name, value in made.items()]


def main():
    parser = argparse.ArgumentParser(description="writes a small checkpoint of transformers")
    parser.add_argument("kind", choices=CONFIGS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dtype", default="F32", choices=SIZES)
    parser.add_argument("--files", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=JSON")
    parser.add_argument("--unset", action="append", default=[], metavar="KEY")
    parser.add_argument("--rename", action="append", default=[], metavar="OLD=NEW",
                        help="a tensor; without NEW it is left out")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME=SIZES")
    parser.add_argument("--no-weights", action="store_true")
    parser.add_argument("--no-prefix", action="store_true")
    parser.add_argument("--repeat-head", action="store_true")
    parser.add_argument("--zeros", action="store_true", help="for large checkpoints")
    options = parser.parse_args()
    config = dict(CONFIGS[options.kind], model_type=options.kind, torch_dtype="float32",
                  architectures=["ForCausalLM"], bos_token_id=1, transformers_version="4.57.0")
    for change in options.set:
        key, value = change.split("=", 1)
        config[key] = json.loads(value)
    for key in options.unset:
        del config[key]
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (options.folder / "tokenizer.json").write_text("{}\n")
    if not options.no_weights:
        write_weights(options.folder, make_tensors(options.kind, config, options), options.files)


if __name__ == "__main__":
    main()
