#!/usr/bin/python3
#===- right_programs.py - the proof refuses no program that is right ---------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Proves the meaning of programs that the tests of test/Execution run and compare with one rank.

    right_programs.py --weft build/bin/weft [--all | --count N --seed S]

`weft compile --stop-after=partition` proves what it compiles (docs/Meaning.md). By default a drawn
sample of the pairs of a case and a mesh is compiled; with --all, every pair but those that the
model cannot be split over. Prints the refusals, then "N passed, N failed"; fails if a program was
refused or none was proven.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Execution"))
import cases  # noqa: E402


def pairs():
    """Every case with each of its meshes, in an order that does not change."""
    chosen = (cases.default_cases() + cases.document_cases() + cases.fp8_cases()
              + cases.bf16_cases() + cases.all_cases())
    return [(case, mesh) for case in chosen for mesh in case.meshes]


def prove(weft, work, number, case, mesh):
    """Compiles up to Partition; returns the error, "" if there is none, or None if the model cannot
    be split so."""
    place = Path(work) / str(number)
    place.mkdir()
    model, recipe = cases.write(case, place)
    machine = place / "machine.textproto"
    machine.write_text(cases.MACHINE)
    logits = [] if "accumulation" in mesh else ["--observe-logits"]
    done = subprocess.run([weft, "compile", model, "--machine", machine, "--recipe", recipe, "--pin",
                           mesh, *logits, "--stop-after=partition", "-o", place / "module"],
                          capture_output=True, text=True, check=False)
    if "--pin: the model has no dimension" in done.stderr:
        return None
    return "" if done.returncode == 0 else done.stderr.strip().replace("\n", " | ")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", required=True)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    drawn = pairs()
    if not options.all:
        drawn = random.Random(options.seed).sample(drawn, options.count)
    passed = failed = 0
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(2) as pool:
        errors = pool.map(lambda job: prove(options.weft, work, job[0], *job[1]), enumerate(drawn))
        for (case, mesh), error in zip(drawn, errors):
            passed += error == ""
            failed += bool(error)
            if error:
                print(f"FAIL {case.name}: {mesh}: {error}", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed > 0 == failed else 1


if __name__ == "__main__":
    sys.exit(main())
