#!/usr/bin/python3
#===- check_layout.py - compares imported parameters with their source -----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""check_layout.py KIND CHECKPOINT IMPORTED: compares the numbers of one layer, in both layouts."""

import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Reference"))
import safetensors  # noqa: E402


def gpt2(theirs, config):
    """Conv1D is x W, ours is W x; query, key and value are columns side by side."""
    heads, size = config["n_head"], config["n_embd"] // config["n_head"]
    weight, bias = (theirs[f"transformer.h.1.attn.c_attn.{part}"] for part in ("weight", "bias"))
    parts = {"query": (heads, 1, size), "key": (heads, size), "value": (heads, size)}
    found = {}
    for i, (name, shape) in enumerate(parts.items()):
        place = slice(i * heads * size, (i + 1) * heads * size)
        found[f"attention.{name}.weight"] = weight[:, place].T.reshape(*shape, -1)
        found[f"attention.{name}.bias"] = bias[place].reshape(shape)
    found["attention.output.weight"] = theirs["transformer.h.1.attn.c_proj.weight"].T.reshape(
        -1, heads, 1, size)
    found["mlp.up.weight"] = theirs["transformer.h.1.mlp.c_fc.weight"].T
    found["mlp.down.weight"] = theirs["transformer.h.1.mlp.c_proj.weight"].T
    found["mlp_norm.bias"] = theirs["transformer.h.1.ln_2.bias"]
    return found


def llama(theirs, config):
    """Linear is W x as ours. Query head h attends to key head h // group."""
    keys, size = config["num_key_value_heads"], config["head_dim"]
    layer = {name.removeprefix("model.layers.1."): value for name, value in theirs.items()}
    return {
        "attention.query.weight": layer["self_attn.q_proj.weight"].reshape(keys, -1, size, 8),
        "attention.key.weight": layer["self_attn.k_proj.weight"].reshape(keys, size, 8),
        "attention.value.weight": layer["self_attn.v_proj.weight"].reshape(keys, size, 8),
        "attention.output.weight": layer["self_attn.o_proj.weight"].reshape(8, keys, -1, size),
        "attention_norm.weight": layer["input_layernorm.weight"],
        "mlp_norm.weight": layer["post_attention_layernorm.weight"],
        **(mixtral_experts(layer, config) if "num_local_experts" in config else {
            "mlp.gate.weight": layer["mlp.gate_proj.weight"],
            "mlp.up.weight": layer["mlp.up_proj.weight"],
            "mlp.down.weight": layer["mlp.down_proj.weight"],
        }),
    }


def mixtral_experts(layer, config):
    """w1 is the gate, w3 goes up, w2 down."""
    return {"router.weight": layer["block_sparse_moe.gate.weight"],
            **{f"experts.{ours}.weight": np.stack([
                layer[f"block_sparse_moe.experts.{expert}.{theirs}.weight"]
                for expert in range(config["num_local_experts"])])
               for ours, theirs in (("gate", "w1"), ("up", "w3"), ("down", "w2"))}}


def main(kind, checkpoint, imported):
    config = json.loads((Path(checkpoint) / "config.json").read_text())
    theirs = safetensors.load(Path(checkpoint) / "model.safetensors")
    ours = safetensors.load(Path(imported) / "weights.safetensors")
    for name, expected in {"gpt2": gpt2, "llama": llama, "mixtral": llama}[kind](theirs, config).items():
        np.testing.assert_array_equal(ours[f"layers.1.{name}"], expected, name)
    print(f"{kind}: as it must be")


if __name__ == "__main__":
    main(*sys.argv[1:])
