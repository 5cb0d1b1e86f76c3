#===- cases.py - the models, recipes and meshes that are compared ----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Small descriptions, written from a table, and a text to train on.

Sizes divide by every mesh of 2, 4 or 8 ranks: 8 sequences, 8 key heads, 64 inner elements, 256
tokens; by none of UNEVEN_MESHES, on which they are padded. Each case uses features that the others do
not, so that together they cover the model family.
"""

import math
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

STEPS = 20
LATER_STEP = 11  # the second step whose gradients are compared
SEED = 1
# A validation of so many batches comes after every so many steps, and at the end.
VALIDATION_STEPS = 2
VALIDATION_EVERY = 10

# What a program is split by, as pins; one rank is "dp=1".
ONE_RANK = "dp=1"
AXES = ("dp", "fsdp", "ep", "cp", "tp")


def split(**sizes):
    """The pins of axes of these sizes."""
    return ",".join(f"{axis}={size}" for axis, size in sizes.items() if size > 1) or ONE_RANK


# Every split of 2, 4 and 8 ranks by samples and by layers.
ALL_MESHES = [split(dp=ranks // tp, tp=tp) for ranks in (2, 4, 8) for tp in (1, 2, 4, 8)
              if tp <= ranks]
# With the sequence cut: keys as it pays, whole, round a ring, or exchanged for heads.
SEQUENCE_MESHES = ["cp=2", "cp=4:ring", "cp=4:gather", "cp=4:all-to-all", "dp=2,cp=2:ring",
                   "dp=2,cp=2:all-to-all", "cp=2:ring,tp=2", "cp=2:all-to-all,tp=2",
                   "dp=2,cp=2:gather,tp=2,sp=true"]
# What lies where between steps, and between the matmuls that tp cuts.
HOME_MESHES = ["dp=2,zero=0", "dp=2,fsdp=2", "dp=2,fsdp=4", "dp=2,fsdp=2,zero=1",
               "dp=2,fsdp=2,tp=2,sp=true", "dp=4,zero=1", "dp=4,zero=2", "dp=4,zero=3", "dp=2,tp=2,zero=3",
               "tp=2,sp=true", "tp=4,sp=false", "dp=2,tp=2,sp=true,zero=1", "dp=2,tp=4,sp=true,zero=3"]
# What does not divide: with 5 ranks, one has nothing but padding of what there are 8 of.
UNEVEN_MESHES = ["dp=3", "tp=3", "cp=3:ring", "cp=3:gather", "cp=3:all-to-all", "dp=5", "tp=5",
                 "cp=5:ring", "dp=3,tp=2", "dp=2,cp=3:ring", "tp=3,sp=true",
                 "dp=2,tp=3,sp=true,zero=1"]
# Variables between steps that do not divide: hidden is 32.
UNEVEN_HOME_MESHES = [f"dp={ranks},zero={stage}" for ranks in (3, 5, 6, 7) for stage in (1, 2, 3)] + [
    "fsdp=3", "fsdp=5", "fsdp=6", "fsdp=7", "dp=2,fsdp=3", "fsdp=3,tp=2,sp=true", "dp=3,tp=3,zero=3",
    "cp=3:gather,zero=1,accumulation=2", "cp=3:gather,zero=3,accumulation=2"]
# Experts over an axis of their own, which cuts the batch too.
EXPERT_MESHES = ("dp=2", "tp=2", "dp=2,tp=2", "ep=2", "dp=2,ep=2", "ep=2,tp=2", "ep=8",
                 "dp=2,ep=2,zero=3", "ep=2,cp=2:ring", "ep=2,tp=2,sp=true")
# What does not divide there: the batch with the experts, or one without the other; and six experts, of
# which 4 ranks have two and 5 two too, the last none.
UNEVEN_EXPERT_MESHES = ("ep=3", "ep=5", "dp=3", "tp=3", "tp=5", "cp=3:gather", "dp=2,ep=3", "ep=3,tp=2",
                        "tp=3,sp=true")
SIX_EXPERTS_MESHES = ("ep=4", "ep=5", "ep=4,tp=2", "dp=2,ep=4,zero=3", "ep=4,tp=2,sp=true")
# Fewer key heads than ranks; three ranks divide neither these nor the query heads of each.
FEW_HEADS_MESHES = ("tp=2", "tp=4", "tp=8", "dp=2,tp=4", "tp=4,sp=true", "cp=2:all-to-all,tp=4",
                    "cp=4:all-to-all", "cp=2:all-to-all,tp=2",
                    "dp=2,tp=4,zero=3", "tp=3", "dp=2,tp=3,sp=true,zero=1")

# More ranks than heads: of 4 heads with keys of their own, of 2 key heads with 2 query heads each, and with 3.
MORE_THAN_HEADS_MESHES = ("tp=6", "tp=8", "cp=6:all-to-all", "dp=2,tp=6,sp=true,zero=2,accumulation=2")
MORE_THAN_TWOS_MESHES = ("tp=3", "tp=5", "tp=6", "tp=7", "tp=5,sp=true", "dp=2,tp=5,sp=true,zero=3", "fsdp=2,tp=3",
                         "dp=3,tp=5,zero=1")
MORE_THAN_THREES_MESHES = ("tp=5", "tp=7", "tp=8", "cp=2:all-to-all,tp=5")
# More ranks than elements of every dimension that they cut: see SHORT.
SHORT_MESHES = ("dp=5", "tp=5", "cp=5:ring", "cp=6:gather", "cp=6:all-to-all", "dp=4,tp=4,sp=true,zero=3", "fsdp=7")

# In micro-batches: of samples that dropout numbers, with sums that are pending, cut or whole.
PART_MESHES = ("accumulation=4", "dp=2,accumulation=2", "tp=2,accumulation=2", "cp=2,accumulation=8",
               "dp=2,tp=2,accumulation=4", "cp=2:ring,accumulation=2", "dp=2,zero=1,accumulation=2",
               "dp=4,zero=2,accumulation=2", "dp=4,zero=3,accumulation=2",
               "dp=2,tp=2,sp=true,zero=3,accumulation=2")
# Masters cut, and copies of weights held or gathered, with and without micro-batches.
MASTER_MESHES = ("dp=2,zero=1", "dp=2,zero=3", "dp=4,zero=1,accumulation=2", "dp=4,zero=2,accumulation=2",
                 "dp=4,zero=3,accumulation=2", "dp=2,tp=2,sp=true,zero=1,accumulation=2",
                 "dp=2,fsdp=2,accumulation=2")
# Where the search finds homes of masters, copies and sums that do not divide.
OPEN_MASTER_MESHES = ("dp=3", "dp=5", "cp=3:gather,accumulation=2", "cp=3:gather,zero=1,accumulation=2",
                      "cp=3:gather,zero=2,accumulation=2")
EXPERT_PART_MESHES = ("accumulation=2", "dp=2,accumulation=4", "ep=2,accumulation=2",
                      "dp=2,ep=2,zero=3,accumulation=2")


def sizes_of(mesh):
    """Ranks along each of AXES."""
    pins = dict(pin.split("=") for pin in mesh.split(","))
    return [int(pins.get(axis, "1").split(":")[0]) for axis in AXES]


def ranks_of(mesh):
    """The number of ranks, those of all pipeline stages."""
    pins = dict(pin.split("=") for pin in mesh.split(","))
    return int(pins.get("pp", "1")) * math.prod(sizes_of(mesh))


@dataclass(frozen=True)
class Case:
    """One model with one recipe, in one precision, and the meshes to split it over."""

    family: str  # "gpt2", "llama", "qwen", "deepseek" or "experts"
    optimizer: str  # "adamw", "sgd" or "muon"
    dropout: bool
    tied: bool
    precision: str = "F64"
    meshes: tuple = ("dp=2", "tp=2", "dp=2,tp=2")  # pins
    attention_biases: bool = True  # of families that have any
    reduction: str = "F32"  # what ranks add up in, with precision BF16
    gradients: str = "F32"  # of parameters, with precision BF16
    fp8: bool = False  # matmuls of layers multiply FP8 numbers
    delayed: bool = False  # whose scales are those of 3 steps before
    routing: bool = True  # of families with experts: with losses and capacities
    bounded: bool = False  # of families with experts: buffers of a bounded size, and nothing dropped
    coarse: bool = False  # takes AdamW's epsilon of the narrower precisions
    chunks: int = 1  # of each sequence, whose logits follow one another
    heads: tuple = ()  # query and key heads, in the place of the family's
    six_experts: bool = False  # of families with experts: in the place of 8 or 16
    short: bool = False  # see SHORT
    documents: bool = False  # that words are
    cpu: str = ""  # the processor to generate code for; by default the one that this runs on

    @property
    def name(self):
        parts = [self.family, self.optimizer, "dropout" if self.dropout else "plain",
                 "tied" if self.tied else "untied", self.precision.lower()]
        parts += [] if self.attention_biases else ["nobias"]
        parts += [("delayed" if self.delayed else "") + "fp8"] if self.fp8 else []
        parts += [] if self.routing else ["dropless"]
        parts += ["bounded"] if self.bounded else []
        parts += [f"chunks{self.chunks}"] if self.chunks > 1 else []
        parts += ["heads{}on{}".format(*self.heads)] if self.heads else []
        parts += ["six"] if self.six_experts else []
        parts += ["short"] if self.short else []
        parts += ["documents"] if self.documents else []
        parts += [self.cpu] if self.cpu else []
        parts += ["narrow"] if self.reduction == "BF16" else []
        parts += ["gradients"] if self.gradients == "BF16" else []
        return "-".join(parts + (["coarse"] if self.coarse else []))

    def texts(self):
        return model_text(self), recipe_text(self)


FAMILIES = {
    "gpt2": """heads: 8
norm: LAYER_NORM
positions: LEARNED
attention_biases: true
mlp_biases: true
maximum_length: 16
""",
    # 16 query heads on 8 key heads; the heads together are wider than hidden.
    "llama": """heads: 16
kv_heads: 8
head_size: 4
norm: RMS_NORM
norm_epsilon: 1e-6
activation: SWIGLU
positions: ROTARY
""",
    # What Qwen and Mistral add to Llama.
    "qwen": """heads: 16
kv_heads: 8
head_size: 4
norm: RMS_NORM
norm_epsilon: 1e-6
activation: SWIGLU
positions: ROTARY
attention_biases: true
attention_output_bias: false
query_key_norm: true
attention_window: 5
""",
    # Latent attention and experts as DeepSeek-V3 has them.
    "deepseek": """heads: 8
head_size: 12
norm: RMS_NORM
norm_epsilon: 1e-6
activation: SWIGLU
positions: ROTARY
""",
    # Half of the layers of the untied case have experts.
    "experts": """heads: 8
norm: RMS_NORM
activation: SWIGLU
positions: ROTARY
""",
}

# What of a recipe is for experts.
ROUTINGS = {
    ("experts", True): """routing {
  load_balance_loss: 0.1
  router_z_loss: 0.01
  capacity_factor: 1.25
  capacity_group: GLOBAL_BATCH
}
""",
    ("deepseek", True): "routing { bias_update_speed: 0.01 }\n",
    ("experts", False): """routing {
  load_balance_loss: 0.05
  load_balance_group: SEQUENCE
  capacity_factor: 1.0
}
""",
}

# Room for 15 of 16 tokens, where the mean is 4. With larger weights, tokens differ more, and with a loss
# for it they go to different experts; else all of a sequence are soon at one.
BOUNDED = "routing { load_balance_loss: 1 load_balance_group: SEQUENCE buffer_factor: 3.75 }\n"
BOUNDED_DEVIATION = 0.5

# What the tied and the untied case of a family have each for itself.
DETAILS = {
    ("gpt2", True): "activation: GELU_TANH\n",
    ("gpt2", False): "activation: GELU\nnorm_bias: false\n",
    ("llama", True): "rotary { theta: 500.0 scaling: LINEAR factor: 2.0 }\n",
    ("qwen", True): "",
    ("qwen", False): "maximum_length: 16\n",
    ("deepseek", True): """rotary {
  theta: 500.0
  scaling: YARN
  factor: 4.0
  original_maximum_length: 8
  fast_turns: 4
  score_scale: 1.1
}
latent_attention { key_value_rank: 16 query_rank: 24 rotary_size: 4 value_size: 10 }
experts {
  experts: 8
  experts_per_token: 2
  ffn: 16
  shared_ffn: 32
  first_layer: 1
  scoring: SIGMOID
  scale: 2.5
  groups: 4
  kept_groups: 2
  selection_bias: true
}
""",
    ("deepseek", False): "latent_attention { key_value_rank: 8 rotary_size: 6 }\n",
    ("experts", True): "experts { experts: 8 experts_per_token: 2 ffn: 32 }\n",
    ("experts", False): """experts {
  experts: 16
  experts_per_token: 3
  ffn: 16
  shared_ffn: 24
  shared_gate: true
  first_layer: 1
  scoring: SIGMOID
  scale: 1.5
  groups: 4
  kept_groups: 2
}
""",
    ("llama", False): """rotary {
  theta: 500.0
  scaling: LLAMA3
  factor: 2.0
  original_maximum_length: 8
}
""",
}

# Rates at which the loss falls by more than a tenth in 20 steps. AdamW alone is nearly blind to a
# wrong scale of the gradients; SGD and clipping are not.
#
# AdamW's first step divides a gradient by its own size plus epsilon, so an element whose gradient
# is smaller than rounding moves by up to the learning rate in a direction that rounding picks. In
# float32 that is measured, not imagined: with epsilon 1e-8 one element of a down projection, its
# gradient 2.8e-9 in float64 and between -1.2e-9 and 2.4e-9 under the meshes, moved the loss by
# 2e-5. Float32 cases therefore take an epsilon above the rounding of their gradients (1e-9).
OPTIMIZERS = {
    "adamw": """adamw { weight_decay: 0.1 EPSILON}
schedule { peak_learning_rate: 0.01 warmup_steps: 3 decay: COSINE }
clip_norm: 1.0
""",
    "sgd": """sgd { momentum: 0.9 weight_decay: 0.01 }
schedule { peak_learning_rate: 0.2 warmup_steps: 2 decay: LINEAR final_learning_rate_fraction: 0.2 }
z_loss: 1e-3
""",
    "muon": """muon { momentum: 0.9 SCALE}
schedule { peak_learning_rate: 0.02 warmup_steps: 3 decay: COSINE }
clip_norm: 1.0
""",
}

# Sizes below the numbers of ranks. Tokens are bytes, so a vocabulary cannot be short.
SHORT = {"ffn": 3, "experts": 3, "sequence_length": 4, "global_batch_sequences": 3}


def shortened(case, text):
    """Returns a description, with the sizes of SHORT if `case` is short."""
    for name, size in SHORT.items() if case.short else ():
        text = re.sub(rf"\b{name}: \d+", f"{name}: {size}", text)
    return text


def model_text(case):
    """The model of `case` as a description."""
    text = f"""version: 1
name: "{case.name}"
layers: 2
hidden: 32
ffn: 64
vocabulary: 256
{FAMILIES[case.family]}{DETAILS[case.family, case.tied]}tied_embeddings: {str(case.tied).lower()}
initialization {{ standard_deviation: {BOUNDED_DEVIATION if case.bounded else 0.08} }}
"""
    if not case.attention_biases:
        text = text.replace("attention_biases: true\n", "").replace(
            "attention_output_bias: false\n", "")
    if case.heads:
        text = re.sub(r"^heads: \d+\n(kv_heads: \d+\n)?", "heads: {}\nkv_heads: {}\n".format(*case.heads),
                      text, flags=re.MULTILINE)
    if case.six_experts:
        for many, few in (("experts: 8\n", "experts: 6\n"), ("experts: 8 ", "experts: 6 "),
                          ("experts: 16\n", "experts: 6\n"), ("  groups: 4", "  groups: 3")):
            text = text.replace(many, few)
    if case.dropout:
        text += "dropout: 0.1\n"
        # Heads are split over tp, so these masks are the ones that a wrong index would change.
        text += f"attention_dropout: {0.1 if case.family == 'gpt2' else 0.2}\n"
    return shortened(case, text)


def recipe_text(case):
    """The recipe of `case` as a description."""
    epsilon = "epsilon: 1e-6 " if case.precision != "F64" or case.coarse else ""
    formats = f"reduction: {case.reduction} gradient_accumulation: {case.gradients}"
    mixed = f"mixed {{ {formats} }}\n" if case.precision == "BF16" else ""
    scaling = "scaling: DELAYED history: 3" if case.delayed else ""
    mixed += f"fp8 {{ {scaling} }}\n" if case.fp8 else ""
    if case.precision == "F16":  # Grows three times in 20 steps.
        mixed += "loss_scale { initial: 1024 growth_interval: 6 }\n"
    mixed += f"documents {{ end: {ord(' ')} }}\n" if case.documents else ""
    mixed += f"loss_chunks: {case.chunks}\n" if case.chunks > 1 else ""
    if case.bounded:
        mixed += BOUNDED
    elif case.routing:
        mixed += ROUTINGS.get((case.family, case.tied), "")
    optimizer = OPTIMIZERS[case.optimizer].replace("EPSILON", epsilon).replace(
        "SCALE", "" if case.tied else "scale: SPECTRAL nesterov: false adamw_rate: 0.3 ")
    if case.family == "deepseek":  # At twice the rate SGD leaps, and 1e-16 grows to 1e-10.
        optimizer = optimizer.replace("peak_learning_rate: 0.2", "peak_learning_rate: 0.1")
    return shortened(case, f"""version: 1
sequence_length: 16
global_batch_sequences: 8
precision: {case.precision}
{mixed}{optimizer}steps: {STEPS}
""")


MACHINE = """version: 1
name: "test"
devices_per_node: 16
device {
  name: "core"
  peak_flops { precision: F64 flops: 1e10 }
  peak_flops { precision: F32 flops: 2e10 }
  peak_flops { precision: BF16 flops: 4e10 }
  memory_bytes: 1073741824
  memory_bandwidth_bytes_per_second: 1e10
  cores: 3
}
links { name: "memory" scope: NODE latency_seconds: 1e-6 bandwidth_bytes_per_second: 5e9 }
"""


def training_text(size=1 << 16, seed=1):
    """Returns text of a pseudo-language, the same for one seed, whose words differ much in frequency.
    Half of its letters are two bytes above 127, so that every part of a cut vocabulary is a
    target."""
    source = random.Random(seed)
    words = ["".join(source.choice("etaoinéàøßñü") for _ in range(source.randint(1, 7)))
             for _ in range(300)]
    weights = [1.0 / (rank + 1) for rank in range(len(words))]
    parts, length = [], 0
    while length < size:
        sentence = " ".join(source.choices(words, weights, k=source.randint(4, 12)))
        parts.append(sentence.capitalize() + ".\n")
        length += len(parts[-1])
    return "".join(parts)


def validation_text():
    """Returns text of another pseudo-language, long enough for a validation."""
    return training_text(1 << 12, seed=2)


def write(case, folder):
    """Writes the description of `case` into `folder` and returns (model, recipe)."""
    paths = Path(folder) / "model.textproto", Path(folder) / "recipe.textproto"
    for path, text in zip(paths, case.texts()):
        path.write_text(text)
    return paths


def all_cases():
    """Every combination, in both precisions, on every mesh."""
    even = ALL_MESHES + SEQUENCE_MESHES + HOME_MESHES
    return [Case(family, optimizer, dropout, tied, precision,
                 tuple(even + (list(EXPERT_MESHES + UNEVEN_EXPERT_MESHES)
                               if family in ("experts", "deepseek") else UNEVEN_MESHES)))
            for precision in ("F64", "F32") for family in FAMILIES for optimizer in OPTIMIZERS
            for tied in (True, False) for dropout in (True, False)]


def default_cases():
    """Each family, optimizer, dropout and tying with each of the others at least once."""
    chosen = [
        Case("gpt2", "adamw", True, True),
        Case("gpt2", "sgd", False, False),
        Case("llama", "adamw", False, True),
        Case("llama", "sgd", True, False),
        Case("qwen", "adamw", True, False),
        Case("experts", "adamw", False, True, meshes=EXPERT_MESHES + UNEVEN_EXPERT_MESHES),
        Case("experts", "sgd", False, False, meshes=EXPERT_MESHES + ("tp=3", "ep=3")),
        Case("experts", "adamw", False, False, meshes=EXPERT_MESHES, routing=False),
        Case("experts", "adamw", False, True, bounded=True,
             meshes=("dp=2", "tp=2", "ep=2", "ep=2,tp=2", "ep=8", "ep=2,cp=2:ring", "dp=2,fsdp=2,ep=2",
                     "ep=2,accumulation=2", "dp=2,ep=2,accumulation=2")),
        Case("deepseek", "adamw", False, True,
             meshes=("dp=2", "tp=2", "ep=2,tp=2", "cp=2:ring", "dp=2,ep=2,zero=3", "dp=3,zero=1")),
        Case("deepseek", "sgd", False, False, meshes=("dp=2,tp=2", "cp=2:all-to-all")),
        Case("llama", "muon", False, True,
             meshes=("dp=2", "tp=2", "tp=3", "cp=2:ring", "dp=2,tp=2,zero=1", "dp=2,tp=2,sp=true,zero=3",
                     "dp=4,zero=1,accumulation=2", "dp=3,zero=1", "fsdp=5")),
        Case("experts", "muon", False, False,
             meshes=("dp=2", "ep=2,tp=2", "dp=2,ep=2,zero=3", "fsdp=3,ep=2")),
        Case("llama", "sgd", False, True, chunks=4,
             meshes=("dp=2", "tp=2", "cp=2:ring", "dp=2,tp=2,sp=true,zero=1")),
    ]
    # One case of GPT-2 and one of Llama over every mesh; float32 where the two differ most.
    chosen[0] = replace(chosen[0], meshes=tuple(ALL_MESHES + SEQUENCE_MESHES + HOME_MESHES
                                                + UNEVEN_MESHES + UNEVEN_HOME_MESHES))
    chosen[3] = replace(chosen[3], meshes=tuple(ALL_MESHES + ["cp=8", "cp=8:ring"]
                                                + UNEVEN_MESHES))
    for number, meshes in ((0, PART_MESHES), (2, PART_MESHES), (6, EXPERT_PART_MESHES),
                           (7, EXPERT_PART_MESHES)):
        chosen[number] = replace(chosen[number], meshes=tuple(chosen[number].meshes) + meshes)
    chosen[4] = replace(chosen[4], meshes=chosen[4].meshes + (  # One with a window.
        "cp=4:ring", "cp=2:ring,tp=4", "cp=3:ring", "dp=3,tp=2"))
    chosen.append(replace(chosen[3], heads=(8, 2), meshes=FEW_HEADS_MESHES))
    chosen += [replace(chosen[0], tied=False, heads=(4, 4), meshes=MORE_THAN_HEADS_MESHES),
               replace(chosen[3], heads=(4, 2), meshes=MORE_THAN_TWOS_MESHES),
               replace(chosen[4], heads=(6, 2), meshes=MORE_THAN_THREES_MESHES),
               replace(chosen[11], heads=(4, 2), meshes=("tp=5",)),
               replace(chosen[0], tied=False, heads=(2, 2), short=True, meshes=SHORT_MESHES),
               replace(chosen[5], short=True, meshes=("ep=4", "ep=5", "ep=2,tp=5,sp=true"))]
    chosen += [replace(case, six_experts=True, meshes=meshes) for case, meshes in (
        (chosen[5], SIX_EXPERTS_MESHES),
        (chosen[6], ("ep=4", "ep=4,accumulation=2")),
        (chosen[8], ("ep=4", "ep=4,tp=2", "ep=4,accumulation=2", "cp=3:ring")),
        (chosen[9], ("ep=4", "ep=4,tp=2", "dp=3")),
        (chosen[12], ("ep=4", "ep=4,tp=2")))]
    return chosen + [replace(case, precision="F32", meshes=("dp=2,tp=2",))
                     for case in (chosen[1], chosen[2])]


def document_cases():
    """Sequences of several documents: positions that are learned and that are rotated, windows, every
    way to cut attention, and micro-batches."""
    return [Case("gpt2", "adamw", True, True, documents=True,
                 meshes=("dp=2", "tp=2", "cp=2", "cp=4:ring", "cp=4:gather", "cp=4:all-to-all", "cp=3:ring",
                         "cp=3:gather", "dp=3", "dp=2,accumulation=2")),
            Case("llama", "sgd", False, False, documents=True,
                 meshes=("cp=4:ring", "cp=2:all-to-all,tp=2", "dp=2,tp=2,sp=true,zero=3",
                         "cp=2:ring,accumulation=2")),
            Case("qwen", "adamw", False, True, documents=True,
                 meshes=("cp=4:ring", "cp=2:gather", "dp=2,tp=2")),
            Case("deepseek", "adamw", False, True, documents=True, meshes=("cp=2:ring", "ep=2,tp=2"))]


def fp8_cases():
    """Each family with FP8 matmuls. In float64, where ranks' differences in rounding are too
    small to change an FP8 number."""
    meshes = ("dp=2", "tp=2", "dp=2,tp=2", "dp=3", "tp=3", "cp=3:ring", "fsdp=3")
    few = ("dp=2", "tp=2", "dp=2,tp=2", "dp=2,zero=1", "dp=3,zero=1", "cp=3:ring",
           "accumulation=4", "dp=2,zero=2,accumulation=2", "tp=2,accumulation=2")
    chosen = [Case("gpt2", "adamw", True, True, fp8=True, meshes=meshes),
              Case("llama", "sgd", False, False, fp8=True, meshes=meshes)]
    return chosen + [replace(case, delayed=True, meshes=few) for case in chosen]


# Has no instruction that converts from or to 16 bits.
OLD_CPU = "x86-64-v2"


def bf16_cases():
    """Each family in bf16 over every mesh, and one where ranks exchange bf16.

    All with AdamW. The SGD above goes so fast that its loss rises in between, by a tenth at step 11
    of the llama case; there differences from rounding grow a hundredfold, on one rank as on
    several, and chance decides which runs diverge."""
    chosen = [Case("gpt2", "adamw", True, True, "BF16",
                   (*ALL_MESHES, "dp=3", "tp=3", "dp=2,zero=1,accumulation=2")),
              Case("llama", "adamw", False, False, "BF16",
                   (*ALL_MESHES, *SEQUENCE_MESHES, *MASTER_MESHES, *OPEN_MASTER_MESHES))]
    return chosen + [replace(chosen[1], tied=True, meshes=("tp=2", *MASTER_MESHES)),
                     replace(chosen[1], optimizer="muon", meshes=("tp=2", *MASTER_MESHES)),
                     replace(chosen[1], reduction="BF16", meshes=("dp=2", "tp=2", "dp=2,tp=2")),
                     replace(chosen[1], gradients="BF16",
                             meshes=("tp=2", "accumulation=2", "dp=2,zero=2,accumulation=2",
                                     "fsdp=2,accumulation=2", "dp=2,zero=1")),
                     replace(chosen[1], cpu=OLD_CPU, meshes=("dp=3", "tp=3,sp=true", "cp=3:ring"))]


def short_fraction_cases():
    """Cases with 10 bits of fraction: f16, and matmuls of TF32."""
    few = ("dp=2", "tp=2", "dp=2,tp=2")
    return [Case("gpt2", "adamw", True, True, "F16",
                 (*ALL_MESHES, "dp=3", "dp=2,zero=1,accumulation=2")),
            Case("llama", "adamw", False, False, "F16", (*few, "cp=2:ring", "dp=2,zero=3")),
            Case("llama", "adamw", False, False, "F16", ("dp=3", "tp=3,sp=true"), cpu=OLD_CPU),
            Case("gpt2", "adamw", True, True, "TF32", few),
            Case("llama", "adamw", False, False, "TF32", (*few, "cp=2:ring"))]
