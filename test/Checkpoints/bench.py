#===- bench.py - a small program that can be stopped and resumed ----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compiles a small model, trains it, and compares the result with that of an uninterrupted run.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "Execution"))
import cases  # noqa: E402

# Seconds that a command may take; more is a hang.
TIME_LIMIT = 120

MODEL = """version: 1
name: "stopped"
layers: 1
hidden: 8
heads: 4
ffn: 16
norm: RMS_NORM
activation: SWIGLU
positions: ROTARY
vocabulary: 256
dropout: 0.1
"""

RECIPE = """version: 1
sequence_length: 8
global_batch_sequences: 4
adamw { weight_decay: 0.1 }
schedule { peak_learning_rate: 1e-2 warmup_steps: 2 decay: COSINE }
clip_norm: 1.0
steps: 40
precision: F64
"""


@dataclass
class Result:
    """The exit status and output of a run. `status` is None if it was killed."""

    status: int
    out: str
    err: str

    @property
    def resumed_at(self):
        found = re.search(r"^going on at step (\d+)", self.out, re.MULTILINE)
        return int(found[1]) if found else 0


class Bench:
    """A folder with programs and data, one for runs, and the checks made so far."""

    def __init__(self, weft, folder, runs):
        self.weft, self.folder, self.runs = Path(weft).resolve(), Path(folder), Path(runs)
        self.passed = self.failed = 0
        for name, text in (("model.textproto", MODEL), ("recipe.textproto", RECIPE),
                           ("machine.textproto", cases.MACHINE),
                           ("text", cases.training_text(1 << 13))):
            (self.folder / name).write_text(text)

    def compile(self, mesh):
        """Returns the program for `mesh`, (dp, tp) or (dp, tp, pins), compiled on first use.

        With ZeRO-1, the default, every rank has optimizer states that no other has, and parameters
        that others have too.
        """
        dp, tp, *more = mesh
        more = more or ["zero=1"] * (dp > 1)
        program = self.folder / "-".join(["train", str(dp), str(tp), *more])
        if program.exists():
            return program
        pins = ",".join([f"dp={dp}", f"tp={tp}", *more])
        done = subprocess.run(
            [self.weft, "compile", "model.textproto", "--machine", "machine.textproto", "--recipe",
             "recipe.textproto", "--pin", pins, "-o", program],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            sys.exit(f"cannot compile:\n{done.stdout}")
        return program

    def place(self, name):
        """Returns an empty folder."""
        place = self.runs / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        return place

    def train(self, program, place, steps, *options, kill_after=None, environment=None):
        """Trains in the folder `place`; kills the run after so many seconds unless it has ended."""
        command = [program, "--data", self.folder / "text", "--steps", str(steps), "--no-progress",
                   "--metrics", "metrics", "--save", "saved", *map(str, options)]
        process = subprocess.Popen(command, cwd=place, env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   errors="replace")
        try:
            out, err = process.communicate(timeout=TIME_LIMIT if kill_after is None else kill_after)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            if kill_after is None:
                return Result(-1, out, err + f"not done after {TIME_LIMIT} s")
        status = process.returncode
        return Result(None if status == -signal.SIGKILL else status, out, err)

    def check(self, what, *faults):
        """Counts one check; it fails if one of `faults` is a text."""
        faults = [fault for fault in faults if fault]
        for fault in faults:
            print(f"FAIL: {what}: {fault}", flush=True)
        self.failed += bool(faults)
        self.passed += not faults
        return not faults

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def metrics(place):
    """Returns step, loss and norm of each complete line of the metrics."""
    path = place / "metrics"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [tuple(json.loads(line)[key] for key in ("step", "loss", "gradient_norm"))
            for line in lines]


def different(place, whole):
    """Returns the differences between the results in `place` and in `whole`; None without any."""
    if (place / "saved").read_bytes() != (whole / "saved").read_bytes():
        return "the weights are not those of the unbroken run"
    if metrics(place) != metrics(whole):
        return "the metrics are not those of the unbroken run"
    return None


def folders(place):
    """Returns the names in the checkpoint folder, sorted."""
    folder = place / "ck"
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def arguments(description):
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    return parser


def main(options, *groups):
    """Makes a bench, calls each group with it and the options, and gives the exit status."""
    # A kill loses no written bytes, so runs need no disk, which is slow.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory(dir=memory) as runs:
        bench = Bench(options.weft, folder, runs)
        for group in groups:
            group(bench, options)
        return bench.end()
