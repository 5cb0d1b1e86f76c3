#!/usr/bin/python3
#===- padding.py - every op where dimensions are padded --------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs every op that can be sharded, and its gradient, with each dimension padded in turn.

    padding.py --bin build/bin [--full] [--case TEXT]

Dimensions of 4 elements are cut into 3 shards and so padded to 6, and one rank has only padding.
Loss and gradients must be those of one rank, in float64; or the compiler must say that the dimension
cannot be padded. Cases whose operands must be positive are left out, as padding is zero.

Without --full each case takes one of its dimensions. Prints a line for each program, then "N passed,
N refused, N failed"; fails if one failed, or none ran.
"""

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import assignment_cases
import assignments
import safetensors  # from test/Reference, whose path modules has added

SIZE, SHARDS = 4, 3
TOLERANCE = 1e-10
ONE_RANK = "version: 1"
REFUSED = ("cannot be padded", "depends on how long")


def plan_of(dimension):
    return (f"version: 1 mesh {{axis {{name: 'a' size: {SHARDS}}}}} "
            f"sharding {{dimension: '{dimension}' axes: 'a'}}")


def gradients(tools, folder, plan, name):
    """All gradients of a step that follows `plan`."""
    (folder / f"{name}.plan").write_text(plan)
    assignments.call(folder, tools / "weft", "compile", "step.mlir", "--start-after=differentiate",
                     *assignments.FILES, "--plan", f"{name}.plan", "-o", name)
    assignments.call(folder, f"./{name}", "--data", "text", "--load", "values", "--steps", 1,
                     "--quiet", "--save-gradients", f"{name}.results", "--save", f"{name}.weights")
    return {**safetensors.load(folder / f"{name}.results"),
            **safetensors.load(folder / f"{name}.weights")}


def difference(got, wanted):
    """Returns a sentence about the first difference, or None."""
    for name, value in wanted.items():
        far = np.abs(got[name] - value).max(initial=0) if got[name].shape == value.shape else np.inf
        if not far <= TOLERANCE * max(1, np.abs(value).max(initial=0)):
            return f"{name} is off by {far:.1e}"
    return None


def check(tools, case, dimensions):
    """For each dimension "", "refused" or a fault."""
    with tempfile.TemporaryDirectory(prefix="weft-padding-") as name:
        folder = Path(name)
        try:
            assignments.write_step(tools, folder, case, (SHARDS,))
            whole = gradients(tools, folder, ONE_RANK, "whole")
        except assignments.ProgramError as error:
            return {"": str(error)}
        found = {}
        for dimension in dimensions:
            try:
                found[dimension] = difference(
                    gradients(tools, folder, plan_of(dimension), dimension), whole) or ""
            except assignments.ProgramError as error:
                refused = any(text in str(error) for text in REFUSED)
                found[dimension] = "refused" if refused else str(error)
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="the folder of weft and weft-opt")
    parser.add_argument("--full", action="store_true", help="all dimensions of every case")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (default: 1)")
    options = parser.parse_args()
    tools = Path(options.bin).resolve()
    passed = refused = failed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        running = []
        for number, case in enumerate(assignment_cases.cases_for(SIZE)):
            dimensions = assignments.dimensions_of(case, SHARDS)
            if options.case not in case.name or case.positive or not dimensions:
                continue
            if not options.full:
                dimensions = [dimensions[number % len(dimensions)]]
            running.append((case, pool.submit(check, tools, case, dimensions)))
        for case, result in running:
            for dimension, fault in result.result().items():
                passed, refused = passed + (not fault), refused + (fault == "refused")
                failed += bool(fault) and fault != "refused"
                word = "ok  " if not fault else "no  " if fault == "refused" else "FAIL"
                print(f"{word} {case.name}: {dimension}"
                      + (f": {fault}" if word == "FAIL" else ""), flush=True)
    print(f"{passed} passed, {refused} refused, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
