#===- config.py - records of models and recipes ----------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""The model and the recipe as plain records."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

import experts
import generator
import layers
import text_format


@dataclass
class Latent:
    """Latent attention; the fields are those of proto/weft/model.proto."""

    key_value_rank: int
    rotary_size: int
    value_size: int
    query_rank: int = 0


@dataclass
class Model:
    """A decoder-only transformer; the fields are those of proto/weft/model.proto."""

    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    ffn: int
    norm: str = "LAYER_NORM"
    activation: str = "GELU"
    positions: str = "LEARNED"
    maximum_length: int = 0
    norm_epsilon: float = 1e-5
    norm_bias: bool = True
    theta: float = 10000.0
    rope_scaling: tuple = None  # see layers.rotary_frequencies
    attention_biases: bool = False
    attention_output_bias: bool = None  # as attention_biases
    query_key_norm: bool = False
    attention_window: int = 0  # 0: none
    mlp_biases: bool = False
    tied_embeddings: bool = False
    dropout: float = 0.0
    attention_dropout: float = 0.0
    standard_deviation: float = 0.02
    scale_residual_projections: bool = True
    experts: "experts.Experts" = None
    latent: "Latent" = None
    rotated_scale: float = 1.0
    score_scale: float = 1.0

    @property
    def rotary_size(self):
        return self.latent.rotary_size if self.latent else self.head_size

    def __post_init__(self):
        if self.attention_output_bias is None:
            self.attention_output_bias = self.attention_biases

    @property
    def group(self):
        return self.heads // self.kv_heads

    def parameters(self):
        """The shape of every parameter, by name."""
        hidden, ffn = self.hidden, self.ffn
        queries = (self.kv_heads, self.group, self.head_size)
        shapes = {"embed.tokens.weight": (self.vocabulary, hidden)}
        if self.positions == "LEARNED":
            shapes["embed.positions.weight"] = (self.maximum_length, hidden)
        for layer in range(self.layers):
            prefix = f"layers.{layer}."
            shapes.update(self._norm(prefix + "attention_norm"))
            attention = prefix + "attention."
            if self.latent:
                self._latent_attention(shapes, attention)
            else:
                self._attention(shapes, attention, queries)
            shapes.update(self._norm(prefix + "mlp_norm"))
            if self.experts and self.experts.has(layer):
                self._experts(shapes, prefix)
            else:
                self._mlp(shapes, prefix + "mlp.", (), ffn, self.mlp_biases)
        shapes.update(self._norm("final_norm"))
        if not self.tied_embeddings:
            shapes["head.weight"] = (self.vocabulary, hidden)
        return shapes

    def _attention(self, shapes, attention, queries):
        hidden = (self.hidden,)
        self._linear(shapes, attention + "query", queries, hidden, self.attention_biases)
        for part in ("key", "value"):
            self._linear(shapes, attention + part, (self.kv_heads, self.head_size), hidden,
                         self.attention_biases)
        if self.query_key_norm:
            for part in ("query_norm", "key_norm"):
                shapes[f"{attention}{part}.weight"] = (self.head_size,)
        self._linear(shapes, attention + "output", hidden, queries, self.attention_output_bias)

    def _latent_attention(self, shapes, attention):
        latent, hidden, source = self.latent, self.hidden, self.hidden
        if latent.query_rank:
            source = latent.query_rank
            shapes[attention + "query_latent.weight"] = (source, hidden)
            shapes[attention + "query_latent_norm.weight"] = (source,)
        rank, plain = latent.key_value_rank, self.head_size - latent.rotary_size
        shapes[attention + "query.weight"] = (self.heads, 1, self.head_size, source)
        shapes[attention + "latent.weight"] = (rank, hidden)
        shapes[attention + "latent_norm.weight"] = (rank,)
        shapes[attention + "key_rotary.weight"] = (latent.rotary_size, hidden)
        shapes[attention + "key.weight"] = (self.heads, plain, rank)
        shapes[attention + "value.weight"] = (self.heads, latent.value_size, rank)
        shapes[attention + "output.weight"] = (hidden, self.heads, 1, latent.value_size)

    def _mlp(self, shapes, prefix, stack, ffn, bias):
        names = ("up", "gate") if self.activation == "SWIGLU" else ("up",)
        for part in names:
            self._linear(shapes, prefix + part, stack + (ffn,), (self.hidden,), bias)
        self._linear(shapes, prefix + "down", stack + (self.hidden,), (ffn,), bias)

    def _experts(self, shapes, prefix):
        mixture = self.experts
        shapes[prefix + "router.weight"] = (mixture.experts, self.hidden)
        if mixture.selection_bias:
            shapes[prefix + "router.bias"] = (mixture.experts,)
        self._mlp(shapes, prefix + "experts.", (mixture.experts,), mixture.ffn, False)
        if mixture.shared_ffn:
            self._mlp(shapes, prefix + "shared.", (), mixture.shared_ffn, False)
        if mixture.shared_gate:
            shapes[prefix + "shared_router.weight"] = (self.hidden,)

    def _norm(self, name):
        shapes = {name + ".weight": (self.hidden,)}
        if self.norm_bias:
            shapes[name + ".bias"] = (self.hidden,)
        return shapes

    @staticmethod
    def _linear(shapes, name, outputs, inputs, bias):
        shapes[name + ".weight"] = outputs + inputs
        if bias:
            shapes[name + ".bias"] = outputs

    def initial_weights(self, seed):
        """Every parameter's value before step 0."""
        return {name: self.initial_weight(name, shape, seed)
                for name, shape in self.parameters().items()}

    def initial_weight(self, name, shape, seed):
        if name.endswith(".bias"):
            return np.zeros(shape)
        if name.endswith("norm.weight"):
            return np.ones(shape)
        into_residual = name.endswith(("attention.output.weight", ".down.weight"))
        std = self.standard_deviation
        if into_residual and self.scale_residual_projections:
            std = std / math.sqrt(2.0 * self.layers)
        values = generator.normal(seed, generator.fnv1a(name), int(np.prod(shape)))
        return std * values.reshape(shape)


@dataclass
class Recipe:
    """How a model is trained; the fields are those of proto/weft/recipe.proto."""

    sequence_length: int
    global_batch: int
    steps: int
    precision: str = "F32"
    optimizer: str = "adamw"  # or "sgd", "muon"
    beta1: float = 0.9
    beta2: float = 0.95
    epsilon: float = 1e-8
    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = True
    iterations: int = 5
    scale: str = "RMS"
    adamw_rate: float = 1.0
    peak_learning_rate: float = 1e-3
    warmup_steps: int = 0
    decay: str = "COSINE"
    final_learning_rate_fraction: float = 0.1
    clip_norm: float = math.inf
    z_loss: float = 0.0
    routing: "experts.Routing" = None
    fp8: layers.Fp8 = None
    document_end: int = None
    seed: int = 0


def _known(fields, kind, names):
    unknown = set(fields) - set(names)
    if unknown:
        raise ValueError(f"{kind} has fields that the reference does not know: "
                         + ", ".join(sorted(unknown)))
    return {name: values[-1] for name, values in fields.items()}


MODEL_FIELDS = ("layers hidden heads kv_heads head_size ffn norm norm_epsilon norm_bias activation "
                "positions attention_biases attention_output_bias query_key_norm attention_window "
                "mlp_biases dropout attention_dropout tied_embeddings "
                "vocabulary maximum_length").split()


def parse_model(text):
    """The model of a description in text form. Refuses fields it does not know."""
    fields = _known(text_format.parse(text), "model",
                    MODEL_FIELDS + ["version", "name", "rotary", "initialization", "experts",
                                   "latent_attention"])
    values = {name: fields[name] for name in MODEL_FIELDS if name in fields}
    values.setdefault("kv_heads", fields["heads"])
    values.setdefault("head_size", fields["hidden"] // fields["heads"])
    values.setdefault("norm_bias", fields["norm"] == "LAYER_NORM")
    values.update(_known(fields.get("initialization", {}), "initialization",
                         ("standard_deviation", "scale_residual_projections")))
    rotary = _known(fields.get("rotary", {}), "rotary",
                    ("theta", "scaling", "factor", "low_frequency_factor", "high_frequency_factor",
                     "original_maximum_length", "fast_turns", "slow_turns", "whole_pairs",
                     "rotated_scale", "score_scale"))
    values["theta"] = float(rotary.get("theta", 10000.0))
    if rotary.get("scaling") == "LINEAR":
        values["rope_scaling"] = ("linear", rotary["factor"])
    if rotary.get("scaling") == "YARN":
        values["rope_scaling"] = ("yarn", rotary["factor"], rotary.get("fast_turns", 32.0),
                                  rotary.get("slow_turns", 1.0),
                                  rotary["original_maximum_length"],
                                  rotary.get("whole_pairs", True))
        values["rotated_scale"] = rotary.get("rotated_scale",
                                             0.1 * math.log(rotary["factor"]) + 1.0)
        values["score_scale"] = rotary.get("score_scale", 1.0)
    if "latent_attention" in fields:
        latent = _known(fields["latent_attention"], "latent_attention",
                        [field.name for field in dataclasses.fields(Latent)])
        values["latent"] = Latent(**{
            "value_size": values["head_size"] - latent["rotary_size"], **latent})
    if rotary.get("scaling") == "LLAMA3":
        values["rope_scaling"] = (
            "llama3", rotary["factor"], rotary.get("low_frequency_factor", 1.0),
            rotary.get("high_frequency_factor", 4.0), rotary["original_maximum_length"])
    if "experts" in fields:
        mixture = _known(fields["experts"], "experts", [
            field.name for field in dataclasses.fields(experts.Experts)])
        values["experts"] = experts.Experts(**{"ffn": fields["ffn"], **mixture})
    return Model(**values)


def parse_recipe(text):
    """The recipe of a description in text form. Refuses fields it does not know."""
    plain = ("sequence_length", "steps", "precision", "clip_norm", "z_loss", "seed")
    # In how many parts logits are made changes no result.
    fields = _known(text_format.parse(text), "recipe", plain + (
        "version", "loss_chunks", "global_batch_sequences", "global_batch_tokens", "adamw", "sgd", "muon",
        "schedule", "fp8", "routing", "documents"))
    values = {name: fields[name] for name in plain if name in fields}
    if "fp8" in fields:
        fp8 = _known(fields["fp8"], "fp8", ("values", "gradients", "scaling", "history"))
        is_delayed = fp8.get("scaling") == "DELAYED"
        values["fp8"] = layers.Fp8(fp8.get("values", "E4M3"), fp8.get("gradients", "E5M2"),
                                         fp8.get("history", 1024) if is_delayed else 0)
    if "routing" in fields:
        values["routing"] = experts.Routing(**_known(fields["routing"], "routing", [
            field.name for field in dataclasses.fields(experts.Routing)]))
    if "documents" in fields:
        values["document_end"] = _known(fields["documents"], "documents", ("end",))["end"]
    if "global_batch_tokens" in fields:
        values["global_batch"] = fields["global_batch_tokens"] // fields["sequence_length"]
    else:
        values["global_batch"] = fields["global_batch_sequences"]
    values["optimizer"] = next(name for name in ("adamw", "sgd", "muon") if name in fields)
    if values["optimizer"] != "sgd":
        values["weight_decay"] = 0.1
    if values["optimizer"] == "muon":
        values["momentum"] = 0.95
    values.update(_known(fields[values["optimizer"]], values["optimizer"],
                         ("beta1", "beta2", "epsilon", "weight_decay", "momentum", "nesterov",
                          "iterations", "scale", "adamw_rate")))
    values.update(_known(fields["schedule"], "schedule", (
        "peak_learning_rate", "warmup_steps", "decay", "final_learning_rate_fraction")))
    return Recipe(**values)
