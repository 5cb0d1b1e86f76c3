#!/usr/bin/python3
#===- recompute.py - recomputed activations change no bit ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs examples that keep all activations, and the same that recompute them, and compares.

    recompute.py --bin bin

Losses, gradient norms, weights and states of the optimizer must have the same bits; what full recomputation needs at
the peak must be less, and the FLOPs of the model, from which its utilization is computed, the same. Dropout, scales
of FP8 numbers and experts' routes must come out again as in the forward pass. The cases are such that pins decide all
sums over ranks: where the search does, recomputation may change its choice. The plan that is printed must give the
same program. Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran.
"""

import re
import sys

from examples_bench import ROOT, Bench, main_of, run, tensors_of

STEPS = 3
WORDS = ("none", "attention", "full")
DROPOUT = "dropout: 0.1 attention_dropout: 0.1"
F64 = "precision: F64"
# Examples, pins, lines for the recipe and for the model.
CASES = (
    ("llama-tiny", "dp=2", F64, ""),
    ("llama-tiny", "tp=2,sp=true", F64, ""),
    ("llama-tiny", "tp=2,sp=false,accumulation=2", "precision: BF16", ""),
    ("llama-tiny", "cp=2:ring", F64 + " loss_chunks: 2", ""),
    ("llama-tiny", "fsdp=2", "precision: F32 fp8 { scaling: DELAYED history: 2 }", ""),
    ("llama-tiny", "dp=2,accumulation=2", F64, DROPOUT),
    ("gpt2-tiny", "tp=2,sp=true", F64, ""),
    ("mixtral-tiny", "ep=2", F64, ""),
    ("deepseek-tiny", "dp=2,zero=3", F64, ""),
)
# Some layers, and parts of layers. Both keep less than everything.
ENTRIES = (
    'activation { last_layer: 1 saving: RECOMPUTED }\n',
    'activation { value: "mlp*" saving: RECOMPUTED }\nactivation { value: "mlp.up" first_layer: 1 saving: KEPT }\n'
    'activation { value: "attention/attention/1" first_layer: 1 last_layer: 2 saving: RECOMPUTED }\n',
)


class RecomputeBench(Bench):
    def trained(self, *plan):
        """Compiles and runs; returns what must not change, and the bytes of the arena."""
        self.compiled(*plan)
        printed = run(["./train", "--print-program"], self.folder)
        out = run(["./train", "--data", "text", "--steps", STEPS, "--save", "weights"], self.folder)
        steps = re.findall(r"^step .*?gradient norm [^ ]+", out, re.MULTILINE)
        if len(steps) != STEPS:
            raise RuntimeError(f"expected {STEPS} steps, got {steps}")
        results = {"steps": steps, "weights": tensors_of(self.folder / "weights"),
                   "FLOPs": re.search(r" flops (\S+)", printed)[1]}
        return results, int(re.search(r"^arena (\d+)", printed, re.MULTILINE)[1])

    def fault_of(self, name, pins, recipe, model):
        """Returns a sentence about the fault, or None."""
        self.describe(name, recipe, model)
        (kept, most), *others = (self.trained("--pin", f"{pins},recompute={word}") for word in WORDS)
        for word, (results, arena) in zip(WORDS[1:], others):
            for what, value in kept.items():
                if results[what] != value:
                    return f"recompute={word}: {what} are not those of kept activations"
            if arena >= most:
                return f"recompute={word} takes {arena} bytes, and keeping everything {most}"
        return None

    def fault_of_entries(self, entries):
        """Returns a sentence about the fault, or None. Compiles by the printed plan, too."""
        self.describe("llama-tiny", F64, "")
        kept, most = self.trained("--pin", "dp=2,recompute=none")
        plan = self.folder / "plan"
        plan.write_text('version: 1\nmesh { axis { name: "dp" size: 2 } }\n'
                        'sharding { value: "*" dimension: "batch" axes: ["dp"] }\n' + entries)
        results, arena = self.trained("--plan", "plan")
        if results != kept:
            return "results are not those of kept activations"
        if arena >= most:
            return f"the program takes {arena} bytes, and keeping everything {most}"
        before = (self.folder / "train").read_bytes()
        plan.write_text(run(["./train", "--print-plan"], self.folder))
        if self.compiled("--plan", "plan") != before:
            return "the printed plan gives another program"
        verified = run([self.tools / "weft", "verify", "model", "--recipe", "recipe", "--machine",
                        ROOT / "machines/laptop.textproto", "--plan", "plan"], self.folder)
        return None if "verified: 2 ranks compute what one does" in verified else "weft verify does not say so"


def check_all(bench):
    for case in CASES:
        bench.tell(" ".join(part for part in case if part), bench.fault_of, *case)
    for entries in ENTRIES:
        bench.tell(" ".join(entries.split()), bench.fault_of_entries, entries)


if __name__ == "__main__":
    sys.exit(main_of(__doc__, RecomputeBench, check_all))
