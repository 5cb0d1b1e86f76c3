#!/usr/bin/python3
#===- assignments.py - every op under every sharding -----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs every op that can be sharded, and every op of its gradient, in every way that its rule allows.

    assignments.py --bin build/bin [--full] [--case TEXT]

A case of assignment_cases.py becomes a training step, in which the pass enumerate-shardings works
each op again in all ways: each axis of the mesh cuts a factor, carries a pending sum or does
nothing, and two axes on one factor stand in both orders. All results must be those of the op on
whole tensors, in float64. Every op of the dialect that says how it may be sharded must occur. Each
case is run with sizes that the mesh divides, and with others, that are padded; padding.py shows
that padding does not change results.

Without --full each program takes a sample of its ways. Prints a line for each program, then "N
passed, N failed" of ways; fails if one failed or none ran.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import assignment_cases
import modules  # from test/Derivatives, whose path assignment_cases has added
import safetensors  # from test/Reference, whose path modules has added

MESHES = ((2, 2), (2, 3), (4,))
AXES = "ab"

# By the number of ranks: sizes that they do not divide, or a power of two alone.
UNEVEN = {4: 6, 6: 4}
DIMENSIONS = ("batch", "sequence", "kv_heads", "group", "head", "ffn", "vocab", "hidden", "positions",
              "experts")

# Without --full: so many ways of each program, of one mesh for each case.
SAMPLE = 24

# Relative to the greatest element of a result, or to 1. What ranks add up they add in another
# order, and where operands are pending, products of terms that are larger than they: of 5,184 that
# come to 1.4, the sum is 1.6e-12 off. What is narrower is rounded to its own precision.
TOLERANCE = 1e-11
NARROW = {"bf16": 1e-2}

TIME_LIMIT = 300


class ProgramError(Exception):
    """A tool or a program failed."""


def call(folder, *command):
    """Runs `command` in `folder` and returns what it printed; raises ProgramError if it fails."""
    command = [str(part) for part in command]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                              errors="replace", timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as expired:
        raise ProgramError(f"{command[0]}: not done after {TIME_LIMIT} s") from expired
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        errors = [line for line in lines if "error" in line] or lines
        raise ProgramError(f"{Path(command[0]).name}: {errors[0][:500]}")
    return done.stdout


def tokens(case):
    """Returns text of tokens of the case's vocabulary, some of which do not occur."""
    table = case.parameters["embed.tokens.weight"]
    size = modules.dimensions(table)[1][0]
    return bytes((7 * i * i + 3 * i) % (size - 1) for i in range(case.batch * case.sequence + 9))


FILES = ("--machine", "machine", "--recipe", "recipe")


def plan_of(mesh, dimensions=()):
    """Returns a plan that cuts `dimensions` over the whole mesh, and no others."""
    names = AXES[:len(mesh)]
    axes = " ".join(f"axis {{name: '{name}' size: {size}}}" for name, size in zip(names, mesh))
    cut = " ".join(f"axes: '{name}'" for name in names)
    return f"version: 1 mesh {{{axes}}} " + " ".join(
        f"sharding {{dimension: '{dimension}' {cut}}}" for dimension in dimensions)


def dimensions_of(case, shards):
    """Returns the dimensions that a plan may name and that `shards` does not divide."""
    sizes = {"batch": case.batch, "sequence": case.sequence}
    for shape in case.parameters.values():
        sizes |= dict(zip(*modules.dimensions(shape)))
    return [name for name in DIMENSIONS if sizes.get(name, 0) % shards]


def write_padded(tools, folder, case, mesh):
    """Pads those dimensions of the step that allow it. Returns their names."""
    dimensions = dimensions_of(case, int(np.prod(mesh)))
    while dimensions:
        try:
            call(folder, tools / "weft-opt", "step.mlir", "-substitute-batch",
                 f"-pad-dimensions=plan={{{plan_of(mesh, dimensions)}}}", "-mask-padding", "-o",
                 "padded.mlir")
            (folder / "padded.mlir").rename(folder / "step.mlir")
            break
        except ProgramError as error:
            refused = re.search(r"(\w+)(=\d+ does not divide| .*depends on how long)", str(error))
            if not refused:
                raise
            dimensions.remove(refused[1] if refused[1] in dimensions else dimensions[-1])
    return dimensions


def write_step(tools, folder, case, mesh):
    """Writes the training step of a case into `folder`, and all files that a run needs."""
    machine = modules.MACHINE.replace("devices_per_node: 2", "devices_per_node: 8")
    for name, text in (("case.mlir", modules.module(case)), ("recipe", modules.recipe(case)),
                       ("machine", machine), ("plan", plan_of(mesh))):
        (folder / name).write_text(text)
    (folder / "text").write_bytes(tokens(case))
    safetensors.save(folder / "values", modules.values(case))
    call(folder, tools / "weft", "compile", "case.mlir", "--start-after=import",
         "--stop-after=differentiate", *FILES, "-o", "step.mlir")


def write_ranks(tools, folder, mesh, enumerate_options, opt_options=(), name="ranks.mlir"):
    """Writes the program of the ranks in which every op is done in all ways."""
    call(folder, tools / "weft-opt", "step.mlir", *opt_options, "-substitute-batch",
         f"-apply-plan=plan={{{plan_of(mesh)}}}", f"-enumerate-shardings={enumerate_options}",
         "-verify-plan", "-reshard-to-collectives", "-localize", "-expand-permutations",
         "-expand-log-sum-exp", "-verify-partition", "-o", name)


def compile_ranks(tools, folder, options=(), name="ranks.mlir", program="program"):
    """Compiles the program of the ranks."""
    call(folder, tools / "weft", "compile", name, "--start-after=partition", *FILES, "--plan",
         "plan", *options, "-o", program)
    return program


def run(folder, program="program"):
    """All results that a program observes, by the name of op and result, and then by the way."""
    call(folder, f"./{program}", "--data", "text", "--load", "values", "--steps", 1, "--quiet",
         "--save-gradients", f"{program}.results")
    results = {}
    for name, value in safetensors.load(folder / f"{program}.results").items():
        if name.startswith("gradient/weft."):
            op, result, number, way = name.removeprefix("gradient/").split(" ", 3)
            results.setdefault((int(number), op, int(result)), {})[way] = value
    return results


def faults(results, tolerance):
    """Returns the ways that were run, and a sentence about each with a wrong result."""
    ways, found = set(), {}
    for (number, op, result), values in results.items():
        whole = values.pop("whole")
        for way, value in values.items():
            ways.add((number, op, way))
            far = np.abs(value - whole).max(initial=0)
            if not far <= tolerance * max(1, np.abs(whole).max(initial=0)):
                found[(number, op, way)] = (f"{op} (number {number}) with {way}: result {result} "
                                            f"is off by {far:.1e}")
    return ways, list(found.values())


def tolerance_of(case):
    return next((value for name, value in NARROW.items() if case.name.endswith(name)), TOLERANCE)


def check(tools, case, mesh, is_padded, enumerate_options):
    """Runs a case; returns the ways that were run, and a sentence about each fault."""
    with tempfile.TemporaryDirectory(prefix="weft-assignments-") as name:
        folder = Path(name)
        try:
            write_step(tools, folder, case, mesh)
            if is_padded and not write_padded(tools, folder, case, mesh):
                return set(), []
            write_ranks(tools, folder, mesh, enumerate_options)
            compile_ranks(tools, folder)
            return faults(run(folder), tolerance_of(case))
        except ProgramError as error:
            return set(), [str(error)]


def shardable_ops(tools):
    """Returns all ops of the dialect that have a factor rule and that a program can have."""
    # A transfer stands between the programs of two stages. test/Plan has its rule.
    return set(call(".", tools / "weft-opt", "--list-shardable-ops").split()) - {"weft.transfer"}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="the folder of weft and weft-opt")
    parser.add_argument("--full", action="store_true", help="all ways on every mesh")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (default: 1)")
    options = parser.parse_args()
    tools = Path(options.bin).resolve()
    programs = []
    for place, mesh in enumerate(MESHES):
        ranks = int(np.prod(mesh))
        for is_padded, size in ((False, ranks), (True, UNEVEN[ranks])):
            for number, case in enumerate(assignment_cases.cases_for(size)):
                is_turn = options.full or (number + is_padded) % len(MESHES) == place
                if options.case in case.name and is_turn and not (is_padded and case.positive):
                    programs.append((number, case, mesh, is_padded))
    passed = failed = 0
    seen = set()
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [(case, mesh, is_padded,
                    pool.submit(check, tools, case, mesh, is_padded, "" if options.full else
                                f"sample={SAMPLE} seed={number}"))
                   for number, case, mesh, is_padded in programs]
        for case, mesh, is_padded, result in running:
            ways, found = result.result()
            seen |= {op for _, op, _ in ways}
            passed, failed = passed + max(len(ways) - len(found), 0), failed + len(found)
            size = "x".join(map(str, mesh)) + (" padded" if is_padded else "")
            print(f"{'FAIL' if found else 'ok  '} {size} {case.name}: {len(ways)} ways"
                  + "".join(f"\n     {fault}" for fault in found[:10]), flush=True)
    missing = shardable_ops(tools) - seen
    if missing and not options.case:
        print(f"FAIL no case has {', '.join(sorted(missing))}")
        failed += 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
