#!/usr/bin/python3
#===- overlap.py - collectives beside computation change no bit ------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs programs for hosts with slow links, whose collectives run beside computation, in several ways, and compares.

    overlap.py --bin bin

Weights and states of the optimizer after some steps, and the gradients of a step, must have the same bits with
--no-overlap, on threads, by TCP and by MPI, and whatever the order in which threads run: WEFT_TEST_SHAKE makes each
of them sleep at random before instructions. On links that only move bytes in memory nothing runs beside computation.
Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran. Started by root, it needs the
two variables of Open MPI that docs/Running.md names.
"""

import os
import re
import sys

from examples_bench import ROOT, Bench, main_of, run, tensors_of

STEPS = 3
SEEDS = range(4)
# Upper bounds of random sleeps, in seconds: about as long as a kernel, or as a collective.
SLEEPS = (0.0002, 0.004)
# Smaller than the examples.
SMALL = (("sequence_length: 128", "sequence_length: 32"), ("global_batch_sequences: 16", "global_batch_sequences: 4"))
# Slow links instead of those of machines/laptop.textproto, and two cores for each rank.
SLOW = (("latency_seconds: 1e-6", "latency_seconds: 1e-4"),
        ("bandwidth_bytes_per_second: 3.2e9", "bandwidth_bytes_per_second: 2e7"), ("cores: 1", "cores: 2"))
# The example, pins, lines for the recipe and the model, and whether programs run by TCP and MPI as well.
CASES = (
    ("llama-tiny", "dp=2", "", "", True),
    ("llama-tiny", "dp=2,zero=3", "precision: BF16", "", True),
    ("llama-tiny", "dp=2,zero=2,accumulation=2", "precision: F64", "", False),
    ("llama-tiny", "dp=2,tp=2,sp=true,zero=3", "", "dropout: 0.1", False),
    ("llama-tiny", "pp=2,dp=2,zero=1,accumulation=2", "", "", False),
    ("mixtral-tiny", "ep=2", "", "", False),
)
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
TORCHRUN = ROOT / "runtime/tests/torchrun.py"


class OverlapBench(Bench):
    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        text = (ROOT / "machines/laptop.textproto").read_text()
        (folder / "fast").write_text(text)
        for old, new in SLOW:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "slow").write_text(text)

    def describe(self, name, recipe, model):
        super().describe(name, recipe, model)
        text = (self.folder / "recipe").read_text()
        for old, new in SMALL:
            text = text.replace(old, new)
        (self.folder / "recipe").write_text(text)

    def compiled_for(self, machine, pins):
        """Compiles, and returns the numbers of instructions beside computation and of ranks."""
        told = run([self.tools / "weft", "compile", "model", "--recipe", "recipe", "--machine", machine, "--pin", pins,
                    "--target", "host", "-o", "train"], self.folder)
        beside = re.findall(r", (\d+) beside computation", told)
        return sum(map(int, beside)), int(re.search(r"\bfor (\d+) ranks\b", told)[1])

    def results(self, launcher, *options, **environment):
        """All tensors after a run."""
        command = ["./train", "--data", "text", "--steps", STEPS, "--save", "saved", "--save-gradients", "gradients",
                   "--timeout", 30, *options]
        run([*launcher, *command], self.folder, {**os.environ, **MPI, **environment})
        return {**tensors_of(self.folder / "saved"), **tensors_of(self.folder / "gradients")}

    def ways(self, ranks, by_processes):
        """The launcher, options and environment of each run, with a name."""
        yield "--threads 1", [], ["--threads", 1], {}
        yield "WEFT_TEST_LINK", [], [], {"WEFT_TEST_LINK": "1e-4,1e8"}
        for seed in SEEDS:
            shake = {"WEFT_TEST_SHAKE": f"{seed},{SLEEPS[seed % len(SLEEPS)]}"}
            yield f"seed {seed}", [], [], shake
        if by_processes:
            tcp = [sys.executable, TORCHRUN, "-n", ranks]
            mpi = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", ranks]
            yield "tcp", tcp, [], {}
            yield "tcp --no-overlap", tcp, ["--no-overlap"], {}
            yield "tcp, seed 7", tcp, [], {"WEFT_TEST_SHAKE": f"7,{SLEEPS[1]}", "WEFT_TEST_LINK": "1e-4,1e8"}
            yield "mpi", mpi, [], {}
            yield "mpi, seed 8", mpi, [], {"WEFT_TEST_SHAKE": f"8,{SLEEPS[0]}"}

    def check_case(self, example, pins, recipe, model, by_processes):
        self.describe(example, recipe, model)
        beside, ranks = self.compiled_for("slow", pins)
        if beside == 0:
            return "nothing runs beside computation"
        expected = self.results([], "--no-overlap")
        faults = []
        for name, launcher, options, environment in [("overlap", [], [], {}), *self.ways(ranks, by_processes)]:
            got = self.results(launcher, *options, **environment)
            wrong = [tensor for tensor in expected if got.get(tensor) != expected[tensor]]
            if wrong or got.keys() != expected.keys():
                faults.append(f"{name}: {len(wrong)} of {len(expected)} tensors differ, as {', '.join(wrong[:3])}")
        return "; ".join(faults) or None

    def check_fast(self, example, pins):
        self.describe(example, "", "")
        beside, _ = self.compiled_for("fast", pins)
        return f"{beside} instructions beside computation, expected none" if beside else None


def check_all(bench):
    for case in CASES:
        bench.tell(re.sub(" +", " ", " ".join(case[:4])).strip(), bench.check_case, *case)
    for example, pins in (("llama-tiny", "dp=2"), ("llama-tiny", "dp=2,zero=3")):
        bench.tell(f"{example} {pins} on fast links", bench.check_fast, example, pins)


if __name__ == "__main__":
    sys.exit(main_of(__doc__, OverlapBench, check_all))
