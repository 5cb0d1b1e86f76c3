#===- torch_step.py - a training step by PyTorch -----------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""What benchmarks/host-step and utils/gpu-check compare with: models written the way PyTorch likes them.

Fused attention, a fused AdamW, clipping by PyTorch's own function, gradients set to none; bf16 by
autocast with float32 weights; ResNet-50 is torchvision's, on images of 224 x 224, in the order of
channels that is fastest. Prints one line of JSON: milliseconds of each step after two that warm up, and
the most memory held during those: of the process, or with --device cuda what PyTorch has allocated
on the device. With --export, writes the model as ONNX instead, and images.
"""

import argparse
import json
import math
import struct
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

@dataclass(frozen=True)
class Sizes:
    llama: bool
    vocabulary: int
    ffn: int
    layers: int = 12
    hidden: int = 768
    heads: int = 12
    kv_heads: int = 12
    theta: float = 10000


# The sizes of NAME/model.textproto in examples and benchmarks.
MODELS = {
    "gpt2-124m": Sizes(llama=False, vocabulary=50257, ffn=3072),
    "llama-160m": Sizes(llama=True, vocabulary=32000, ffn=3072),
    "llama-1b": Sizes(llama=True, vocabulary=32000, ffn=8192, layers=16, hidden=2048, heads=32,
                      kv_heads=8, theta=500000),
}
IMAGES = "resnet-50"
SIDE, CLASSES = 224, 1000


def rotate(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes
        hidden, bias = sizes.hidden, not sizes.llama
        norm = (lambda: nn.RMSNorm(hidden, eps=1e-6)) if sizes.llama else (lambda: nn.LayerNorm(hidden))
        self.norm1, self.norm2 = norm(), norm()
        # Queries, keys and values.
        self.parts = [hidden, *2 * [hidden // sizes.heads * sizes.kv_heads]]
        self.qkv = nn.Linear(hidden, sum(self.parts), bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        self.up = nn.Linear(hidden, 2 * sizes.ffn if sizes.llama else sizes.ffn, bias=bias)
        self.down = nn.Linear(sizes.ffn, hidden, bias=bias)

    def forward(self, x, table):
        batch, length, hidden = x.shape
        size = hidden // self.sizes.heads
        q, k, v = (part.view(batch, length, -1, size).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(self.parts, dim=-1))
        if self.sizes.llama:
            q, k = rotate(q, *table).to(v.dtype), rotate(k, *table).to(v.dtype)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True,
                                               enable_gqa=self.sizes.kv_heads < self.sizes.heads)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, hidden))
        wide = self.up(self.norm2(x))
        if self.sizes.llama:
            gate, value = wide.chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * value)
        return x + self.down(F.gelu(wide, approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, sizes, length):
        super().__init__()
        self.llama, hidden = sizes.llama, sizes.hidden
        self.tokens = nn.Embedding(sizes.vocabulary, hidden)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.head = nn.Linear(hidden, sizes.vocabulary, bias=False)
        if sizes.llama:
            self.norm = nn.RMSNorm(hidden, eps=1e-6)
            size = hidden // sizes.heads
            angles = torch.outer(torch.arange(length),
                                 sizes.theta ** -(torch.arange(0, size, 2) / size)).repeat(1, 2)
            self.register_buffer("cosine", angles.cos())
            self.register_buffer("sine", angles.sin())
        else:
            self.norm = nn.LayerNorm(hidden)
            self.positions = nn.Parameter(torch.empty(length, hidden))
            self.head.weight = self.tokens.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        table = None
        if self.llama:
            table = self.cosine, self.sine
        else:
            x = x + self.positions
        for block in self.blocks:
            x = block(x, table)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        import torchvision
        self.body = torchvision.models.resnet50(num_classes=CLASSES)

    def forward(self, images, labels):
        return F.cross_entropy(self.body(images).float(), labels)


def export(folder, count):
    """Writes model.onnx, and images.safetensors with `count` random images."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.onnx.export(Classifier().body.train(), (torch.randn(2, 3, SIDE, SIDE),),
                      folder / "model.onnx", dynamo=False, do_constant_folding=False,
                      training=torch.onnx.TrainingMode.TRAINING, input_names=["images"],
                      dynamic_axes={"images": {0: "batch"}})
    images, labels = torch.randn(count, 3, SIDE, SIDE), torch.randint(CLASSES, (count,))
    size = images.numel() * 4
    header = json.dumps({
        "images": {"dtype": "F32", "shape": list(images.shape), "data_offsets": [0, size]},
        "labels": {"dtype": "I64", "shape": [count], "data_offsets": [size, size + count * 8]}})
    with open(folder / "images.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.write(images.numpy().tobytes() + labels.numpy().tobytes())


def make(options, steps):
    """The model, and what it takes in each step."""
    if options.model == IMAGES:
        model = Classifier().to(memory_format=torch.channels_last)
        return model, [(torch.randn(options.batch, 3, SIDE, SIDE).to(
            memory_format=torch.channels_last), torch.randint(CLASSES, (options.batch,)))
            for _ in range(steps)]
    model = Decoder(MODELS[options.model], options.sequence)
    ids = torch.randint(256, (steps, options.batch, options.sequence + 1))
    return model, [(ids[step, :, :-1], ids[step, :, 1:]) for step in range(steps)]


def peak_of_steps(device):
    """Bytes of memory at most since the peak was last cleared."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def clear_peak(device):
    if device == "cuda":
        return torch.cuda.reset_peak_memory_stats()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=(*MODELS, IMAGES), required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), required=True)
    parser.add_argument("--mode", choices=("eager", "compile"), required=True)
    for name in ("--sequence", "--batch", "--steps", "--threads"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--export", type=Path, help="a folder for model.onnx and images.safetensors")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)

    if options.export:
        export(options.export, 8 * options.batch)
        return
    model, batches = make(options, options.steps + 2)
    model = model.to(options.device)
    batches = [tuple(tensor.to(options.device) for tensor in batch) for batch in batches]
    decayed = [p for p in model.parameters() if p.dim() > 1]
    spared = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": spared, "weight_decay": 0}],
                                  lr=3e-4, betas=(0.9, 0.95), fused=True)
    call = torch.compile(model) if options.mode == "compile" else model

    times = []
    for step in range(options.steps + 2):
        if step == 2:
            clear_peak(options.device)
        start = time.perf_counter()
        with torch.autocast(options.device, torch.bfloat16, enabled=options.precision == "bf16"):
            loss = call(*batches[step])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        assert math.isfinite(loss.item())
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"ms": times[2:], "peak": peak_of_steps(options.device), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
