#!/usr/bin/python3
#===- redundant_gathers.py - whether examples gather anything twice --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compiles all examples in several ways, and looks for redundant gathers.

    redundant_gathers.py --weft build/bin/weft

A gather in a rank's program (--stop-after=partition) is redundant if
- the same value was gathered in the same way before, and that result is still in use at or after this
  gather (a value that was freed in between, as parameters are after use, may be gathered again);
- all its users cut it again over the same axes, along the dimension in which it was gathered;
- its operand was cut in the same way from the whole value.

Prints a line for each program, then "N passed, N failed".
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WAYS = {"gpt2-tiny": ["dp=4", "dp=2,tp=2,sp=true", "dp=2,tp=2,sp=false,zero=3", "cp=2:ring,zero=1"],
        "llama-tiny": ["dp=4,zero=3", "dp=2,tp=2,sp=true,zero=1", "cp=2:gather,tp=2", "cp=2:all-to-all",
                       "dp=2,zero=2,accumulation=2"],
        "mixtral-tiny": ["ep=4", "dp=2,ep=2,zero=3", "ep=2,tp=2"],
        "deepseek-tiny": ["dp=2,ep=2", "tp=2,zero=0"],
        "gpt2-124m": ["dp=8", "dp=2,tp=4,sp=true,zero=1"],
        "llama-160m": ["dp=8,zero=3", "dp=2,cp=2:ring,tp=2,sp=true"],
        "llama3-8b": ["dp=8,tp=8,sp=true,zero=1", "dp=64,zero=3"],
        "llama3-70b": ["dp=8,tp=8,sp=true,zero=1"],
        "mixtral-8x7b": ["dp=2,ep=8,zero=1"]}
OP = re.compile(r"^ +((?:%\w+(?::\d+)?(?:, )?)+) = \"?([\w.]+)\"?(.*)$")
VALUE = re.compile(r"%\w+(?:#\d+)?")
GATHER = re.compile(r"(%\w+(?:#\d+)?) dim (\d+) over (\[[^\]]*\])")
CUT = re.compile(r"dim (\d+) over (\[[^\]]*\])")
CUTS = ("weft.slice", "weft.reduce_scatter")


def functions(text):
    """(name, [(results, op, rest)]) of each function; ops without results have none."""
    name, ops = None, []
    for line in text.splitlines():
        if line.startswith("  func.func"):
            name, ops = re.search(r"@(\w+)", line)[1], []
        elif line.startswith("  }") and name:
            yield name, ops
            name = None
        elif name:
            match = OP.match(line)
            ops.append((re.findall(r"%\w+", match[1]), match[2], match[3]) if match else
                       ([], "", line))


def redundant(name, ops):
    """Returns a sentence about each redundant gather."""
    users, makers = {}, {}
    for place, (results, op, rest) in enumerate(ops):
        for operand in set(VALUE.findall(rest)):
            users.setdefault(operand, []).append(place)
        makers |= dict.fromkeys(results, (op, rest))
    gathered = {}
    for place, (results, op, rest) in enumerate(ops):
        if op != "weft.all_gather":
            continue
        value, dim, axes = GATHER.search(rest).groups()
        what = f"@{name}: {value} over {axes} along {dim}"
        before = gathered.get((value, dim, axes))
        if before and max(users.get(before, [0])) >= place:
            yield f"{what} was gathered before"
        gathered[value, dim, axes] = results[0]

        def cuts(op, rest, cut=(dim, axes)):
            found = CUT.search(rest)
            return op in CUTS and found and found.groups() == cut
        uses = [ops[user] for user in users.get(results[0], [])]
        if uses and all(cuts(op, rest) for _, op, rest in uses):
            yield f"{what} is only cut again"
        if makers.get(value, ("",))[0] == "weft.slice" and cuts(*makers[value]):
            yield f"{what} was whole"


def arguments_of(example, way):
    folder = ROOT / "examples" / example
    return (folder / "model.textproto", "--recipe", folder / "recipe.textproto", "--machine",
            ROOT / "machines/h100-8.textproto", "--nodes", 8, "--stop-after=partition", *way)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    options = parser.parse_args()
    passed = failed = 0
    examples = sorted(path.parent.name for path in (ROOT / "examples").glob("*/model.textproto"))
    for example in examples:
        ways = [("--pin", pins) for pins in WAYS.get(example, [])] + [("--mesh", "x=8,y=8")]
        for way in ways:
            command = [options.weft, "compile", *map(str, arguments_of(example, way))]
            done = subprocess.run(command, capture_output=True, text=True, timeout=600)
            faults = ([done.stderr[:500]] if done.returncode else
                      [fault for function in functions(done.stdout) for fault in redundant(*function)])
            passed, failed = passed + (not faults), failed + bool(faults)
            print(f"{'FAIL' if faults else 'ok  '} {example} {' '.join(way)}"
                  + "".join(f"\n     {fault}" for fault in faults[:10]), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
