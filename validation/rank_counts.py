#!/usr/bin/python3
#===- rank_counts.py - one axis beside factored meshes ----------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Prints the tables of rank-counts.md.

The first has plans of Llama-3 8B on 24, 40 and 96 GPUs, by one axis and by two. Fails if the search over
one axis takes over 1.03 times the time or the memory of the fastest plan that it finds over two. The
second has Llama-2 7B on 12 and 13B on 24 GPUs with fsdp=3; fails if one does not fit, or if `weft verify`
finds a difference from one rank.
"""

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 1.03
# Sequences of 4096 tokens that a rank has in a step.
SEQUENCES = 4
# Layers, hidden, heads and ffn of Llama-2, and the plans.
LLAMA2 = {"7B": ((32, 4096, 32, 11008), 12, "dp=4,fsdp=3"), "13B": ((40, 5120, 40, 13824), 24, "fsdp=3,tp=8")}
UNITS = {"ms": 1e-3, "s": 1.0, "MiB": 2**-10, "GiB": 1.0}


def llama2(folder, name, ranks):
    """Writes the model and a recipe of two sequences a rank, and returns their paths."""
    layers, hidden, heads, ffn = LLAMA2[name][0]
    model, recipe = Path(folder) / "model", Path(folder) / "recipe"
    model.write_text(f"""version: 1
name: "llama2-{name.lower()}"
layers: {layers}
hidden: {hidden}
heads: {heads}
ffn: {ffn}
norm: RMS_NORM
norm_epsilon: 1e-5
activation: SWIGLU
positions: ROTARY
vocabulary: 32000
""")
    recipe.write_text(f"""version: 1
sequence_length: 4096
global_batch_sequences: {2 * ranks}
precision: BF16
adamw {{}}
schedule {{ peak_learning_rate: 3e-4 }}
steps: 1000
""")
    return model, recipe


def on_machine(ranks):
    """Returns the options that name the machine: the fewest nodes of 8 GPUs that have the ranks."""
    return ["--machine", ROOT / "machines/h100-8.textproto", "--nodes", str(-(-ranks // 8))]


def plan(options, model, ranks, arguments):
    """Returns the predicted seconds of a step, GiB of a rank, and whether they fit, in one micro-batch."""
    command = [options.weft, "plan", model, *on_machine(ranks), "--target", options.target, "--alone", *arguments,
               "--pin", "accumulation=1"]
    result = subprocess.run(command, capture_output=True, text=True)
    fits = "nothing that was found fits" not in result.stderr
    if result.returncode != 0 and fits:
        sys.exit(f"{' '.join(map(str, command))} failed: {result.stderr}")
    seconds = re.search(r"predicted: ([0-9.]+) (ms|s) a step", result.stdout)
    memory = re.search(r"memory of each rank: ([0-9.]+) (MiB|GiB)", result.stdout)
    return *(float(found[1]) * UNITS[found[2]] for found in (seconds, memory)), fits


def print_llama2(options):
    """Prints the second table, and returns what is wrong."""
    faults = []
    print("\n| model | ranks | plan | step, s | memory, GiB | `weft verify` |\n|---|---|---|---|---|---|")
    for name, (_, ranks, pins) in LLAMA2.items():
        with tempfile.TemporaryDirectory() as folder:
            model, recipe = llama2(folder, name, ranks)
            arguments = ["--recipe", recipe, "--pin", pins]
            seconds, memory, fits = plan(options, model, ranks, arguments)
            verify = subprocess.run([options.weft, "verify", model, *on_machine(ranks), *arguments],
                                    capture_output=True, text=True)
        says = (verify.stdout or verify.stderr).strip().splitlines()[-1]
        print(f"| Llama-2 {name} | {ranks} | `{pins}` | {seconds:.3f} | {memory:.1f} | {says} |", flush=True)
        if not fits or verify.returncode != 0:
            faults.append(f"Llama-2 {name} on {ranks} ranks: {'' if fits else 'does not fit; '}{says}")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="weft", help="the compiler")
    parser.add_argument("--target", default="host", help="the target of the programs")
    parser.add_argument("--ranks", nargs="+", type=int, default=[24, 40, 96], help="of so many ranks alone")
    options = parser.parse_args()
    print("| ranks | plan | step, s | memory, GiB |")
    print("|---|---|---|---|")
    faults = []
    for ranks in options.ranks:
        pairs = [f"dp={ranks // size},fsdp={size}" for size in range(2, ranks) if ranks % size == 0]
        kinds = {"--pin": ([f"fsdp={ranks}"], pairs), "--mesh": ([f"dp={ranks}"], pairs)}
        rows = [("--pin", f"dp={ranks},zero=2")]
        rows += [(kind, axes) for kind, (one, two) in kinds.items() for axes in one + two]
        found = {}
        for kind, axes in rows:
            found[kind, axes] = plan(options, ROOT / "examples/llama3-8b/model.textproto", ranks,
                                     ["--seq-len", "4096", "--global-batch", str(SEQUENCES * ranks), kind, axes])
            seconds, memory, fits = found[kind, axes]
            doubt = "" if fits else ", does not fit"
            print(f"| {ranks} | `{kind} {axes}` | {seconds:.3f} | {memory:.1f}{doubt} |", flush=True)
        (one,), two = kinds["--mesh"]
        best = min(row for row in (found["--mesh", axes] for axes in two) if row[2])
        seconds, memory, fits = found["--mesh", one]
        if not fits or seconds > MOST * best[0] or memory > MOST * best[1]:
            faults.append(f"--mesh {one} takes {seconds:.3f} s and {memory:.1f} GiB, expected at most {MOST} times "
                          f"{best[0]:.3f} s and {best[1]:.1f} GiB")
    faults += print_llama2(options)
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
