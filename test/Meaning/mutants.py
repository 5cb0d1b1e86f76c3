#!/usr/bin/python3
#===- mutants.py - the proof refuses what computes something else -----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Makes mistakes in modules after Partition, and shows that the proof of meaning finds them.

    mutants.py --bin build/bin [--count N] [--seed S]

Each mutant differs from a right module by one mistake of mutations.py: another group, operator,
operand, argument, slice, offset, scale, mask, root or permutation, or two collectives exchanged.
`weft-opt --prove-meaning` compares it with the module before Plan. What it does not refuse is
compiled and run: losses, gradients and weights must then be those of the right module, to the last
bits of rounding. Prints a table of the kinds of mistakes, then "N passed, N failed"; fails if a
mutant changes a result and is not refused, or if nothing was refused.
"""

import argparse
import collections
import copy
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "Execution"), str(TESTS / "Onnx")]
import cases  # noqa: E402
import differences  # noqa: E402
import equality  # noqa: E402
import graphs  # noqa: E402
import mutations  # noqa: E402
import programs  # noqa: E402

STEPS = 2
TOLERANCE = 1e-11
# Drawn for one mutant, until one is valid.
TRIALS = 10


def bases():
    """Cases and meshes that have every collective, ring, order, padding and buffer, and stages."""
    gpt2, _, llama, _, qwen, experts = cases.default_cases()[:6]
    bounded, deepseek = cases.default_cases()[8:10]
    fp8 = next(case for case in cases.fp8_cases() if case.delayed)
    narrow = next(case for case in cases.bf16_cases() if case.family == "llama")
    return [(llama, "dp=2,tp=2,sp=true,zero=1,accumulation=2"), (gpt2, "tp=3,sp=true"),
            (gpt2, "dp=2,cp=2:ring"), (qwen, "cp=2:gather,tp=2"), (experts, "dp=2,ep=2,zero=3"),
            (bounded, "ep=2,tp=2"), (deepseek, "cp=2:ring"), (gpt2, "dp=2,cp=2:all-to-all"),
            (llama, "dp=2,fsdp=2,tp=2"), (fp8, "dp=2,tp=2"),
            (narrow, "dp=2,zero=1,accumulation=2"), (Images(), "dp=2,tp=2"),
            (llama, "pp=2,dp=2,zero=1,accumulation=2")]


@dataclass(frozen=True)
class Images:
    """A small ResNet: convolutions, pools, batch norms whose statistics are variables."""

    name: str = "resnet"


def describe(tools, compiler, case, place):
    """Returns the model and the recipe of a case, and a compiler whose runs have its data."""
    if not isinstance(case, Images):
        return *cases.write(case, place), compiler
    graph = graphs.MODELS[case.name]()
    graph.write(place / "graph.textproto")
    programs.call([tools / "weft", "import", place / "graph.textproto", "-o", place / "imported"])
    own = copy.copy(compiler)
    own.data, batch = equality.write_data(place, graph)
    own.validation_data = own.data
    recipe = place / "recipe.textproto"
    recipe.write_text(equality.RECIPE.format(batch=batch, precision="F64"))
    return place / "imported/model.textproto", recipe, own


class Base:
    """A right program, in a folder of its own."""

    def __init__(self, tools, compiler, case, mesh):
        self.tools, self.case, self.mesh = tools, case, mesh
        self.place = compiler.place(case, mesh)
        model, recipe, self.compiler = describe(tools, compiler, case, self.place)
        machine = self.place / "machine.textproto"
        machine.write_text(cases.MACHINE)
        self.options = ["--machine", machine, "--recipe", recipe, "--target", "host", "--pin", mesh]
        self.whole = self.place / "whole.mlirbc"
        for phase, path in (("differentiate", self.whole), ("partition", self.place / "right.mlirbc")):
            programs.call([tools / "weft", "compile", model, *self.options,
                           f"--stop-after={phase}", "-o", path])
        right = subprocess.run([tools / "weft-opt", self.place / "right.mlirbc"],
                               capture_output=True, text=True, check=True).stdout
        self.text = mutations.Text(right)
        self.result = self.run("right", right)

    def run(self, name, text):
        """Compiles and runs a module; raises ProgramError."""
        place = self.place / name
        place.mkdir()
        (place / "module.mlir").write_text(text)
        programs.call([self.tools / "weft", "compile", place / "module.mlir",
                       "--start-after=partition", *self.options, "-o", place / "train"])
        # The mesh "accumulation" is one whose program gives no logits.
        return self.compiler.run(place, self.mesh + ",accumulation=1", steps=STEPS)

    def refusal(self, path):
        """The error of the proof, "" if it finds none, or None if the module is not valid."""
        done = subprocess.run([self.tools / "weft-opt", f"--prove-meaning=whole={self.whole}", path,
                               "-o", "/dev/null"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return ""
        return done.stderr if "error: prove-meaning: " in done.stderr else None


def judge(base, kind, seed):
    """Makes one mutant; returns its verdict, and what to say of it."""
    source = random.Random(seed)
    path = base.place / f"{kind.replace(' ', '-')}-{seed}.mlir"
    for _ in range(TRIALS):
        text = mutations.KINDS[kind](base.text, source)
        if text is None:
            return "impossible", ""
        path.write_text(text)
        refusal = base.refusal(path)
        if refusal is not None:
            break
    else:
        return "invalid", ""
    if refusal:
        path.unlink()
        return "refused", refusal
    try:
        got = base.run(f"{kind.replace(' ', '-')}-{seed}", text)
    except programs.ProgramError as error:
        return "stopped", str(error)
    found = differences.of_runs(got, base.result, TOLERANCE)
    return ("missed", f"{path}: {found}") if found else ("harmless", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True)
    parser.add_argument("--count", type=int, default=60, help="of mutants that are valid")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", help="a folder for all files")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        work = options.keep or temporary
        Path(work).mkdir(parents=True, exist_ok=True)
        compiler = programs.Compiler(Path(options.bin) / "weft", work)
        counts = collections.defaultdict(collections.Counter)
        with ThreadPoolExecutor(2) as pool:
            made = list(pool.map(lambda pair: Base(Path(options.bin).resolve(), compiler, *pair),
                                 bases()))
            valid, seed = 0, options.seed
            while valid < options.count:
                jobs = [(made[(seed + job) % len(made)], kind, seed + job)
                        for job in range(4) for kind in mutations.KINDS]
                seed += 4
                for (base, kind, _), (verdict, text) in zip(
                        jobs, pool.map(lambda job: judge(*job), jobs)):
                    counts[kind][verdict] += 1
                    valid += verdict not in ("impossible", "invalid")
                    if verdict in ("missed", "stopped"):
                        print(f"{verdict}: {base.case.name}: {base.mesh}: {kind}: {text}", flush=True)
    verdicts = ("refused", "harmless", "stopped", "missed", "invalid")
    print(f"{'':22}" + "".join(f"{verdict:>10}" for verdict in verdicts))
    for kind, own in counts.items():
        print(f"{kind:22}" + "".join(f"{own[verdict]:10}" for verdict in verdicts))
    total = sum(counts.values(), collections.Counter())
    passed, failed = total["refused"] + total["harmless"], total["missed"] + total["stopped"]
    print(f"{passed} passed, {failed} failed")
    return 0 if not failed and total["refused"] else 1


if __name__ == "__main__":
    sys.exit(main())
