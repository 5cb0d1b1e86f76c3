#===- gpu_torch.py - PyTorch's side of utils/gpu-check -----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs benchmarks/torch_step.py, which begins with a program's weights and sees its samples, in a process of its own.
"""

import json
import os
import subprocess

from gpu_kit import ROOT

# How far losses may be from PyTorch's, relatively. In float32 they are the means of numbers with last bits of 6e-8, and
# up to 1.5e-7 apart on processors in 20 steps; a device's sums are in other orders. In bf16 PyTorch's autocast keeps
# the residual stream in float32, which ours rounds: there they were up to 5e-4 apart.
MOST = {"F32": 1e-5, "BF16": 5e-3}
# Steps of torch_step.py that it does not measure.
WARM = 2


class Fails(Exception):
    """PyTorch does not do it, which is not ours; says why."""


def ask(python, expression="torch.__version__"):
    """What PyTorch says of itself, or None and why it says nothing."""
    try:
        done = subprocess.run([python, "-c", f"import torch; print({expression})"], capture_output=True, text=True,
                              check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if done.returncode != 0:
        return None, last_line(done.stderr)
    return done.stdout.strip(), ""


def last_line(text):
    return (text.strip().splitlines() or ["without a word"])[-1][:200]


def train(python, training, folder, text, device, mode, steps, seconds):
    """What torch_step.py says; `steps` are all."""
    model, recipe = training.describe(folder)
    command = [python, "-W", "ignore", ROOT / "benchmarks/torch_step.py", "--model", model, "--recipe", recipe,
               "--data", text, "--device", device, "--mode", mode, "--steps", steps - WARM, "--threads",
               min(len(os.sched_getaffinity(0)), 8)]
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                              timeout=seconds, env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
                                                    "TRITON_CACHE_DIR": str(folder / "triton")})
    except subprocess.TimeoutExpired:
        raise Fails("is not finished in time") from None
    except OSError as error:
        raise Fails(f"does not start: {error.strerror}") from None
    if done.returncode != 0:
        raise Fails("fails: " + last_line(done.stderr))
    return json.loads(done.stdout.strip().splitlines()[-1])


def furthest(ours, theirs):
    """How far losses are from PyTorch's; infinitely if there are more or less of them."""
    if len(ours) != len(theirs["losses"]):
        return float("inf")
    return max(abs(step["loss"] / loss - 1) for step, loss in zip(ours, theirs["losses"]))
