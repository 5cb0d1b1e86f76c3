#===- torch_model.py - a described decoder in PyTorch -------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""GPT-2's and Llama's architecture as in descriptions, written to be fast in PyTorch.

Fused attention, one matmul for queries, keys and values, one for both halves of SwiGLU. Initial
weights and the order of samples follow docs/Numerics.md, so that losses equal those of a program of the same
description, recipe and data. Needs no NumPy, which a machine with PyTorch may lack.
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test/Reference"))
import text_format  # noqa: E402  pylint: disable=wrong-import-position

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
# Numbers that are drawn at a time.
DRAWN = 1 << 24


def fields(path, *known):
    """Returns the fields of a description; raises if it has a field that is not in `known`."""
    found = {name: values[-1] for name, values in text_format.parse(Path(path).read_text()).items()}
    if unknown := sorted(set(found) - set(known)):
        raise ValueError(f"{path}: PyTorch's side knows no {', '.join(unknown)}")
    return found


@dataclass(frozen=True)
class Sizes:
    """The sizes in a description; the fields are those of proto/weft/model.proto."""
    vocabulary: int
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    ffn: int
    norm: str
    activation: str
    positions: str
    maximum_length: int = 0
    norm_epsilon: float = 1e-5
    biases: bool = False
    tied: bool = False
    theta: float = 10000.0
    deviation: float = 0.02
    scale_residual: bool = True

    @classmethod
    def of(cls, path):
        said = fields(path, "version", "name", "layers", "hidden", "heads", "kv_heads", "ffn", "norm", "norm_epsilon",
                      "activation", "positions", "maximum_length", "vocabulary", "attention_biases", "mlp_biases",
                      "tied_embeddings", "rotary", "initialization")
        plain = {name: said[name] for name in ("vocabulary", "hidden", "layers", "heads", "ffn", "norm", "activation",
                                               "positions", "maximum_length", "norm_epsilon") if name in said}
        rotary, initial = said.get("rotary", {}), said.get("initialization", {})
        biases = said.get("attention_biases", False)
        if biases != said.get("mlp_biases", False) or set(rotary) - {"theta"} or set(initial) - {
                "standard_deviation", "scale_residual_projections"}:
            raise ValueError(f"{path}: PyTorch's side knows rotary theta alone, and biases of all layers or none")
        return cls(**plain, kv_heads=said.get("kv_heads", said["heads"]), biases=biases,
                   tied=said.get("tied_embeddings", False), theta=float(rotary.get("theta", [10000])[-1]),
                   deviation=initial.get("standard_deviation", [0.02])[-1],
                   scale_residual=initial.get("scale_residual_projections", [True])[-1])


def signed(number):
    """Returns an unsigned number of 64 bits as PyTorch's int64."""
    return number - (1 << 64) if number >> 63 else number


def mix(z):
    """Applies the finalizer of splitmix64 to an int or to a tensor of int64, whose products wrap."""
    if isinstance(z, int):
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        return z ^ z >> 31
    z = (z ^ shifted(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ shifted(z, 27)) * signed(0x94D049BB133111EB)
    return z ^ shifted(z, 31)


def shifted(z, places):
    """Shifts to the right as if unsigned."""
    return (z >> places) & ((1 << (64 - places)) - 1)


def fnv1a(name):
    value = 0xCBF29CE484222325
    for byte in name.encode():
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def stream_key(seed, stream):
    return mix(mix(seed) ^ stream)


def bits(seed, stream, index):
    return mix((stream_key(seed, stream) + index * GOLDEN) & MASK)


def normal(seed, name, shape, deviation, device):
    """Returns a parameter's initial values, rounded once, to PyTorch's default type."""
    found = torch.empty(math.prod(shape), device=device)
    key = signed(stream_key(seed, fnv1a(name)))
    for begin in range(0, found.numel(), DRAWN):
        part = found[begin:begin + DRAWN]
        draws = torch.arange(2 * begin, 2 * (begin + part.numel()), device=device)
        drawn = shifted(mix(draws * signed(GOLDEN) + key), 11).double()
        first, second = (drawn[0::2] + 1) * 2.0**-53, drawn[1::2] * 2.0**-53
        part.copy_(deviation * torch.sqrt(-2 * torch.log(first)) * torch.cos(2 * math.pi * second))
    return found.view(shape)


class Samples:
    """The samples of a file of bytes, in the order of the seed."""

    def __init__(self, path, sequence, batch, seed):
        self.tokens = torch.frombuffer(bytearray(Path(path).read_bytes()), dtype=torch.uint8).long()
        self.sequence, self.batch = sequence, batch
        self.count, self.seed = (self.tokens.numel() - 1) // sequence, seed
        self.half = 0
        while 4**self.half < self.count:
            self.half += 1

    def place(self, number):
        """Returns the index in the file of a sample of the run."""
        epoch, place = divmod(number, self.count)
        key, low = bits(self.seed, fnv1a("data order"), epoch), (1 << self.half) - 1
        while True:
            left, right = place >> self.half, place & low
            for turn in range(4):
                left, right = right, left ^ (bits(key, turn, right) & low)
            place = left << self.half | right
            if place < self.count:
                return place

    def of_step(self, step):
        """Returns the tokens and targets of a step."""
        starts = [self.place(step * self.batch + row) * self.sequence for row in range(self.batch)]
        rows = torch.stack([self.tokens[start:start + self.sequence + 1] for start in starts])
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def rotate(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


def norm_of(sizes):
    kind = nn.RMSNorm if sizes.norm == "RMS_NORM" else nn.LayerNorm
    return kind(sizes.hidden, eps=sizes.norm_epsilon)


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        hidden, bias = sizes.hidden, sizes.biases
        self.norm1, self.norm2 = norm_of(sizes), norm_of(sizes)
        # Queries, keys and values.
        self.parts = [hidden, *2 * [hidden // sizes.heads * sizes.kv_heads]]
        self.gated = sizes.activation == "SWIGLU"
        self.qkv = nn.Linear(hidden, sum(self.parts), bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        self.up = nn.Linear(hidden, 2 * sizes.ffn if self.gated else sizes.ffn, bias=bias)
        self.down = nn.Linear(sizes.ffn, hidden, bias=bias)

    def forward(self, x, table):
        batch, length, hidden = x.shape
        size = hidden // self.sizes.heads
        q, k, v = (part.view(batch, length, -1, size).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(self.parts, dim=-1))
        if table:
            q, k = rotate(q, *table).to(v.dtype), rotate(k, *table).to(v.dtype)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               enable_gqa=self.sizes.kv_heads < self.sizes.heads)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))
        wide = self.up(self.norm2(x))
        if self.gated:
            gate, value = wide.chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * value)
        return x + self.down(F.gelu(wide, approximate="tanh" if self.sizes.activation == "GELU_TANH" else "none"))

    @torch.no_grad()
    def draw(self, prefix, draw):
        """`draw(name, rows, residual)` returns a weight's initial values; one matmul here is several in Weft."""
        hidden, (queries, keys, _), ffn = self.sizes.hidden, self.parts, self.sizes.ffn
        attention = prefix + "attention."
        self.qkv.weight.copy_(torch.cat([draw(f"{attention}{part}.weight", (rows, hidden)) for part, rows in
                                         (("query", queries), ("key", keys), ("value", keys))]))
        self.out.weight.copy_(draw(attention + "output.weight", (hidden, hidden), True))
        self.up.weight.copy_(torch.cat([draw(f"{prefix}mlp.{part}.weight", (ffn, hidden))
                                        for part in (("gate", "up") if self.gated else ("up",))]))
        self.down.weight.copy_(draw(prefix + "mlp.down.weight", (hidden, ffn), True))
        if self.sizes.biases:
            for linear in (self.qkv, self.out, self.up, self.down):
                linear.bias.zero_()


class Decoder(nn.Module):
    """Has the loss of a program with the same seed, on `device`, in PyTorch's default type."""

    def __init__(self, sizes, length, z_loss, seed, device):
        super().__init__()
        self.z_loss, hidden = z_loss, sizes.hidden
        with torch.device(device):
            self.tokens = nn.Embedding(sizes.vocabulary, hidden, _weight=torch.empty(sizes.vocabulary, hidden))
            self.positions = (nn.Parameter(torch.empty(sizes.maximum_length, hidden))
                              if sizes.positions == "LEARNED" else None)
            self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
            self.norm = norm_of(sizes)
            self.head = None if sizes.tied else nn.Linear(hidden, sizes.vocabulary, bias=False)
            if self.positions is None:
                size = hidden // sizes.heads
                powers = torch.arange(0, size, 2, dtype=torch.float64) / size
                angles = torch.outer(torch.arange(length, dtype=torch.float64), sizes.theta ** -powers).repeat(1, 2)
                self.register_buffer("cosine", angles.cos().to(torch.get_default_dtype()))
                self.register_buffer("sine", angles.sin().to(torch.get_default_dtype()))
        self.draw(sizes, seed, device)

    @torch.no_grad()
    def draw(self, sizes, seed, device):
        def draw(name, shape, residual=False):
            scale = math.sqrt(2 * sizes.layers) if residual and sizes.scale_residual else 1
            return normal(seed, name, shape, sizes.deviation / scale, device)

        self.tokens.weight.copy_(draw("embed.tokens.weight", self.tokens.weight.shape))
        if self.positions is not None:
            self.positions.copy_(draw("embed.positions.weight", self.positions.shape))
        for number, block in enumerate(self.blocks):
            block.draw(f"layers.{number}.", draw)
        if self.head:
            self.head.weight.copy_(draw("head.weight", self.head.weight.shape))

    def forward(self, ids, targets):
        x = self.tokens(ids)
        table = None
        if self.positions is None:
            table = self.cosine, self.sine
        else:
            x = x + self.positions[:ids.shape[1]]
        for block in self.blocks:
            x = block(x, table)
        logits = F.linear(self.norm(x), self.head.weight if self.head else self.tokens.weight).flatten(0, 1)
        loss = F.cross_entropy(logits, targets.flatten())
        if self.z_loss:
            loss = loss + self.z_loss * logits.to(loss.dtype).logsumexp(-1).square().mean()
        return loss
