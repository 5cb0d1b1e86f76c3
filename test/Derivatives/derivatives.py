#!/usr/bin/python3
#===- derivatives.py - each op's derivative against finite differences -----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Checks the derivative of every op in float64, op by op.

Each case of cases.py is compiled from a module as Import makes it, and one step gives its
gradients. Runs with nearby parameters give slopes of the loss that do not depend on any
derivative. A case also fails if a slightly wrong gradient would pass. If an operand can be cut,
a program for two ranks must have the same gradients.

Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import cases
import modules
import safetensors  # from test/Reference, whose path modules has added
import slopes

ROOT = Path(__file__).resolve().parent.parent.parent
OPS = ROOT / "include" / "weft" / "Dialect" / "Weft" / "IR"
SCALARS = ROOT / "lib" / "Interfaces" / "ExternalModels" / "ScalarOpModels.cpp"

# Seconds that a compilation or run may take; more is a hang.
TIME_LIMIT = 120

# Two ranks may add in another order than one.
RANKS_TOLERANCE = 1e-12


class ProgramError(Exception):
    """A compilation or run failed."""


def call(command, folder):
    """Runs `command` in `folder`; raises ProgramError if it fails."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=TIME_LIMIT)
    except OSError as error:
        raise ProgramError(f"{command[0]}: {error.strerror}") from error
    except subprocess.TimeoutExpired as expired:
        raise ProgramError(f"{' '.join(command)}: not done after {TIME_LIMIT} s") from expired
    if done.returncode != 0:
        errors = [line for line in done.stdout.splitlines() if "error" in line]
        tail = (errors or done.stdout.strip().splitlines() or [""])[0]
        raise ProgramError(f"{' '.join(command)}: exit status {done.returncode}: {tail}")


class Program:
    """A case, compiled in a folder of its own."""

    def __init__(self, weft, case, folder, pin=None):
        self.case, self.folder = case, Path(folder) / (pin or "one")
        self.folder.mkdir()
        for name, text in (("case.mlir", modules.module(case)),
                           ("recipe.textproto", modules.recipe(case)),
                           ("machine.textproto", modules.MACHINE)):
            (self.folder / name).write_text(text)
        (self.folder / "text").write_bytes(modules.TEXT)
        call([weft, "compile", "case.mlir", "--start-after=import", "--machine",
              "machine.textproto", "--recipe", "recipe.textproto",
              *(["--pin", pin] if pin else []), "-o", "program"], self.folder)

    def run(self, values, *options):
        """Returns the loss at `values`."""
        safetensors.save(self.folder / "values", values)
        call(["./program", "--data", "text", "--load", "values", "--steps", 1, "--quiet",
              "--metrics", "metrics", *options], self.folder)
        loss = json.loads((self.folder / "metrics").read_text())["loss"]
        return math.nan if loss is None else loss

    def gradients(self, values):
        """The gradient of each operand; zero for one that the loss does not depend on."""
        self.run(values, "--save-gradients", "gradients")
        saved = safetensors.load(self.folder / "gradients")
        return {name: np.array(saved.get(f"gradient/{name}", np.zeros_like(values[name])))
                for name in self.case.operands}


def check_ranks(weft, case, folder, values, gradients):
    """Returns a sentence if the gradients differ on two ranks, or None."""
    for pin in case.pins:
        found = Program(weft, case, folder, pin).gradients(values)
        for name, gradient in gradients.items():
            far = slopes.norm([found[name] - gradient])
            if not far <= RANKS_TOLERANCE * slopes.norm(gradients.values()):
                return f"gradient of {name} with {pin} differs by {far:.1e} from that of one rank"
    return None


def check(weft, case):
    """Returns whether `case` passes, and a sentence about it."""
    with tempfile.TemporaryDirectory(prefix="weft-derivatives-") as folder:
        try:
            program, values = Program(weft, case, folder), modules.values(case)
            gradients = program.gradients(values)
            measured = slopes.directions({name: values[name].shape for name in case.operands})
            for slope in measured:
                slopes.measure(program.run, values, slope)
            found, worst = slopes.fault(gradients, measured)
            found = (found or slopes.blind_spot(gradients, measured)
                     or check_ranks(weft, case, folder, values, gradients))
        except ProgramError as error:
            return False, str(error)
    ranks = "".join(f", same with {pin}" for pin in case.pins)
    return not found, found or f"{len(measured)} slopes within {worst:.1e}{ranks}"


def differentiable_ops():
    """The names of all ops of the dialect that have a derivative."""
    found, uses = [], 0
    for path in sorted(OPS.glob("*.td")):
        text = path.read_text()
        uses += len(re.findall(r"(?<!def )\bWeft_Differentiable\b", text))
        found += re.findall(r'Weft_(?:Window)?Op<"(\w+)",\s*\[(?:(?!> \{).)*?'
                            r'\bWeft_Differentiable\b', text, re.DOTALL)
    return [f"weft.{name}" for name in found], uses


def differentiable_scalars():
    """The names of all scalar ops whose model has a derivative."""
    text = SCALARS.read_text()
    found = re.findall(r"\b(\w+)::(\w+)Op::attachInterface<\s*(\w+)", text)
    names = [f"{dialect}.{op.lower()}" for dialect, op, model in found if model != "NoGradient"]
    return names, text.count("attachInterface<") - text.count("attachInterface<NoGradient")


# What rounds has a slope of zero or none; the derivative that is taken is compared with that of
# test/Reference, see docs/Numerics.md.
STRAIGHT_THROUGH = {"weft.quantize"}


def check_coverage():
    """Returns whether every op with a derivative occurs in a case, and a sentence about it."""
    # What every loss adds to the body of its case does not count. The call of a layer has a
    # derivative too, but the compiler builds it without asking the op.
    text = "\n".join(case.body + case.functions for case in cases.ALL)
    used = set(re.findall(r"\b(?:weft|arith|math)\.\w+", text))
    wanted = ["weft.call"]
    for names, uses in (differentiable_ops(), differentiable_scalars()):
        if not names or len(names) != uses:
            return False, f"found {len(names)} of {uses} ops with a derivative in the sources"
        wanted += names
    missing = sorted(set(wanted) - used - STRAIGHT_THROUGH)
    return not missing, ("no case has " + ", ".join(missing) if missing else
                         f"{len(set(wanted) - STRAIGHT_THROUGH)} ops with a derivative occur in {len(cases.ALL)} cases")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True, help="the compiler")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="cases at a time (default: 2)")
    parser.add_argument("--print", action="store_true", help="print the modules and end")
    options = parser.parse_args()
    chosen = [case for case in cases.ALL if options.case in case.name]
    if options.print:
        print("\n".join(f"// {case.name}\n{modules.module(case)}" for case in chosen))
        return 0
    weft = Path(options.weft).resolve()
    passed, failed = 0, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [(case.name, pool.submit(check, weft, case)) for case in chosen]
        if not options.case:
            running.append(("coverage", pool.submit(check_coverage)))
        for name, result in running:
            ok, sentence = result.result()
            print(f"{'pass' if ok else 'FAIL'} {name}: {sentence}", flush=True)
            passed, failed = passed + ok, failed + (not ok)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
