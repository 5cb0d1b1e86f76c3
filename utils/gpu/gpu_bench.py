#===- gpu_bench.py - what rows of utils/gpu/check have in common -------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""A row of the table, and what it measures with.

What a row has measured stays in the table, however it ends.
"""

import copy
import os
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import gpu_torch
from gpu_kit import TEXT, Late, read_steps
from gpu_process import Process

# Threads of a program for the host, where a row does not say more.
THREADS = 4


class Skip(Exception):
    """Nothing can be shown here; says why."""


@dataclass
class Row:
    """`seconds` is what it is planned to take; `measure(bench, seconds)` returns what to say. Its success shows
    something, or is only told. One that is `needed` keeps its seconds, whatever those before it take; one that measures
    no time says how many `processors` it takes, and is tried beside others that take as many."""
    what: str
    seconds: float
    measure: object
    success: str = "pass"
    needed: bool = False
    processors: int = 0


@dataclass
class Found:
    """What rows find out for later ones."""
    ceilings: dict = field(default_factory=dict)
    # By training: steps of runs for speed, and GiB of the arena and of the device.
    speeds: dict = field(default_factory=dict)
    # By training, of runs for losses.
    steps: dict = field(default_factory=dict)


class Bench:
    """What all rows measure with; a row has one `for_row`."""

    def __init__(self, kit, options, folder):
        self.kit, self.options, self.folder = kit, options, folder
        self.is_real = not options.library
        # What is found out about matmuls is kept for all rows, where a home may be none's to write to.
        self.environment = {**os.environ, **kit.environment(), "XDG_CACHE_HOME": str(folder / "cache")}
        # Of a row: what it says beside its result, and figures that others compute with.
        self.found, self.said, self.printed, self.figures = Found(), [], "", {}
        if options.library:
            self.environment["WEFT_RT_CUDA"] = str(options.library)
        self.text = folder / "text"
        self.text.write_bytes(TEXT)
        # It takes a while, and is read from a disk, so it begins at once.
        self.torch = gpu_torch.Asked(options.python)

    def for_row(self):
        own = copy.copy(self)
        own.folder, own.said, own.printed, own.figures = Path(tempfile.mkdtemp(dir=self.folder)), [], "", {}
        return own

    def close(self):
        self.torch.close()

    def run(self, command, seconds, environment=None, statuses=(0,)):
        """What it prints; raises with that if it fails or takes too long."""
        try:
            with Process(command, {**self.environment, **(environment or {})}) as process:
                if not process.wait(max(seconds, 1)):
                    raise Late(f"not finished after {max(seconds, 1):.0f} s{so_far(process.output)}",
                               process.errors + process.output)
                if process.status not in statuses:
                    raise RuntimeError((process.errors or process.output).strip()[-2000:]
                                       or f"{command[0]} ends with status {process.status}")
                return process.output
        except FileNotFoundError as error:
            # What is looked for in PATH is not the kit's.
            if "/" in str(command[0]):
                raise
            raise Skip(f"{command[0]}: {error.strerror}") from None

    def train(self, training, target, steps, seconds, *more, environment=None, threads=THREADS):
        """What a run of one rank, with `more` on its command line, says of its steps. The host takes `threads`."""
        metrics = self.folder / "metrics"
        metrics.unlink(missing_ok=True)
        more += ("--threads", threads) if target == "host" else ()
        self.printed = self.run([self.kit.program(training, target), "--data", self.text, "--steps", steps, "--metrics",
                                 metrics, *more], seconds, environment)
        return read_steps(metrics)

    def ask_torch(self, seconds):
        """What PyTorch says of itself."""
        found, reason = self.torch.answer(max(min(60, seconds), 1))
        if not found:
            raise Skip(f"there is no PyTorch: {reason}")
        if self.is_real and not found["device"]:
            raise Skip(f"PyTorch {found['torch']} sees no device")
        return found

    def plugin(self):
        """The file through which the runtime calls CUDA."""
        name = "libweft-rt-cuda.so.1"
        places = [self.kit.folder / name, *([self.kit.build / "lib" / name] if self.kit.build else [])]
        return self.options.library or next((place for place in places if place.exists()), None) or self.kit.missing(
            places[0])

    def only_real(self):
        if not self.is_real:
            raise Skip("this needs a device, and not its simulator")

    def only_real_if_large(self):
        """Of a large model."""
        if not self.options.reduced:
            self.only_real()


def so_far(output):
    """Of a tool that is stopped: how many of its lines say pass and FAIL, and the last one."""
    lines = output.strip().splitlines()
    counts = [sum(line.startswith(state) for line in lines) for state in ("pass ", "FAIL ")]
    return (f", {counts[0]} passed and {counts[1]} failed so far" if any(counts) else "") + (
        f", at last: {lines[-1][:200]}" if lines else "")


def furthest(got, expected):
    return max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(got, expected, strict=True))


def wanted(is_met, what):
    return f" (wanted {what}: {'met' if is_met else 'MISSED'})" if what else ""


def median_speed(steps):
    """Tokens per second, without the first step."""
    return statistics.median(step["tokens_per_second"] for step in steps[1:])
