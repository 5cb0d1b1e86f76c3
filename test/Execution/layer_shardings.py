#!/usr/bin/python3
#===- layer_shardings.py - layers that are split differently ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs examples under plans whose layers or stages are split differently, and on one rank, and compares.

    layer_shardings.py --bin bin

In float64 the losses, the first gradients, the loss of a validation, and weights after some steps must be those of one
rank with the same micro-batches, within 1e-10 of the largest number of each. The plan that is printed must give the
same program. A checkpoint of one plan is resumed under the other. Prints a line for each case, then "N passed, N
failed"; fails if one failed or none ran.
"""

import shutil
import sys
from dataclasses import dataclass

from examples_bench import main_of, run, tensors_of
from pipelines import DROPOUT, F64, NEAR, PipelinesBench


def entry(field, dimension, axes="", layers="", value="*"):
    """An entry of a plan; `layers` are "2", "2-" or "0-1"."""
    first, is_range, last = layers.partition("-")
    fields = [f'value: "{value}" dimension: "{dimension}"']
    fields += ["axes: [" + ", ".join(f'"{axis}"' for axis in axes) + "]"] if axes else []
    fields += [f"first_layer: {first}"] if first else []
    last = last if is_range else first
    fields += [f"last_layer: {last}"] if last else []
    return f"{field} {{ {' '.join(fields)} }}"


def split(layers="", **axes):
    """Entries that split dimensions of all values in some layers."""
    return [entry("sharding", dimension, names, layers) for dimension, names in axes.items()]


def tensor(axis, others, layers):
    """Tensor parallelism over `axis`, with samples split over the `others`."""
    return split(layers, batch=others, kv_heads=axis, ffn=axis)


def zero(stage, axes, layers=""):
    """The entries of `zero=1` and `zero=3`."""
    if stage == 3:
        return [entry("home", "hidden", axes, layers)]
    return [entry("home", "hidden", axes, layers, value="*/*"), entry("home", "hidden", "", layers, value="gradient/*")]


MESH = "ab"
SAMPLES = split(batch="ab")
SEQUENCE = [entry("sharding", "sequence", "b", "2-", value=value)
            for value in ("mlp_norm", "attention_norm", "mlp.residual", "attention.residual")]
EXPERTS = [*split("2-", batch="ab"), entry("sharding", "experts", "b", "2-", value="experts*"),
           entry("sharding", "experts", "b", "2-", value="*.experts.*")]
GROUPS = "load_balance_group: SEQUENCE capacity_group: SEQUENCE"


@dataclass
class Case:
    what: str
    entries: list[str]
    stages: str = ""
    example: str = "llama-tiny"
    recipe: str = ""
    mesh: str = MESH
    sizes: int = 2
    accumulation: int = 4


CASES = (
    Case("tensor parallelism in the second stage", [*SAMPLES, *tensor("b", "a", "2-")], "stages: 2", recipe=DROPOUT),
    Case("the same in the first", [*split(batch="ab"), *tensor("b", "a", "0-1")], "stages: 2 schedule: GPIPE"),
    Case("tensor parallelism in the second stage, ZeRO-1, a sequence",
         [*SAMPLES, *tensor("b", "a", "2-"), *SEQUENCE, *zero(1, "ab"), *zero(1, "a", "2-")], "stages: 2"),
    Case("four ways in four stages, ZeRO-3",
         [*SAMPLES, *tensor("ab", "", "1"), *tensor("a", "b", "2"), *split("3", batch="a", sequence="b"),
          *zero(3, "ab"), *zero(3, "", "1"), *zero(3, "b", "2")], "stages: 4"),
    Case("chunks of one stage", [*SAMPLES, *tensor("b", "a", "1"), *tensor("a", "b", "2")], "stages: 2 chunks: 2"),
    Case("experts in the second stage", [*SAMPLES, *EXPERTS, *zero(1, "ab"), *zero(1, "a", "2-")], "stages: 2",
         "mixtral-tiny"),
    Case("a tied embedding", [*SAMPLES, *tensor("b", "a", "2-"), *zero(3, "a"), *zero(3, "ab", "0-1")], "stages: 2",
         "gpt2-tiny"),
    Case("every second layer, without stages",
         [*SAMPLES, *tensor("b", "a", "1"), *tensor("b", "a", "3"), *zero(3, "a")], recipe=DROPOUT, accumulation=1),
    Case("padded heads and ffn of some layers", [*split(batch=""), *tensor("a", "", "1-2")], mesh="a", sizes=3,
         accumulation=2),
    Case("homes of some layers, which recompute",
         [*split(batch="a"), *zero(3, "a", "1-2"), "activation { first_layer: 2 saving: RECOMPUTED }"], mesh="a",
         accumulation=1),
)


class LayersBench(PipelinesBench):
    nodes = 2

    def __init__(self, tools, folder):
        super().__init__(tools, folder)
        # By what they are of.
        self.results_of_one_rank = {}

    def write(self, case):
        axes = " ".join(f'axis {{ name: "{axis}" size: {case.sizes} }}' for axis in case.mesh)
        stages = [f"pipeline {{ {case.stages} }}"] if case.stages else []
        lines = ["version: 1", f"mesh {{ {axes} }}", *case.entries, f"accumulation: {case.accumulation}", *stages]
        (self.folder / "plan").write_text("\n".join(lines))

    def prepare(self, case):
        is_model = case.recipe == DROPOUT
        recipe = f"{F64} {'' if is_model else case.recipe}"
        self.describe(case.example, recipe, case.recipe if is_model else "")

    def results_on_one_rank(self, case):
        key = (case.example, case.recipe, case.accumulation)
        if key not in self.results_of_one_rank:
            self.compiled("--pin", f"accumulation={case.accumulation}")
            self.results_of_one_rank[key] = self.results(["./train"])
        return self.results_of_one_rank[key]

    def fault_of_case(self, case):
        """Returns a sentence about the fault, or None."""
        self.prepare(case)
        expected = self.results_on_one_rank(case)
        self.write(case)
        before = self.compiled("--plan", "plan")
        got = self.results(["./train"])
        near = all(abs(float(a) - float(b)) <= NEAR * abs(float(a))
                   for a, b in zip(expected["losses"], got["losses"], strict=True))
        wrong = [] if near else ["losses"]
        for what in ("gradients", "weights"):
            wrong += [f"{what} {name}" for name in self.far(expected[what], got[what], NEAR)]
        if wrong:
            return f"{', '.join(wrong)} are not those of one rank"
        (self.folder / "plan").write_text(run(["./train", "--print-plan"], self.folder))
        return None if self.compiled("--plan", "plan") == before else "the printed plan gives another program"

    def fault_of_checkpoints(self, cases):
        """A run that goes on under other plans."""
        for number, case in enumerate(cases):
            self.prepare(case)
            self.write(case)
            self.compiled("--plan", "plan")
            shutil.copy(self.folder / "train", self.folder / f"train-{number}")
        flags = ["--data", "text", "--no-progress"]
        run(["./train-0", *flags, "--steps", len(cases), "--save", "weights"], self.folder)
        expected = tensors_of(self.folder / "weights")
        for number in range(len(cases)):
            run([f"./train-{number}", *flags, "--steps", number + 1, "--save", "weights", "--checkpoint-dir",
                 "checkpoints"], self.folder)
        return "are not one run" if self.far(expected, tensors_of(self.folder / "weights"), NEAR) else None


def check_all(bench):
    for case in CASES:
        bench.tell(f"{case.example} {case.what}", bench.fault_of_case, case)
    bench.tell("checkpoints", bench.fault_of_checkpoints, [CASES[3], CASES[8], CASES[4]])


if __name__ == "__main__":
    sys.exit(main_of(__doc__, LayersBench, check_all))
