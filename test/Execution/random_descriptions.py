#===- random_descriptions.py - draws models, recipes and plans --------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Draws descriptions of models, recipes and plans at random, the same for one seed.

Most obey the rules of docs/Descriptions.md, so that most can be compiled; some do not. Sizes are small, or
sizes of real models with a few layers, and divide by some axes and not by others. A plan written by hand has
any entries, most of which name a dimension that the value has.
"""

import json
import math
import random
import re
from dataclasses import dataclass, field

# Ranks of the machine; `weft verify` shrinks meshes of more than 16.
MOST_RANKS = 32
MACHINE = """version: 1
name: "{name}"
nodes: {nodes}
devices_per_node: {devices}
device {{
  name: "core"
  peak_flops {{ precision: F64 flops: 1e10 }}
  peak_flops {{ precision: F32 flops: 2e10 }}
  peak_flops {{ precision: BF16 flops: 4e10 }}
  {peak}memory_bytes: {memory}
  memory_bandwidth_bytes_per_second: 1e10
  cores: 2
}}
links {{ name: "memory" scope: NODE latency_seconds: 1e-6 bandwidth_bytes_per_second: {bandwidth} }}
{cluster}"""
CLUSTER = 'links { name: "network" scope: CLUSTER latency_seconds: 5e-6 bandwidth_bytes_per_second: 1e9 }\n'

# Ops and parts of a model, as plans name them, each with dimensions that it has.
VALUES = {
    "*": ("batch", "batch", "sequence", "kv_heads", "ffn", "vocab", "hidden", "keys", "group", "head"),
    "*attention*": ("batch", "kv_heads", "group", "sequence"),
    "attention": ("keys", "kv_heads", "sequence"),
    "*mlp*": ("ffn", "hidden", "batch"),
    "*norm*": ("sequence", "hidden"),
    "*residual*": ("sequence", "batch", "hidden"),
    "head*": ("vocab", "hidden", "sequence"),
    "embed*": ("vocab", "hidden", "positions"),
    "layers.*": ("sequence", "ffn", "kv_heads"),
    "layers.0.*": ("ffn", "kv_heads", "hidden"),
    "*.weight": ("hidden", "vocab", "ffn"),
    "*experts*": ("experts", "ffn"),
    "adam_m/*": ("hidden", "vocab"),
    "tokens": ("batch", "sequence"),
}
# Where only some models have them.
OF_MODELS = {"experts": lambda model: model.get("experts"), "*experts*": lambda model: model.get("experts"),
             "positions": lambda model: model["positions"] == "LEARNED"}
ANY_DIMENSION = ("batch", "sequence", "kv_heads", "group", "head", "ffn", "vocab", "hidden", "keys", "experts")


class Enum(str):
    """A value that text format writes without quotes."""


def text_of(message, indent=""):
    """Writes a message, given as a dictionary of fields, as text. None leaves a field out, and a list repeats
    it."""
    lines = []
    for name, value in message.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                inner = text_of(item, indent + "  ")
                lines.append(f"{indent}{name} {{\n{inner}{indent}}}\n")
            elif item is not None:
                word = (item if isinstance(item, Enum) else json.dumps(item))
                lines.append(f"{indent}{name}: {word}\n")
    return "".join(lines)


@dataclass
class Descriptions:
    """A case: files by name, and arguments of weft besides the model, in which {name} is a file."""

    files: dict
    arguments: list
    graph: str = ""  # a name in graphs.MODELS in place of model.textproto
    edits: int = -1  # of a written plan: the number of the edit; -1 without such a plan
    tags: list = field(default_factory=list)


class Draw:
    """Random numbers of one case, and what has been drawn so far."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.chance = lambda share: self.random.random() < share
        self.pick = self.random.choice
        self.is_large = self.chance(0.2)
        self.tags = ["large" if self.is_large else "small"]

    def maybe(self, share, value):
        """Returns `value`, or, with the remaining probability, None."""
        return value if self.chance(share) else None

    def size(self, small, large):
        return self.pick(large if self.is_large else small)


def model_of(draw):
    """Returns the fields of a described model."""
    latent = draw.chance(0.15)
    rotary = latent or draw.chance(0.6)
    rms = latent or draw.chance(0.6)
    kv_heads = draw.size((1, 2, 2, 3, 4, 4, 6, 8), (1, 2, 8, 8, 12, 16))
    group = 1 if latent else draw.pick((1, 1, 2, 3, 4))
    layers = draw.size((1, 2, 2, 3, 4, 5), (3, 6, 7))
    model = {
        "version": 1, "name": "random", "layers": layers,
        "hidden": draw.size((8, 12, 16, 24, 32, 36, 48, 60), (256, 768, 960, 1024)),
        "heads": kv_heads * group, "kv_heads": draw.maybe(0.9, kv_heads) if group == 1 else kv_heads,
        "head_size": draw.size((4, 6, 8, 10, 12), (16, 64, 96, 128)),
        "ffn": draw.size((8, 12, 15, 16, 20, 24, 32, 40, 64), (256, 1000, 1024, 1365, 4096)),
        "norm": Enum("RMS_NORM" if rms else "LAYER_NORM"),
        "norm_epsilon": draw.maybe(0.3, 1e-6),
        "norm_bias": None if rms else draw.maybe(0.5, draw.chance(0.5)),
        "activation": Enum(draw.pick(("GELU", "GELU_TANH", "SWIGLU", "SWIGLU"))),
        "positions": Enum("ROTARY" if rotary else draw.pick(("LEARNED", "LEARNED", "NO_POSITIONS"))),
        "rotary": draw.maybe(0.5, rotary_of(draw)) if rotary else None,
        "attention_biases": None if latent else draw.maybe(0.4, True),
        "attention_output_bias": None if latent else draw.maybe(0.2, draw.chance(0.5)),
        "query_key_norm": draw.maybe(0.3, True) if rms and not latent else None,
        "attention_window": draw.maybe(0.25, draw.pick((1, 2, 3, 5, 8, 13, 500))),
        "dropout": draw.maybe(0.3, 0.1), "attention_dropout": draw.maybe(0.25, 0.2),
        "tied_embeddings": draw.maybe(0.4, True),
        "vocabulary": draw.size((29, 48, 64, 100, 256, 257), (1000, 4096, 32000)),
        "initialization": draw.maybe(0.7, {"standard_deviation": 0.08,
                                           "scale_residual_projections": draw.maybe(0.3, False)}),
        "experts": draw.maybe(0.35, experts_of(draw, layers)),
        "latent_attention": latent_of(draw) if latent else None,
    }
    if latent:
        model["head_size"] = model["latent_attention"]["rotary_size"] + draw.size((2, 4, 6, 8), (32, 64))
    elif model["hidden"] % model["heads"] == 0 and model["hidden"] // model["heads"] % 2 == 0:
        model["head_size"] = draw.maybe(0.5, model["head_size"])
    if not model["experts"]:
        model["mlp_biases"] = draw.maybe(0.4, True)
    return model


def rotary_of(draw):
    scaling = draw.pick(("UNSCALED", "LINEAR", "LLAMA3", "YARN"))
    message = {"theta": draw.maybe(0.5, 500.0)}
    if scaling != "UNSCALED":
        message |= {"scaling": Enum(scaling), "factor": draw.pick((2.0, 4.0))}
    if scaling in ("LLAMA3", "YARN"):
        message["original_maximum_length"] = draw.pick((8, 32))
    if scaling == "YARN":
        message |= {"whole_pairs": draw.maybe(0.3, False), "rotated_scale": draw.maybe(0.3, 1.2),
                    "score_scale": draw.maybe(0.3, 1.1)}
    return message


def latent_of(draw):
    return {"key_value_rank": draw.size((4, 8, 16), (64, 512)),
            "query_rank": draw.maybe(0.5, draw.size((6, 8, 24), (96, 768))),
            "rotary_size": draw.size((2, 4, 6), (16, 64)),
            "value_size": draw.maybe(0.6, draw.size((3, 5, 8), (32, 64)))}


def experts_of(draw, layers):
    count = draw.pick((2, 3, 4, 6, 8, 16))
    groups = draw.pick([n for n in range(1, count // 2 + 1) if count % n == 0]) if draw.chance(0.3) else 1
    kept = draw.pick(range(1, groups + 1))
    per_token = min(draw.pick((1, 2, 2, 3)), kept * count // groups)
    period = draw.pick((1, 1, 2, 2, 3))
    # Of a few, the last layer whose number plus 1 is a multiple of the period.
    first = draw.pick(range(max(layers // period * period, 1)))
    shared = draw.maybe(0.35, draw.size((8, 12, 20), (256, 1000)))
    return {"experts": count, "experts_per_token": per_token,
            "ffn": draw.maybe(0.6, draw.size((6, 8, 12, 15), (256, 700))),
            "shared_ffn": shared, "shared_gate": draw.maybe(0.4, True) if shared else None,
            "first_layer": draw.maybe(0.6, first), "layer_period": draw.maybe(0.8, min(period, layers)),
            "scoring": draw.maybe(0.5, Enum("SIGMOID")),
            "normalize": draw.maybe(0.5, draw.chance(0.5)) if per_token > 1 else None,
            "scale": draw.maybe(0.3, 1.5),
            "groups": groups if groups > 1 else None, "kept_groups": kept if groups > 1 else None,
            "selection_bias": draw.maybe(0.4, True)}


def pins_of(draw, model):
    """Returns pins by name: mostly of axes that the model has dimensions for."""
    for _ in range(50):
        pins = any_pins_of(draw, model)
        if fits(pins, model) or draw.chance(0.03):
            break
    return pins


def fits(pins, model):
    """Returns true unless the model is a graph, and pins cut what only described models have. Dimensions
    that pins do not divide are padded, even those shorter than an axis."""
    return bool(model) or not {"cp", "ep"} & pins.keys()


def any_pins_of(draw, model):
    pins = {}
    room = draw.pick((2, 4, 4, 6, 8, 8, 16, MOST_RANKS))
    for name in draw.random.sample(("dp", "fsdp", "ep", "cp", "tp"), draw.pick((1, 2, 2, 3, 3, 4))):
        if name == "ep" and not (model and model.get("experts")):
            continue
        size = draw.pick((2, 2, 2, 3, 4, 4, 5, 6, 8, 16))
        if size <= room:
            room //= size
            pins[name] = size
    if "tp" in pins and draw.chance(0.6):
        pins["sp"] = draw.pick(("true", "true", "false"))
    if any(name in pins for name in ("dp", "fsdp", "cp")) and draw.chance(0.6):
        pins["zero"] = draw.pick((0, 1, 2, 3, 3))
    if "cp" in pins:
        pins["cp"] = str(pins["cp"]) + draw.pick(("", ":ring", ":gather", ":all-to-all"))
    if not pins or draw.chance(0.25):
        pins["accumulation"] = draw.pick((2, 2, 3, 4))
    return pins


def mesh_of(draw):
    """Returns axes by name, each a list of the sizes of its parts."""
    names = draw.random.sample(("a", "b", "dp", "tp", "x1"), draw.pick((1, 2, 2, 3)))
    axes, room = {}, MOST_RANKS
    for name in names:
        parts = [draw.pick((2, 2, 3, 4)) for _ in range(draw.pick((1, 1, 2)))]
        for part in list(parts):
            if part > room:
                parts.remove(part)
            else:
                room //= part
        if parts:
            axes[name] = parts
    return axes


def entries_of(draw, model, axes):
    """Returns random entries of a plan, some of which match nothing or conflict."""
    names = {name: math.prod(parts) for name, parts in axes.items()}
    for name, parts in axes.items():
        if len(parts) > 1:
            names |= {f"{name}:(1){parts[0]}": parts[0], f"{name}:({parts[0]}){parts[1]}": parts[1]}
    values = [value for value in VALUES if model and OF_MODELS.get(value, lambda _: True)(model)] or ["*"]
    entries, taken = [], set()
    for _ in range(draw.pick((1, 2, 3, 3, 4, 6))):
        value = draw.pick(values)
        dimensions = [name for name in VALUES[value]
                      if name not in OF_MODELS or (model and OF_MODELS[name](model))]
        dimension = draw.pick(ANY_DIMENSION if draw.chance(0.03) else dimensions)
        chosen = draw.random.sample(sorted(names), min(draw.pick((0, 1, 1, 1, 1, 2)), len(names)))
        one_each = len({name.split(":")[0] for name in chosen}) == len(chosen)
        shards = math.prod(names[name] for name in chosen)
        # The other dimensions may be padded, even those shorter than an axis.
        fit = not model or dimension != "hidden" or model["hidden"] % shards == 0
        if (value, dimension) not in taken and one_each and (fit or draw.chance(0.05)):
            taken.add((value, dimension))
            entries.append({"value": value if value != "*" else draw.maybe(0.5, value),
                            "dimension": dimension, "axes": chosen,
                            "priority": draw.maybe(0.4, draw.pick((0, 1, 2)))})
    used = {name.split(":")[0] for entry in entries for name in entry["axes"]}
    if (unused := [name for name in axes if name not in used]) and ("*", "batch") not in taken:
        entries.append({"dimension": "batch", "axes": unused})
    return entries


def plan_of(draw, model):
    """Returns the fields of a plan written by hand, and its axes."""
    axes = mesh_of(draw)
    axis = [{"name": name, "size": math.prod(parts),
             "sub_axes": parts if len(parts) > 1 and draw.chance(0.5) else None}
            for name, parts in axes.items()]
    homes = draw.chance(0.2)
    plan = {"version": 1, "mesh": {"axis": axis}, "sharding": entries_of(draw, model, axes),
            "home": entries_of(draw, model, axes)[:2] if homes else [],
            "padding": draw.maybe(0.1, False), "accumulation": draw.maybe(0.2, draw.pick((2, 3)))}
    return plan


def routing_of(draw, parts, selects):
    """Returns the fields of routing; with micro-batches, groups are sequences."""
    group = Enum("SEQUENCE" if parts > 1 else draw.pick(("SEQUENCE", "GLOBAL_BATCH")))
    balance, capacity = draw.chance(0.6), draw.chance(0.5)
    return {"load_balance_loss": draw.pick((0.01, 0.1)) if balance else None,
            "load_balance_group": group if balance else None,
            "router_z_loss": draw.maybe(0.4, 0.01),
            "capacity_factor": draw.pick((0.7, 1.0, 1.25, 2.0)) if capacity else None,
            "capacity_group": group if capacity else None,
            "buffer_factor": None if capacity else draw.maybe(0.3, 4.0),
            "bias_update_speed": draw.maybe(0.5, 0.01) if selects and parts == 1 else None}


def optimizer_of(draw, is_graph):
    """Returns the fields of a recipe that hold its optimizer."""
    kind = draw.pick(("adamw", "adamw", "sgd") + (() if is_graph else ("muon",)))
    if kind == "adamw":
        message = {"weight_decay": draw.maybe(0.5, 0.1), "epsilon": draw.maybe(0.5, 1e-6)}
    elif kind == "sgd":
        message = {"momentum": draw.maybe(0.6, 0.9), "weight_decay": draw.maybe(0.4, 0.01)}
    else:
        message = {"nesterov": draw.maybe(0.3, False), "scale": draw.maybe(0.5, Enum("SPECTRAL")),
                   "adamw_rate": draw.maybe(0.3, 0.3), "iterations": draw.maybe(0.3, 3)}
    decay = draw.pick(("CONSTANT", "LINEAR", "COSINE"))
    return {kind: message, "schedule": {"peak_learning_rate": 0.01, "warmup_steps": draw.maybe(0.5, 3),
                                        "decay": Enum(decay)},
            "clip_norm": draw.maybe(0.5, 1.0)}


def precision_of(draw, parts):
    """Returns the fields of a recipe that hold its number formats."""
    precision = draw.pick(("F64", "F32", "F32", "TF32", "F16", "BF16", "BF16", "BF16"))
    fields = {"precision": Enum(precision)}
    if precision == "BF16":
        reduction, gradients = draw.pick((("F32", "F32"), ("F32", "BF16"), ("BF16", "F32"), ("BF16", "BF16")))
        fields["mixed"] = draw.maybe(0.5, {"reduction": Enum(reduction), "gradient_accumulation": Enum(gradients)})
    if precision == "F16":
        fields["loss_scale"] = draw.maybe(0.5, {"initial": 1024.0, "growth_interval": draw.pick((0, 6))})
    elif draw.chance(0.25):
        delayed = parts > 1 or draw.chance(0.5)
        fields["fp8"] = {"scaling": Enum("DELAYED") if delayed else None,
                         "history": draw.pick((1, 2, 5)) if delayed else None,
                         "gradients": draw.maybe(0.3, Enum("E4M3"))}
    return fields


def batch_of(draw, parts, cuts):
    """Returns a number of samples that mostly divides as the plan wants it."""
    if draw.chance(0.2):
        return parts * draw.pick((1, 2, 3, 5, 7))
    return parts * cuts * draw.pick((1, 1, 2, 3))


def recipe_of(draw, model, parts, cuts):
    """Returns the fields of a recipe for `model`, in `parts` micro-batches of which `cuts` ranks compute."""
    sequence = draw.size((6, 8, 12, 15, 16, 16, 24), (127, 128, 192, 1000))
    chunks = draw.pick([n for n in (2, 3, 4, 8) if sequence % n == 0] or [1]) if draw.chance(0.3) else 1
    if model["positions"] == "LEARNED" or draw.chance(0.2):
        model["maximum_length"] = sequence + draw.pick((0, 0, 1, 8))
    batch = batch_of(draw, parts, cuts)
    form = draw.pick(("sequences", "samples", "tokens"))
    recipe = {"version": 1, "sequence_length": sequence,
              f"global_batch_{form}": batch * sequence if form == "tokens" else batch,
              "z_loss": draw.maybe(0.3, 1e-3), "loss_chunks": chunks if chunks > 1 else None,
              "documents": draw.maybe(0.2, {"end": draw.pick((0, 10, 28))}), "steps": 20,
              "seed": draw.maybe(0.3, draw.pick((1, 2**64 - 1)))}
    recipe |= precision_of(draw, parts) | optimizer_of(draw, is_graph=False)
    if experts := model.get("experts"):
        recipe["routing"] = draw.maybe(0.7, routing_of(draw, parts, experts["selection_bias"]))
    return recipe


def graph_recipe_of(draw, parts, cuts, sequence):
    """Returns the fields of a recipe for a graph of sequences of that length, or, with 0, of images."""
    batch = batch_of(draw, parts, cuts)
    kind = "global_batch_sequences" if sequence else "global_batch_samples"
    return {"version": 1, "sequence_length": sequence or None, kind: batch, "steps": 8,
            } | precision_of(draw, parts) | optimizer_of(draw, is_graph=True)


def machine_of(draw):
    """Returns a machine's text."""
    nodes = draw.pick((1, 1, 2, 4))
    memory = draw.pick((1 << 21, 1 << 22, 1 << 24)) if draw.chance(0.08) else 1 << 40
    return MACHINE.format(name="random", nodes=nodes, devices=MOST_RANKS // nodes, memory=memory,
                          peak=draw.pick(("", "", "peak_flops { precision: F8 flops: 8e10 }\n  ")),
                          bandwidth=draw.pick((1e9, 5e9, 1e11)), cluster=CLUSTER if nodes > 1 else "")


def split_of(draw, model, files):
    """Returns the arguments that split a model, its micro-batches and, as a guess, the ranks that share a
    batch. Writes the plan's file."""
    way = draw.random.random()
    if way < 0.7:
        draw.tags.append("pins")
        pins = pins_of(draw, model)
        cuts = 1
        for name in ("dp", "fsdp", "ep"):
            cuts *= pins.get(name, 1)
        return (["--pin", ",".join(f"{name}={value}" for name, value in pins.items())],
                pins.get("accumulation", 1), cuts)
    if way < 0.88:
        draw.tags.append("mesh")
        axes, parts = mesh_of(draw), draw.pick((1, 1, 1, 2))
        text = ",".join(f"{name}={'x'.join(map(str, sizes))}" for name, sizes in axes.items())
        return (["--mesh", text, *(["--pin", f"accumulation={parts}"] if parts > 1 else [])], parts,
                draw.pick((1, 2, 4, 6)))
    draw.tags.append("plan")
    plan = plan_of(draw, model)
    files["plan.textproto"] = text_of(plan)
    return ["--plan", "{plan.textproto}"], plan["accumulation"] or 1, draw.pick((2, 4, 6, 12))


def activations_of(draw, layers):
    """Returns random entries that say what is recomputed, some of which match nothing."""
    entries = []
    for _ in range(draw.pick((1, 1, 2, 3))):
        first = draw.maybe(0.5, draw.random.randrange(layers))
        last = draw.maybe(0.5, draw.random.randrange(first or 0, layers))
        entries.append({"value": draw.pick((None, "*", "*norm*", "attention*", "mlp*", "attention/attention/1",
                                            "*/contract/*", "*/cast/*", "*experts*")),
                        "first_layer": first, "last_layer": last,
                        "saving": Enum(draw.pick(("KEPT", "RECOMPUTED", "RECOMPUTED")))})
    return entries


def of_layers(seed, model, split, files):
    """Gives some layers entries of their own, in two of three plans by hand. Has random numbers of its own, as
    `recompute`."""
    draw = Draw(f"layers {seed}")
    if model is None or "--plan" not in split or not draw.chance(2 / 3):
        return
    plan = files["plan.textproto"]
    axes = {name: [int(size)] for name, size in re.findall(r'name: "(\w+)"\s+size: (\d+)', plan)}
    for entry in entries_of(draw, model, axes)[:draw.pick((1, 2, 3))]:
        first = draw.maybe(0.7, draw.random.randrange(model["layers"]))
        last = draw.maybe(0.5, draw.random.randrange(first or 0, model["layers"]))
        is_of_none = (entry.get("value") or "*").startswith(("head", "embed", "tokens"))
        if not is_of_none or draw.chance(0.1):
            field = draw.pick(("sharding", "sharding", "sharding", "home"))
            files["plan.textproto"] += text_of({field: {**entry, "first_layer": first, "last_layer": last}})


def recompute(seed, model, split, files):
    """Adds to the split of one case in three what is recomputed. Has random numbers of its own, so that the rest of
    the case does not depend on it."""
    draw = Draw(f"activations {seed}")
    if model is None or not draw.chance(1 / 3):
        return split
    if "--plan" not in split:
        return [*split, "--pin", f"recompute={draw.pick(('none', 'attention', 'full', 'full'))}"]
    entries = [{"activation": entry} for entry in activations_of(draw, model["layers"])]
    files["plan.textproto"] += "".join(text_of(entry) for entry in entries)
    return split


# The name of each schedule in a plan, and the number of chunks that it is for, if not any.
SCHEDULES = {"1f1b": ("ONE_F_ONE_B", None), "gpipe": ("GPIPE", None), "zbh1": ("ZB_H1", 1), "zbv": ("ZB_V", 2)}


def stages(seed, model, split, parts, files):
    """Adds pipeline stages to the split of one case in four, some of them more than there are layers. Returns the
    split and its micro-batches. Has random numbers of its own, as `recompute`."""
    draw = Draw(f"stages {seed}")
    if model is None or not draw.chance(1 / 4):
        return split, parts
    micro_batches = parts if parts > 1 else draw.pick((2, 2, 3, 4, 8))
    count = min(draw.pick((2, 2, 3, 4)), max(2, model["layers"] + int(draw.chance(0.1))))
    schedule = draw.pick(("1f1b", "1f1b", "gpipe"))
    chunks = Draw(f"chunks {seed}").pick((1, 1, 2)) if 2 * count <= model["layers"] else 1
    gather = Draw(f"gathers {seed}").pick(("step", "run", "micro-batch"))
    # Backward in two parts, where it may be.
    way = Draw(f"parts {seed}").pick(("", "", "zbh1", "zbv"))
    if (way == "zbh1" and chunks == 1) or (way == "zbv" and 2 * count <= model["layers"]):
        schedule, chunks = way, SCHEDULES[way][1]
    if "--plan" not in split:
        pins = f"pp={count},schedule={schedule}" + (f",accumulation={micro_batches}" if parts == 1 else "")
        pins += f",chunks={chunks}" if chunks > 1 else ""
        pins += f",gather={gather}" if gather != "step" else ""
        return [*split, "--pin", pins], micro_batches
    borders = sorted(draw.random.sample(range(1, max(model["layers"], count)), count - 1))
    layers = [end - begin for begin, end in zip([0, *borders], [*borders, model["layers"]])]
    pipeline = {"layers": layers} if draw.chance(0.5) and schedule != "zbv" else {"stages": count}
    pipeline["chunks"] = chunks if "stages" in pipeline else 1
    pipeline["schedule"] = Enum(SCHEDULES[schedule][0])
    pipeline["gather"] = Enum(gather.upper().replace("-", "_"))
    files["plan.textproto"] += text_of({"accumulation": micro_batches if parts == 1 else None, "pipeline": pipeline})
    return split, micro_batches


def descriptions_of(seed, graphs):
    """Returns the descriptions of case number `seed`. `graphs` gives for the name of each graph the length
    of its sequences, 0 for images."""
    draw = Draw(seed)
    graph = draw.pick(sorted(graphs)) if draw.chance(0.08) else ""
    model = None if graph else model_of(draw)
    files = {"machine.textproto": machine_of(draw)}
    split, parts, cuts = split_of(draw, model, files)
    of_layers(seed, model, split, files)
    split = recompute(seed, model, split, files)
    split, parts = stages(seed, model, split, parts, files)
    if graph:
        draw.tags.append("graph " + graph)
        recipe = graph_recipe_of(draw, parts, cuts, graphs[graph])
    else:
        recipe = recipe_of(draw, model, parts, cuts)
        files["model.textproto"] = text_of(model)
    files["recipe.textproto"] = text_of(recipe)
    # A plan that weft wrote itself, with some of its entries, is a plan by hand that matches.
    edits = draw.random.randrange(1 << 32) if "--plan" not in split and draw.chance(0.2) else -1
    if edits >= 0:
        draw.tags.append("written")
    return Descriptions(files, ["--machine", "{machine.textproto}", "--recipe", "{recipe.textproto}", *split],
                        graph, edits, draw.tags)


def layers_of(draw, layers, lines):
    """Returns entries by which some layers are cut by fewer axes than `lines` say; all of them match."""
    entries = []
    for line in lines:
        found = re.match(r'sharding \{ value: "\*" dimension: "(batch|sequence|kv_heads|ffn)" axes: \[(.*)\] \}', line)
        if found and draw.random() < 0.5:
            axes = [axis for axis in found[2].split(", ") if draw.random() < 0.4]
            first = draw.randrange(layers)
            last = draw.choice(("", f"last_layer: {draw.randrange(first, layers)} "))
            cut = f"axes: [{', '.join(axes)}] " if axes else ""
            entries.append(f'sharding {{ value: "*" dimension: "{found[1]}" {cut}first_layer: {first} {last}}}\n')
    return entries


def edited_plan(text, edits, layers=0):
    """Returns a plan that weft wrote, without some of its entries, and in half of cases with some for some of the
    model's `layers`."""
    draw = random.Random(edits)
    share = draw.choice((0.1, 0.5, 0.9))
    lines = [line for line in text.splitlines(keepends=True)
             if not line.startswith(("sharding", "home")) or draw.random() < share]
    more = layers_of(draw, layers, text.splitlines()) if layers and draw.random() < 0.5 else []
    return "".join(lines + more)
