#===- gpu_bench.py - the base of rows of utils/gpu/check ---------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""A row of the table, and its tools for measuring.

The figures that a row has measured stay in the table even if the row fails.
"""

import copy
import json
import os
import statistics
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

import gpu_torch
from gpu_kit import TEXT, Late, read_steps
from gpu_process import Process

# Default number of threads of a program for the host.
THREADS = 4
# CUDA's libraries, as weft-rt-kernels names them, and the most seconds that asking for them takes.
CUBLASLT, CUDNN, NCCL = LIBRARIES = ("matmuls", "attention", "collectives")
ASKING = 30
# The runtime's words for a library that is not there.
ABSENT = "cannot load "


class Skip(Exception):
    """The row cannot be tested on this machine; the text says why."""


@dataclass
class Row:
    """`seconds` is the planned duration; `measure(bench, seconds)` returns the text of the result. A `needed` row
    keeps its seconds even if rows before it take longer. A row that measures no time says how many `processors` it
    uses, and runs beside others that use as many. `libraries` are those of LIBRARIES that it cannot do without."""
    what: str
    seconds: float
    measure: object
    success: str = "pass"
    needed: bool = False
    processors: int = 0
    libraries: tuple = ()


@dataclass
class Found:
    """Figures that rows leave for later rows."""
    ceilings: dict = field(default_factory=dict)
    # By training: steps of runs that measure speed, and GiB of the arena and of the device.
    speeds: dict = field(default_factory=dict)
    # By training and mode: losses of PyTorch's runs that measure speed.
    theirs: dict = field(default_factory=dict)
    # By training: steps of runs that compare losses.
    steps: dict = field(default_factory=dict)
    # By library: the reason why programs cannot call it, empty if they can; None until it is asked for.
    missing: dict = None


class Bench:
    """The tools that all rows share; `for_row` makes a copy for one row."""

    def __init__(self, kit, options, folder):
        self.kit, self.options, self.folder = kit, options, folder
        self.is_real = not options.library
        # All rows share the cache of matmuls' algorithms; the user's home may not be writable.
        self.environment = {**os.environ, **kit.environment(), "XDG_CACHE_HOME": str(folder / "cache")}
        # Notes of a row beside its result, and its figures for other rows.
        self.found, self.said, self.printed, self.figures = Found(), [], "", {}
        self.asking = threading.Lock()
        if options.library:
            self.environment["WEFT_RT_CUDA"] = str(options.library)
        self.text = folder / "text"
        self.text.write_bytes(TEXT)
        # Importing PyTorch takes long, mostly for reading the disk, so it begins at once.
        self.torch = gpu_torch.Asked(options.python)

    def for_row(self):
        own = copy.copy(self)
        own.folder, own.said, own.printed, own.figures = Path(tempfile.mkdtemp(dir=self.folder)), [], "", {}
        return own

    def close(self):
        self.torch.close()

    def run(self, command, seconds, environment=None, statuses=(0,)):
        """Runs a command and returns its output; raises with the output if it fails or takes too long."""
        try:
            with Process(command, {**self.environment, **(environment or {})}) as process:
                is_done = process.wait(max(seconds, 1))
                self.printed = process.errors + process.output
                if not is_done:
                    raise Late(f"not finished after {max(seconds, 1):.0f} s{so_far(process.output)}",
                               process.errors + process.output)
                if process.status not in statuses:
                    raise RuntimeError((process.errors or process.output).strip()[-2000:]
                                       or f"{command[0]} ends with status {process.status}")
                return process.output
        except FileNotFoundError as error:
            # Programs found in PATH are not the kit's.
            if "/" in str(command[0]):
                raise
            raise Skip(f"{command[0]}: {error.strerror}") from None

    def train(self, training, target, steps, seconds, *more, environment=None, threads=THREADS):
        """Runs one rank, with `more` on its command line, on the host with `threads`; returns its steps' figures."""
        metrics = self.folder / "metrics"
        metrics.unlink(missing_ok=True)
        more += ("--threads", threads) if target == "host" else ()
        self.run([self.kit.program(training, target), "--data", self.text, "--steps", steps, "--metrics",
                                 metrics, *more], seconds, environment)
        return read_steps(metrics)

    def missing(self):
        """Returns the reason why each library cannot be called; empty if the question fails, since rows then tell more.
        Several threads may ask."""
        with self.asking:
            if self.found.missing is None:
                self.found.missing = self.ask_libraries()
            return self.found.missing

    def ask_libraries(self):
        own = self.for_row()
        report = own.folder / "report.json"
        try:
            # As for ranks that share a device: machines without a network have no other interface.
            own.run([self.kit.tool("weft-rt-kernels"), "--libraries", "--json", report], ASKING,
                    {"NCCL_SOCKET_IFNAME": "lo"})
            return json.loads(report.read_text())["missing"]
        except (RuntimeError, Skip, OSError, ValueError):
            return {}

    def need(self, libraries):
        """Skips a row that needs one of these libraries if it, or a part of it, is missing. One that fails otherwise is
        no reason: the row shows how."""
        for library in libraries:
            reason = self.missing().get(library, "")
            if reason.startswith(ABSENT):
                raise Skip(reason)

    def ask_torch(self, seconds):
        """Returns PyTorch's version and device."""
        found, reason = self.torch.answer(max(min(60, seconds), 1))
        if not found:
            raise Skip(f"there is no PyTorch: {reason}")
        if self.is_real and not found["device"]:
            raise Skip(f"PyTorch {found['torch']} sees no device")
        return found

    def plugin(self):
        """Returns the path of the library through which the runtime calls CUDA."""
        name = "libweft-rt-cuda.so.1"
        places = [self.kit.folder / name, *([self.kit.build / "lib" / name] if self.kit.build else [])]
        return self.options.library or next((place for place in places if place.exists()), None) or self.kit.missing(
            places[0])

    def only_real(self):
        if not self.is_real:
            raise Skip("this needs a device, and not its simulator")

    def only_real_if_large(self):
        """Skips rows of large models on the simulator."""
        if not self.options.reduced:
            self.only_real()


def so_far(output):
    """Returns the numbers of pass and FAIL lines that a stopped tool printed, and its last line."""
    lines = output.strip().splitlines()
    counts = [sum(line.startswith(state) for line in lines) for state in ("pass ", "FAIL ")]
    return (f", {counts[0]} passed and {counts[1]} failed so far" if any(counts) else "") + (
        f", at last: {lines[-1][:200]}" if lines else "")


def furthest(got, expected):
    return max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(got, expected, strict=True))


def wanted(is_met, what):
    return f" (wanted {what}: {'met' if is_met else 'MISSED'})" if what else ""


def median_speed(steps):
    """Returns the median of tokens per second, without the first step."""
    return statistics.median(step["tokens_per_second"] for step in steps[1:])
