#===- onnx_models.py - transformers for compare-onnx ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""A GPT-2-like and a Llama-like language model, as one writes them in PyTorch."""

import torch
from torch import nn
from torch.nn import functional


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    """Learned positions, one weight for query, key and value, a tied head."""

    def __init__(self, vocabulary, width, heads, layers, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(GptBlock(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        nn.init.normal_(self.tokens.weight, std=0.1)

    def forward(self, tokens):
        numbers = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(numbers)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotated(x):
    low, high = x.chunk(2, -1)
    return torch.cat((-high, low), -1)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, shared):
        super().__init__()
        self.heads, self.shared, self.size = heads, shared, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, width // heads * shared, bias=False)
        self.v = nn.Linear(width, width // heads * shared, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 2 * width, bias=False)
        self.up = nn.Linear(width, 2 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)

    def forward(self, x, cosines, sines):
        batch, length, width = x.shape
        y = self.norm1(x)
        q = self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(y).view(batch, length, self.shared, self.size).transpose(1, 2)
        v = self.v(y).view(batch, length, self.shared, self.size).transpose(1, 2)
        q, k = (part * cosines + rotated(part) * sines for part in (q, k))
        times = self.heads // self.shared
        k, v = (part[:, :, None].expand(batch, self.shared, times, length, self.size)
                .reshape(batch, self.heads, length, self.size) for part in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    """Rotary positions, two query heads for each key and value head, RMS norms as arithmetic."""

    def __init__(self, vocabulary, width, heads, layers, length):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(LlamaBlock(width, heads, heads // 2) for _ in range(layers))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, vocabulary, bias=False)
        size = width // heads
        self.register_buffer("frequencies", 1e4 ** -(torch.arange(0, size, 2).float() / size))

    def forward(self, tokens):
        numbers = torch.arange(tokens.shape[1], device=tokens.device).float()
        angles = torch.outer(numbers, self.frequencies)
        angles = torch.cat((angles, angles), -1)
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.head(self.norm(x))
