#!/usr/bin/python3
#===- random_bounds.py - no plan is faster than the bound of its mesh --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Draws models, recipes and plans as random_plans.py does, and compares predicted times with bounds.

    random_bounds.py --weft bin/weft --count 200        cases 0 to 199

A case plans the drawn plan, and plans again on the same mesh with the same micro-batches, everything else
open. It fails if a prediction of the two lies below the bound of the open search, or below its own. Prints a
line for each case, how much of the fastest prediction the bound is, and "N passed, N failed".
"""

import argparse
import re
import statistics
import sys
import tempfile
from pathlib import Path

import random_descriptions
import random_plans

STAGES = re.compile(r"^pipeline \{ (?:layers: \[(.*?)\]|stages: (\d+))(?:.*? chunks: (\d+))?", re.MULTILINE)
UNITS = {"us": 1e-3, "ms": 1, "s": 1000}
# Half of the last digit of each of two printed times.
ROUNDING = 0.001


def milliseconds(pattern, report):
    found = re.search(pattern + r" +([0-9.]+) ([mu]?s)", report)
    return float(found[1]) * UNITS[found[2]] if found else None


def open_search_of(plan):
    """Returns the arguments for an open search on the mesh and in the stages of a written plan."""
    axes = []
    for name, size, parts in re.findall(r'axis \{ name: "(.*?)" size: (\d+)(?: sub_axes: \[(.*?)\])? \}', plan):
        axes.append(f"{name}={parts.replace(', ', 'x') or size}")
    count = re.search(r"^accumulation: (\d+)", plan, re.MULTILINE)
    mesh = ["--mesh", ",".join(axes)] if axes else []
    pins = [f"accumulation={count[1]}"] if count else []
    if pipeline := STAGES.search(plan):
        chunks = int(pipeline[3] or 1)
        pins += [f"pp={pipeline[2] or len(pipeline[1].split(',')) // chunks}", f"chunks={chunks}"]
    return [*mesh, *(["--pin", ",".join(pins)] if pins else [])]


def times(weft, arguments):
    """Returns the predicted time of a plan and its bound, in milliseconds, or why there is no plan."""
    done = random_plans.call(weft, "plan", *arguments, "--alone")
    if fault := done.fault():
        raise AssertionError(fault)
    if done.status:
        return done.reason()
    predicted, bound = (milliseconds(pattern, done.output) for pattern in ("predicted:", "takes less than"))
    if predicted is None:
        raise AssertionError("no prediction in the report")
    # Where no matmul is sure to stay one, no bound is proven and none printed.
    return predicted, bound or 0


def compare(runner, seed):
    """Compares the plans of a case. Returns the share of the bound in the fastest, or why there is no plan."""
    case = random_descriptions.descriptions_of(seed, runner.lengths)
    place = runner.folder / str(seed)
    arguments = runner.write(case, place)
    if isinstance(arguments, random_plans.Outcome):
        return arguments.reason
    drawn = times(runner.weft, [*arguments, "--output", place / "found.textproto"])
    if isinstance(drawn, str):
        return drawn
    split = next(at for at, part in enumerate(arguments) if part in ("--pin", "--mesh", "--plan"))
    open_arguments = open_search_of((place / "found.textproto").read_text())
    searched = times(runner.weft, [*arguments[:split], *open_arguments])
    if isinstance(searched, str):
        raise AssertionError(f"the search finds no plan where one was drawn: {searched}")
    fastest, bound = min(drawn[0], searched[0]), searched[1]
    if bound > fastest + ROUNDING or drawn[1] > drawn[0] + ROUNDING:
        raise AssertionError(f"bounds {searched[1]} and {drawn[1]} ms; "
                             f"predicted {searched[0]} ms, {drawn[0]} ms as drawn")
    return bound / fastest


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--seed", type=int, default=0, help="the first case")
    parser.add_argument("--count", type=int, default=20, help="cases")
    options = parser.parse_args()

    shares, failed, refused = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="random-bounds-") as folder:
        runner = random_plans.Runner(Path(options.weft).resolve(), Path(folder), False)
        for seed in range(options.seed, options.seed + options.count):
            try:
                share = compare(runner, seed)
            except AssertionError as error:
                failed += 1
                print(f"FAIL {seed}: {error}", flush=True)
                continue
            refused += isinstance(share, str)
            shares += [] if isinstance(share, str) else [share]
            print(f"pass {seed}: " + (f"refused: {share}" if isinstance(share, str) else
                                      f"the bound is {share:.3f} of the fastest plan"), flush=True)
    if shares:
        print(f"the bound is {min(shares):.3f} to {max(shares):.3f}, "
              f"in the middle {statistics.median(shares):.3f} of the fastest plan")
    print(f"{len(shares)} compared, {refused} refused")
    print(f"{len(shares) + refused} passed, {failed} failed")
    return 1 if failed or 2 * len(shares) < options.count else 0


if __name__ == "__main__":
    sys.exit(main())
