#===- whole_cases.py - whole models on 8 and 16 ranks ----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Models like GPT-2, Llama and Mixtral, and the splits over 8 and 16 ranks that people use.

These combine the features that `cases` tests one at a time: three and four axes at once, with homes of
variables and with micro-batches. Sizes divide by 16, and of the uneven models by neither 8 nor 16.
"""

from dataclasses import dataclass

import cases

MODELS = {
    "gpt2": """norm: LAYER_NORM
activation: GELU_TANH
positions: LEARNED
maximum_length: 16
attention_biases: true
mlp_biases: true
tied_embeddings: true
dropout: 0.1
attention_dropout: 0.1
""",
    "llama": """kv_heads: KEY_HEADS
norm: RMS_NORM
norm_epsilon: 1e-5
activation: SWIGLU
positions: ROTARY
rotary { theta: 500.0 scaling: LLAMA3 factor: 2.0 original_maximum_length: 8 }
""",
    "mixtral": """kv_heads: KEY_HEADS
norm: RMS_NORM
norm_epsilon: 1e-5
activation: SWIGLU
positions: ROTARY
experts { experts: EXPERTS experts_per_token: 2 }
""",
}

RECIPES = {
    "gpt2": cases.OPTIMIZERS["adamw"],
    "llama": cases.OPTIMIZERS["sgd"],
    "mixtral": cases.OPTIMIZERS["adamw"] + "routing { load_balance_loss: 0.02 }\n",
}

# By model, and whether its sizes are even.
MESHES = {
    ("gpt2", True): (
        "dp=8,zero=0", "dp=8,zero=2", "tp=8,sp=true", "dp=2,tp=4,sp=false", "cp=8:all-to-all",
        "dp=16,zero=3", "dp=4,tp=4,sp=true,zero=1", "dp=2,cp=4:ring,tp=2,zero=3",
        "dp=2,cp=2:all-to-all,tp=4,sp=true,zero=2", "tp=16,sp=true",
        "dp=4,tp=2,sp=true,zero=1,accumulation=2", "dp=4,cp=4:gather,zero=0", "dp=2,fsdp=4"),
    ("llama", True): (
        "dp=8,zero=3", "dp=2,tp=4,sp=true,zero=1", "cp=8:ring", "dp=2,cp=4:ring", "tp=8,sp=false",
        "dp=2,cp=2:ring,tp=2,sp=true,zero=3", "dp=16,zero=1", "dp=8,tp=2,sp=true,zero=3",
        "dp=2,cp=4:all-to-all,tp=2", "dp=4,cp=2:all-to-all,tp=2,sp=true,zero=2",
        "dp=2,cp=8:ring,zero=3", "dp=4,fsdp=4",
        "dp=2,cp=2:ring,tp=4,sp=true,accumulation=4"),
    ("mixtral", True): (
        "ep=8", "dp=2,ep=4,zero=1", "dp=8,zero=3", "ep=4,tp=2,sp=true", "ep=2,cp=2:ring,tp=2",
        "dp=2,ep=8,zero=3", "dp=4,ep=2,tp=2,sp=true,zero=2", "ep=4,tp=4,sp=true",
        "dp=2,ep=2,cp=2:all-to-all,tp=2,zero=1", "ep=8,cp=2:ring",
        "dp=2,ep=4,tp=2,zero=3"),
    ("gpt2", False): ("dp=8,zero=1", "dp=4,tp=4,sp=true,zero=3", "cp=8:ring"),
    ("llama", False): ("dp=2,tp=4,sp=true", "dp=2,cp=4:ring,tp=2,zero=1", "dp=2,cp=8:gather"),
    ("mixtral", False): ("ep=4,tp=2,sp=true", "dp=2,ep=2,tp=4", "ep=4,cp=2:ring",
                         "dp=2,ep=4,tp=2,zero=3"),
}


@dataclass(frozen=True)
class WholeCase:
    """One model in one precision, and the meshes to split it over; see cases.Case."""

    family: str  # of MODELS
    even: bool
    precision: str
    meshes: tuple
    cpu: str = ""  # the one that this runs on

    @property
    def name(self):
        return "-".join(["whole", self.family] + ([] if self.even else ["uneven"])
                        + [self.precision.lower()])

    def texts(self):
        """The model and the recipe, as descriptions."""
        heads, key_heads, ffn, vocabulary = (16, 8, 64, 256) if self.even else (12, 6, 76, 258)
        batch, sequence, experts = (16, 16, 8) if self.even else (12, 14, 6)
        layers = MODELS[self.family].replace("KEY_HEADS", str(key_heads)).replace("EXPERTS", str(experts))
        model = f"""version: 1
name: "{self.name}"
layers: 2
hidden: 32
heads: {heads}
head_size: 4
ffn: {ffn}
vocabulary: {vocabulary}
{layers}initialization {{ standard_deviation: 0.08 }}
"""
        # Of an epsilon beside which rounding is nothing: see cases.OPTIMIZERS.
        optimizer = RECIPES[self.family].replace("EPSILON", "epsilon: 1e-6 ")
        return model, f"""version: 1
sequence_length: {sequence}
global_batch_sequences: {batch}
precision: {self.precision}
{optimizer}steps: {cases.STEPS}
"""


def whole_cases():
    """Every model, in both precisions, on every mesh."""
    return [WholeCase(family, even, precision, meshes)
            for (family, even), meshes in MESHES.items() for precision in ("F64", "F32")]
