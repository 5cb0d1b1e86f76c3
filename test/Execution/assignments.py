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
whole tensors, in float64. Every op of the dialect that says how it may be sharded must occur.

Without --full each program takes a sample of its ways. Prints a line for each program, then "N
passed, N failed" of ways; fails if one failed or none ran.
"""

import argparse
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

# Without --full: so many ways of each program, of one mesh for each case.
SAMPLE = 40

# Relative to the greatest element of a result, or to 1. What ranks add up they add in another
# order; what is narrower is rounded to its own precision.
TOLERANCE = 1e-12
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
    """Text that the vocabulary of the case holds, and of which some tokens do not occur."""
    table = case.parameters["embed.tokens.weight"]
    size = modules.dimensions(table)[1][0]
    return bytes((7 * i * i + 3 * i) % (size - 1) for i in range(case.batch * case.sequence + 9))


FILES = ("--machine", "machine", "--recipe", "recipe")


def plan_of(mesh):
    """A plan in which every variable is whole on every rank."""
    axes = " ".join(f"axis {{name: '{name}' size: {size}}}" for name, size in zip(AXES, mesh))
    return f"version: 1 mesh {{{axes}}}"


def write_step(tools, folder, case, mesh):
    """Writes the training step of a case into `folder`, and all that it takes to run it."""
    machine = modules.MACHINE.replace("devices_per_node: 2", "devices_per_node: 8")
    for name, text in (("case.mlir", modules.module(case)), ("recipe", modules.recipe(case)),
                       ("machine", machine), ("plan", plan_of(mesh))):
        (folder / name).write_text(text)
    (folder / "text").write_bytes(tokens(case))
    safetensors.save(folder / "values", modules.values(case))
    call(folder, tools / "weft", "compile", "case.mlir", "--start-after=import",
         "--stop-after=differentiate", *FILES, "-o", "step.mlir")


def write_ranks(tools, folder, mesh, enumerate_options, opt_options=(), name="ranks.mlir"):
    """Writes what the ranks of a step do when every op is done in all ways."""
    call(folder, tools / "weft-opt", "step.mlir", *opt_options,
         f"-apply-plan=plan={{{plan_of(mesh)}}}", f"-enumerate-shardings={enumerate_options}",
         "-verify-plan", "-reshard-to-collectives", "-localize", "-expand-log-sum-exp",
         "-verify-partition", "-o", name)


def compile_ranks(tools, folder, options=(), name="ranks.mlir", program="program"):
    """Compiles what the ranks do."""
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
    """The ways that were taken, and a sentence about each that gives something else."""
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


def check(tools, case, mesh, enumerate_options):
    """The ways that a case was run in, and a sentence about each fault."""
    with tempfile.TemporaryDirectory(prefix="weft-assignments-") as name:
        folder = Path(name)
        try:
            write_step(tools, folder, case, mesh)
            write_ranks(tools, folder, mesh, enumerate_options)
            compile_ranks(tools, folder)
            return faults(run(folder), tolerance_of(case))
        except ProgramError as error:
            return set(), [str(error)]


def shardable_ops(tools):
    """All ops of the dialect that say how they may be sharded."""
    return set(call(".", tools / "weft-opt", "--list-shardable-ops").split())


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin", help="the folder of weft and weft-opt")
    parser.add_argument("--full", action="store_true", help="all ways on every mesh")
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--jobs", type=int, default=1, help="programs at a time (default: 1)")
    options = parser.parse_args()
    tools = Path(options.bin).resolve()
    programs = [(number, case, mesh) for mesh in MESHES for number, case in
                enumerate(assignment_cases.cases_for(int(np.prod(mesh))))
                if options.case in case.name]
    if not options.full:
        programs = [(number, case, mesh) for number, case, mesh in programs
                    if MESHES[number % len(MESHES)] == mesh]
    passed = failed = 0
    seen = set()
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [(case, mesh, pool.submit(check, tools, case, mesh, "" if options.full else
                                            f"sample={SAMPLE} seed={number}"))
                   for number, case, mesh in programs]
        for case, mesh, result in running:
            ways, found = result.result()
            seen |= {op for _, op, _ in ways}
            passed, failed = passed + max(len(ways) - len(found), 0), failed + len(found)
            size = "x".join(map(str, mesh))
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
