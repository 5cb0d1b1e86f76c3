#===- gpu_torch.py - PyTorch's side of utils/gpu/check -----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs benchmarks/torch_step.py, which begins with a program's weights and sees its samples, in a process of its own.
"""

import contextlib
import json
import os
import re
import threading
import time

from gpu_kit import ROOT, Late
from gpu_process import Process

# How far losses may be from PyTorch's, relatively. In float32 they are the means of numbers with last bits of 6e-8, and
# up to 1.5e-7 apart on processors in 20 steps; a device's sums are in other orders. In bf16 PyTorch's autocast keeps
# the residual stream in float32, which ours rounds: there they were up to 5e-4 apart.
MOST = {"F32": 1e-5, "BF16": 5e-3}
# Seconds that rows wait for PyTorch's answer about itself, in JSON.
PATIENCE = 90
ASKED = """
import json, torch
device = torch.cuda.is_available()
print(json.dumps({"torch": torch.__version__, "device": device, "cudnn": device and torch.backends.cudnn.version(),
                  "nccl": device and torch.cuda.nccl.version()}))
"""
SHORT = re.compile(r"^torch\.(?:cuda\.)?OutOfMemoryError: .*", re.MULTILINE)
REFUSED = re.compile(r"^(?:torch\._(?:dynamo|inductor)\.exc\.|RuntimeError: .*torch\.compile).*", re.MULTILINE)
ERROR = re.compile(r"^[\w.]+(?:Error|Exception): .*", re.MULTILINE)


class Unable(Exception):
    """PyTorch cannot run here, which is no failure; the text says why."""


class Asked:
    """Asks an interpreter for its PyTorch in the background. Several threads may read the answer."""

    def __init__(self, python):
        self.python, self.lock, self.told, self.process = python, threading.Lock(), None, None
        self.end = time.monotonic() + PATIENCE
        try:
            self.process = Process([python, "-c", ASKED], None)
        except OSError as error:
            self.told = None, f"{python}: {error.strerror}"

    def answer(self, seconds):
        """Returns the answer so far: PyTorch's version and device, or None and the reason."""
        with self.lock:
            seconds = max(min(seconds, self.end - time.monotonic()), 0.1)
            if not self.told and not self.process.wait(seconds):
                return None, f"{self.python} does not answer in {seconds:.0f} s"
            self.told = self.told or self.read()
            return self.told

    def read(self):
        if self.process.status != 0:
            return None, last_line(self.process.errors)
        try:
            return json.loads(last_line(self.process.output)), ""
        except ValueError:
            return None, f"{self.python} says: {last_line(self.process.output)[:200]}"

    def close(self):
        if self.process:
            self.process.__exit__()


def ask(python, seconds=60):
    """Returns PyTorch's version and device, or None and the reason why there is no answer."""
    with contextlib.closing(Asked(python)) as asked:
        return asked.answer(seconds)


def last_line(text):
    return (text.strip().splitlines() or ["without a word"])[-1]


def train(python, training, folder, text, device, mode, steps, seconds, warm=2):
    """Runs torch_step.py for `steps`, the first of them as a warm-up, and returns its result."""
    model, recipe = training.describe(folder)
    command = [python, "-W", "ignore", ROOT / "benchmarks/torch_step.py", "--model", model, "--recipe", recipe,
               "--data", text, "--device", device, "--mode", mode, "--warm", warm, "--steps", steps - warm, "--threads",
               min(len(os.sched_getaffinity(0)), 8)]
    with Process(command, {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
                           "TRITON_CACHE_DIR": str(folder / "triton")}) as trained:
        in_time = trained.wait(seconds)
        # The process may print its answer and then hang.
        if trained.output.endswith("\n") and trained.status in (None, 0):
            return json.loads(last_line(trained.output))
        if not in_time:
            raise Late(f"PyTorch {mode} is not finished after {seconds:.0f} s")
        raise why(mode, trained.errors)


def why(mode, errors):
    """Returns the exception for the output of a failed run."""
    for unable in (SHORT, REFUSED) if mode == "compile" else (SHORT,):
        if found := unable.search(errors):
            return Unable(f"PyTorch {mode} cannot: {found[0][:200]}")
    found = ERROR.findall(errors)
    return RuntimeError(f"PyTorch {mode} fails: {(found[-1] if found else last_line(errors))[:200]}")


def furthest(ours, theirs):
    """Returns the largest distance of losses from PyTorch's; infinite if their numbers differ."""
    if len(ours) != len(theirs["losses"]):
        return float("inf")
    return max(abs(step["loss"] / loss - 1) for step, loss in zip(ours, theirs["losses"]))
