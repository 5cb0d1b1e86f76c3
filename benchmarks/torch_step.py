#===- torch_step.py - a training step by PyTorch -----------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Trains models written to be fast in PyTorch; benchmarks/host-step and utils/gpu/check compare with them.

    torch_step.py --model MODEL.textproto --recipe RECIPE.textproto --data TEXT --steps 4 [--mode compile]

Fused attention, a fused AdamW, clipping by PyTorch's own function, gradients set to none; bf16 by
autocast with float32 weights. Weights, samples and rates are those of a program with the same files
(torch_model.py), so losses can be compared. `--model resnet-50` is torchvision's instead, on random
images of 224 x 224, in the order of channels that is fastest. Prints one line of JSON: losses of all
steps, milliseconds of each step after the warm-up, and the peak memory of the process during these steps.
With --device cuda the milliseconds are the mean of these steps, between which nothing waits for the device, and
the memory is PyTorch's allocated and reserved memory and the memory that all processes use on the device; in bf16
attention must be fused. With --export, writes the model for images as ONNX, and images, and trains nothing.
"""

import argparse
import contextlib
import json
import math
import os
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from torch_model import Decoder, Samples, Sizes, fields

IMAGES = "resnet-50"
SIDE, CLASSES = 224, 1000


@dataclass(frozen=True)
class Recipe:
    """The fields of a recipe, as in proto/weft/recipe.proto."""
    sequence: int
    batch: int
    precision: str
    adamw: dict
    schedule: dict
    steps: int
    clip_norm: float
    z_loss: float
    seed: int

    @classmethod
    def of(cls, path):
        said = fields(path, "version", "sequence_length", "global_batch_sequences", "global_batch_tokens",
                      "global_batch_samples", "precision", "adamw", "schedule", "clip_norm", "z_loss", "loss_chunks",
                      "steps", "seed")
        sequence = said.get("sequence_length", 1)
        batch = said.get("global_batch_sequences") or said.get("global_batch_samples")
        plain = {part: {name: values[-1] for name, values in said[part].items()} for part in ("adamw", "schedule")}
        return cls(sequence, batch or said["global_batch_tokens"] // sequence, said.get("precision", "F32"), **plain,
                   steps=said["steps"], clip_norm=said.get("clip_norm", math.inf), z_loss=said.get("z_loss", 0),
                   seed=said.get("seed", 0))

    def rate(self, step):
        """Returns the learning rate of a step, by docs/Numerics.md, The optimizer, 4."""
        peak, warmup = self.schedule["peak_learning_rate"], self.schedule.get("warmup_steps", 0)
        if step < warmup:
            return peak * (step + 1) / warmup
        left = self.steps - warmup
        way = min(1, (step - warmup) / left) if left else 1
        end, decay = self.schedule.get("final_learning_rate_fraction", 0.1), self.schedule.get("decay", "COSINE")
        return peak * {"CONSTANT": 1, "LINEAR": 1 - (1 - end) * way,
                       "COSINE": end + (1 - end) * (1 + math.cos(math.pi * way)) / 2}[decay]

    def optimizer(self, model):
        said = self.adamw
        decayed = [p for p in model.parameters() if p.dim() > 1]
        spared = [p for p in model.parameters() if p.dim() <= 1]
        return torch.optim.AdamW([{"params": decayed, "weight_decay": said.get("weight_decay", 0.1)},
                                  {"params": spared, "weight_decay": 0}], lr=self.rate(0),
                                 eps=said.get("epsilon", 1e-8),
                                 betas=(said.get("beta1", 0.9), said.get("beta2", 0.95)), fused=True)


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


def make(options, recipe, steps):
    """Returns the model and its inputs for each step."""
    if options.model == IMAGES:
        model = Classifier().to(options.device, memory_format=torch.channels_last)
        return model, [(torch.randn(recipe.batch, 3, SIDE, SIDE).to(
            memory_format=torch.channels_last), torch.randint(CLASSES, (recipe.batch,)))
            for _ in range(steps)]
    model = Decoder(Sizes.of(options.model), recipe.sequence, recipe.z_loss, recipe.seed, options.device)
    samples = Samples(options.data, recipe.sequence, recipe.batch, recipe.seed)
    return model, [samples.of_step(step) for step in range(steps)]


def peak_of_steps(device):
    """Returns the peak memory in bytes since the peak was last cleared."""
    if device == "cuda":
        free, whole = torch.cuda.mem_get_info()
        return {"peak": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved(),
                "device": whole - free}
    with open("/proc/self/status") as status:
        return {"peak": next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))}


def clear_peak(device):
    if device == "cuda":
        return torch.cuda.reset_peak_memory_stats()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return None


def attention(options, recipe):
    """Requires fused attention, except in float32, where no fused kernel has grouped queries."""
    if options.device == "cuda" and recipe.precision == "BF16":
        return sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION])
    return contextlib.nullcontext()


def now(device):
    """Returns the time in seconds, after waiting for the device."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def train(model, batches, recipe, options):
    """Trains one step per batch; returns losses, milliseconds and peak memory in bytes."""
    optimizer, losses, times = recipe.optimizer(model), [], []
    call = torch.compile(model) if options.mode == "compile" else model
    for step, batch in enumerate(batches):
        if step == options.warm:
            clear_peak(options.device)
        if step == options.warm or options.device == "cpu":
            times.append(now(options.device))
        for group in optimizer.param_groups:
            group["lr"] = recipe.rate(step)
        with attention(options, recipe), torch.autocast(options.device, torch.bfloat16,
                                                        enabled=recipe.precision == "BF16"):
            loss = call(*batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.detach())
    times.append(now(options.device))
    losses = [loss.item() for loss in losses]
    assert all(map(math.isfinite, losses))
    return {"losses": losses, "ms": milliseconds(times, options), "torch": torch.__version__,
            **peak_of_steps(options.device)}


def milliseconds(times, options):
    """Returns the milliseconds of each timed step, or their mean."""
    if options.device == "cuda":
        return [(times[1] - times[0]) * 1e3 / options.steps]
    return [(end - start) * 1e3 for start, end in zip(times[options.warm:], times[options.warm + 1:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help=f"a description, or {IMAGES}")
    parser.add_argument("--recipe", type=Path, required=True, help="of F32, F64 or BF16, and AdamW")
    parser.add_argument("--data", type=Path, help="a file whose bytes are tokens")
    parser.add_argument("--mode", choices=("eager", "compile"), default="eager")
    parser.add_argument("--steps", type=int, required=True, help="besides those that warm up")
    parser.add_argument("--warm", type=int, default=2, help="steps that warm up (2)")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--export", type=Path, help="a folder for model.onnx and images.safetensors")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    recipe = Recipe.of(options.recipe)
    if recipe.precision not in ("F32", "F64", "BF16"):
        raise ValueError(f"expected precision F32, F64 or BF16, got {recipe.precision}")
    if recipe.precision == "F64":
        torch.set_default_dtype(torch.float64)
    if options.export:
        return export(options.export, 8 * recipe.batch)
    model, batches = make(options, recipe, options.steps + options.warm)
    batches = [tuple(tensor.to(options.device) for tensor in batch) for batch in batches]
    print(json.dumps(train(model, batches, recipe, options)), flush=True)
    # What has compiled may make the interpreter's end wait for 300 seconds (pytorch#162199).
    return os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
