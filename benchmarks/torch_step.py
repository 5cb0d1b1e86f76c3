#===- torch_step.py - a training step by PyTorch on this processor ---------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""What benchmarks/host-step compares with: the examples' models written the way PyTorch likes them.

Fused attention, a fused AdamW, clipping by PyTorch's own function, gradients set to none; bf16 by
autocast with float32 weights; ResNet-50 is torchvision's, on images of 224 x 224, in the order of
channels that is fastest. Prints one line of JSON: milliseconds of each step after two that warm up, and
the most memory held during those. With --export, writes the model as ONNX instead, and images.
"""

import argparse
import json
import math
import struct
import time
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

# The sizes of examples/NAME/model.textproto.
MODELS = {
    "gpt2-124m": dict(llama=False, vocabulary=50257, ffn=3072),
    "llama-160m": dict(llama=True, vocabulary=32000, ffn=3072),
}
LAYERS, HIDDEN, HEADS = 12, 768, 12
IMAGES = "resnet-50"
SIDE, CLASSES = 224, 1000


def rotate(x, cosine, sine):
    first, second = x.chunk(2, dim=-1)
    return x * cosine + torch.cat((-second, first), dim=-1) * sine


class Block(nn.Module):
    def __init__(self, llama, ffn):
        super().__init__()
        self.llama = llama
        norm = (lambda: nn.RMSNorm(HIDDEN, eps=1e-6)) if llama else (lambda: nn.LayerNorm(HIDDEN))
        self.norm1, self.norm2 = norm(), norm()
        self.qkv = nn.Linear(HIDDEN, 3 * HIDDEN, bias=not llama)
        self.out = nn.Linear(HIDDEN, HIDDEN, bias=not llama)
        self.up = nn.Linear(HIDDEN, 2 * ffn if llama else ffn, bias=not llama)
        self.down = nn.Linear(ffn, HIDDEN, bias=not llama)

    def forward(self, x, table):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, HIDDEN // HEADS).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).chunk(3, dim=-1))
        if self.llama:
            q, k = rotate(q, *table), rotate(k, *table)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, HIDDEN))
        wide = self.up(self.norm2(x))
        if self.llama:
            gate, value = wide.chunk(2, dim=-1)
            return x + self.down(F.silu(gate) * value)
        return x + self.down(F.gelu(wide, approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, llama, vocabulary, ffn, length):
        super().__init__()
        self.llama = llama
        self.tokens = nn.Embedding(vocabulary, HIDDEN)
        self.blocks = nn.ModuleList(Block(llama, ffn) for _ in range(LAYERS))
        self.head = nn.Linear(HIDDEN, vocabulary, bias=False)
        if llama:
            self.norm = nn.RMSNorm(HIDDEN, eps=1e-6)
            size = HIDDEN // HEADS
            angles = torch.outer(torch.arange(length),
                                 10000 ** -(torch.arange(0, size, 2) / size)).repeat(1, 2)
            self.register_buffer("cosine", angles.cos())
            self.register_buffer("sine", angles.sin())
        else:
            self.norm = nn.LayerNorm(HIDDEN)
            self.positions = nn.Parameter(torch.empty(length, HIDDEN))
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
    model = Decoder(**MODELS[options.model], length=options.sequence)
    ids = torch.randint(256, (steps, options.batch, options.sequence + 1))
    return model, [(ids[step, :, :-1], ids[step, :, 1:]) for step in range(steps)]


def peak_of_steps():
    """Bytes of resident memory at most since the peak was last cleared."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def clear_peak():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=(*MODELS, IMAGES), required=True)
    parser.add_argument("--precision", choices=("f32", "bf16"), required=True)
    parser.add_argument("--mode", choices=("eager", "compile"), required=True)
    for name in ("--sequence", "--batch", "--steps", "--threads"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--export", type=Path, help="a folder for model.onnx and images.safetensors")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)

    if options.export:
        export(options.export, 8 * options.batch)
        return
    model, batches = make(options, options.steps + 2)
    decayed = [p for p in model.parameters() if p.dim() > 1]
    spared = [p for p in model.parameters() if p.dim() <= 1]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": spared, "weight_decay": 0}],
                                  lr=3e-4, betas=(0.9, 0.95), fused=True)
    call = torch.compile(model) if options.mode == "compile" else model

    times = []
    for step in range(options.steps + 2):
        if step == 2:
            clear_peak()
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.precision == "bf16"):
            loss = call(*batches[step])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        assert math.isfinite(loss.item())
        times.append((time.perf_counter() - start) * 1e3)
    print(json.dumps({"ms": times[2:], "peak": peak_of_steps(), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
