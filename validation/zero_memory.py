#!/usr/bin/python3
#===- zero_memory.py - memory of ZeRO's stages beside its formulas ---------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Prints the table of zero-memory.md: what a rank of Llama-3 8B holds at its peak, by class.

Fails if a plan takes more than its formula by 5 %, or if stages 1 and 2 have one plan with
micro-batches.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GIB = 2**30
# Of Llama-3 8B.
PARAMETERS = 8_030_261_248
UNITS = {"bytes": 1 / GIB, "KiB": 2**-20, "MiB": 2**-10, "GiB": 1}
CLASSES = ("parameter", "parameter copy", "optimizer", "gradient")
# Bytes of a gradient by the recipe's format.
WIDTHS = {"F32": 4, "BF16": 2}
# Stages, formats of gradients and numbers of micro-batches. Stage 1 has no sums in BF16 over
# micro-batches.
CASES = [(stage, gradients, parts) for stage in (1, 2, 3) for gradients in WIDTHS for parts in (1, 2)
         if (stage, gradients, parts) != (1, "BF16", 2)]


def formula(stage, ranks, parts, width):
    """Returns what a stage takes in bytes a parameter, as text and as a number.

    2 are the copy that is read, 12 master and states, `width` a gradient. Without micro-batches
    a gradient's sum over ranks is cut as soon as it is there, in stage 1 as well.
    """
    if stage == 3:
        return f"{14 + width}P/{ranks}", (14 + width) / ranks
    if stage == 1 and parts > 1:
        return f"6P + 12P/{ranks}", 6 + 12 / ranks
    return f"2P + {12 + width}P/{ranks}", 2 + (12 + width) / ranks


def recipe(gradients):
    """Returns the text of a recipe whose gradients have this format."""
    return f"""version: 1
sequence_length: 4096
global_batch_sequences: 1
precision: BF16
mixed {{ gradient_accumulation: {gradients} }}
adamw {{}}
schedule {{ peak_learning_rate: 3e-4 }}
steps: 1000
"""


def plan(weft, recipe_file, target, ranks, stage, parts):
    """Returns the hash of a plan, and GiB at the peak by class."""
    result = subprocess.run(
        [weft, "plan", ROOT / "examples/llama3-8b/model.textproto", "--recipe", recipe_file, "--machine",
         ROOT / "machines/h100-8.textproto", "--nodes", str(ranks // 8),
         "--global-batch", str(ranks * parts), "--pin", f"dp={ranks},zero={stage},accumulation={parts}",
         "--target", target, "--alone"], capture_output=True, text=True, check=True)
    found = {name: float(number) * UNITS[unit] for name, number, unit in
             re.findall(r"([a-z]+(?: copy)?) ([0-9.]+) (bytes|KiB|MiB|GiB)",
                        result.stdout.split("at the peak")[1].split("\n")[1])}
    return re.search(r"plan ([0-9a-f]{16})", result.stdout)[1], found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="weft", help="the compiler")
    parser.add_argument("--targets", nargs="+", default=["host", "cuda"], help="of these targets alone")
    parser.add_argument("--ranks", nargs="+", type=int, default=[8, 64], help="of so many ranks alone")
    options = parser.parse_args()
    print("| target | ranks | zero | gradients | micro-batches | masters, others | copies | states | gradients | sum |"
          " formula | sum by formula | sum by 2P + 14P/D |")
    print("|" + "---|" * 13)
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for gradients in WIDTHS:
            (Path(folder) / gradients).write_text(recipe(gradients))
        for target in options.targets:
            for ranks in options.ranks:
                hashes = set()
                for stage, gradients, parts in CASES:
                    name, found = plan(options.weft, Path(folder) / gradients, target, ranks, stage, parts)
                    text, times = formula(stage, ranks, parts, WIDTHS[gradients])
                    held = [found.get(kind, 0.0) for kind in CLASSES]
                    expected, paper = (factor * PARAMETERS / GIB for factor in (times, 2 + 14 / ranks))
                    of_paper = f"{sum(held) / paper:.2f}" if stage == 2 else ""
                    print(f"| {target} | {ranks} | {stage} | {gradients} | {parts} | "
                          + " | ".join(f"{gib:.2f}" for gib in (*held, sum(held)))
                          + f" | {text} = {expected:.2f} | {sum(held) / expected:.2f} | {of_paper} |")
                    if sum(held) > 1.05 * expected and stage != 3:
                        faults.append(f"zero={stage} takes {sum(held):.2f} GiB, expected {expected:.2f}")
                    if parts == 2 and name in hashes:
                        faults.append(f"zero={stage} has the plan of another stage, {name}")
                    hashes.add(name)
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
