#!/usr/bin/python3
#===- resident.py - the memory of a run is that of its plan ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compares the most memory that processes of a run held with the arenas of their ranks, which the compiler predicts.

    resident.py --bin bin [--print]

A process may hold at most 1 % more than its arenas, and the constants of docs/Running.md for itself and for each thread
of its ranks: whether it begins anew, loads weights of another type or split, resumes from a checkpoint, saves, or reads
data much larger than a batch. Tensors that are loaded and saved again by another split must be the same. Prints a line
for each case, with --print the figures, too; then "N passed, N failed"; fails if one failed or none ran.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Execution"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "runtime/tests"))
import torchrun  # pylint: disable=wrong-import-position
from examples_bench import ROOT, Bench, main_of, run, tensors_of  # pylint: disable=wrong-import-position

MIB = 1 << 20
# The same in docs/Running.md.
PROCESS, THREAD = 24 * MIB, 16 * MIB
# A large table and a large head, so that most memory is in few tensors, and a step is short.
MODEL = (("vocabulary: 256", "vocabulary: 40003"),)
SMALL = (("sequence_length: 32", "sequence_length: 64"), ("global_batch_sequences: 16", "global_batch_sequences: 4"))
BF16 = "precision: BF16"
STEPS = 3
# More than `Dataset::kCheckedAtOpen`, so that samples are read as they come.
DATA_BYTES = 40 * MIB

# How, pins, lines for the recipe, options of the run.
CASES = (
    ("local", "dp=1", "", ()),
    ("local", "dp=1", "", ("--data", "large", "--data-format", "bytes", "--validation-split", "0.5",
                           "--validation-steps", "60")),
    ("local", "dp=1", "", ("--save", "weights", "--checkpoint-dir", "checkpoints")),
    ("local", "dp=1", "", ("--load", "weights", "--steps", "6")),
    ("local", "dp=1", "", ("--steps", "6", "--checkpoint-dir", "checkpoints", "--checkpoint-every", "1")),
    ("local", "dp=1", BF16, ("--threads", "1")),
    ("local", "dp=1", BF16, ("--load", "weights", "--steps", "6")),
    ("local", "dp=2,zero=3", "", ("--load", "weights", "--save", "again")),
    ("local", "dp=3,zero=1", "global_batch_sequences: 6", ("--save", "other")),
    ("local", "tp=2", "", ("--steps", "8", "--checkpoint-dir", "checkpoints")),
    ("local", "pp=2,accumulation=2,recompute=full", "", ("--load", "weights", "--save", "again")),
    ("tcp", "dp=2", "", ()),
    ("tcp", "tp=2", "", ("--load", "weights", "--save", "again")),
    ("tcp", "pp=2,accumulation=2", BF16, ()),
)


# Runs a command and prints its peak of resident memory in KiB. A process of its own, as a peak is never less than the
# memory of the process that has started the command.
RUN = """
import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
"""


class ResidentBench(Bench):
    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        machine = (ROOT / "machines/laptop.textproto").read_text()
        (folder / "machine").write_text(machine.replace("cores: 1", "cores: 2"))
        (folder / "large").write_bytes(bytes(range(256)) * (DATA_BYTES // 256))
        self.figures = ""

    def prepare(self, pins, recipe):
        """Compiles a program into `train`."""
        self.describe("llama-tiny", "", "")
        for what, changes in (("model", MODEL), ("recipe", SMALL)):
            text = (self.folder / what).read_text()
            for old, new in changes:
                text = text.replace(old, new)
            (self.folder / what).write_text(text)
        if "global_batch" in recipe:
            text = (self.folder / "recipe").read_text()
            (self.folder / "recipe").write_text(re.sub(r"global_batch_sequences: \d+", "", text))
        with open(self.folder / "recipe", "a") as file:
            file.write(recipe + "\n")
        run([self.tools / "weft", "compile", "model", "--recipe", "recipe", "--machine", "machine", "--pin", pins,
             "--target", "host", "-o", "train"], self.folder)

    def arenas(self):
        """The bytes of the arena of each rank, and the threads of each."""
        run(["./train", "--data", "text", "--steps", 1, "--profile", "profile"], self.folder)
        profile = json.loads((self.folder / "profile").read_text())
        classes = profile if isinstance(profile, list) else [profile]
        return [each["arena_bytes"] for each in classes for _ in range(each["ranks"])], classes[0]["threads_per_rank"]

    def peaks(self, how, command, ranks):
        """Runs a program; returns the peak of each process."""
        variables = [{}]
        if how == "tcp":
            store, port = torchrun.take_port("127.0.0.1")
            store.close()
            variables = torchrun.variables(ranks, port)
        processes = [subprocess.Popen([sys.executable, "-c", RUN, *command], cwd=self.folder, text=True,
                                      env={**os.environ, **added}, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                     for added in variables]
        ends = [process.communicate() for process in processes]
        if any(process.returncode for process in processes):
            raise RuntimeError("".join(error for _, error in ends).strip())
        return [int(peak) * 1024 for peak, _ in ends]

    def check_case(self, how, pins, recipe, options):
        self.prepare(pins, recipe)
        given = [word for name, word in (("--data", "text"), ("--steps", str(STEPS))) if name not in options
                 for word in (name, word)]
        arenas, threads = self.arenas()
        peaks = self.peaks(how, ["./train", *given, *options], len(arenas))
        constant = PROCESS + THREAD * threads
        if how == "local":
            constant = PROCESS + THREAD * threads * len(arenas)
            arenas = [sum(arenas)]
        over = [peak - arena for peak, arena in zip(peaks, arenas, strict=True)]
        self.figures = ", ".join(f"{peak / MIB:.1f} MiB with arenas of {arena / MIB:.1f} MiB, {threads} threads a rank"
                                 for peak, arena in zip(peaks, arenas, strict=True))
        for excess, arena in zip(over, arenas, strict=True):
            if excess > arena / 100 + constant:
                return (f"a process held {excess / MIB:.1f} MiB beside arenas of {arena / MIB:.1f} MiB, expected at "
                        f"most 1 % and {constant / MIB:.0f} MiB")
        if "again" in options and tensors_of(self.folder / "again") != tensors_of(self.folder / "weights"):
            return "tensors that were loaded and saved again differ"
        return None


def check_all(bench, prints):
    for case in CASES:
        how, pins, recipe, options = case
        bench.tell(" ".join(word for word in (how, pins, recipe, *options) if word), bench.check_case, *case)
        if prints:
            print("    ", bench.figures)


if __name__ == "__main__":
    PRINTS = "--print" in sys.argv
    sys.argv = [word for word in sys.argv if word != "--print"]
    sys.exit(main_of(__doc__, ResidentBench, lambda bench: check_all(bench, PRINTS)))
