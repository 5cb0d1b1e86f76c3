#!/usr/bin/python3
#===- device_calls.py - counts calls of a device's libraries ---------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Counts the calls that a rank makes in a step of a program for CUDA devices, one by one and as graphs.

    device_calls.py --bin bin           a small example
    device_calls.py --bin bin --full    GPT-2 124M and a Llama of 1.5B, which takes minutes

The programs run on the simulator for devices, which computes nothing then and only counts, so that any machine will do.
The calls of a step are the difference of two runs. Needs a CUDA toolkit for compiling, and no device. Prints a table
with a row for each program; fails if a step by graphs launches anything else, or waits more than once.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from device_code import has_no_toolkit

ROOT = Path(__file__).resolve().parents[2]
# Of Llama 3.2 1B, but that its embeddings are not tied.
ONE_BILLION = {"name": '"llama3-1b"', "layers": 16, "hidden": 2048, "ffn": 8192}
# Example, machine, split, what is other in the model and in the recipe.
SMALL = [("gpt2-tiny", "laptop", "dp=2", {}, {})]
FULL = [("gpt2-124m", "h100-8", "dp=8", {}, {}),
        ("llama3-8b", "h100-8", "dp=8,zero=3", ONE_BILLION, {"global_batch_tokens": 8 * 8192})]
STEPS = (3, 5)
COLUMNS = {"launches": ["launch"], "matmuls": ["runMatmul"], "attention": ["runAttention"],
           "collectives": ["allReduce", "allGather", "reduceScatter", "send", "receive"],
           "events": ["record"], "waits": ["wait"], "words": ["writeProgress", "countProgress"],
           "copies": ["copy", "copyToDevice", "copyToHost", "zero"], "graphs": ["launchGraph"],
           # What depends on how far others are is left out: `ready` and `reached`.
           "other": ["await", "beginGroup", "endGroup"]}


def run(command, **environment):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout


def changed(example, name, changes, folder):
    """Returns a description of an example with changed values."""
    text = (ROOT / "examples" / example / name).read_text()
    for field, value in changes.items():
        text = re.sub(rf"^{field}: .*$", f"{field}: {value}", text, flags=re.MULTILINE)
    (folder / name).write_text(text)
    return folder / name


def compiled(tools, example, machine, mesh, changes, folder):
    model, recipe = (changed(example, name, values, folder)
                     for name, values in zip(["model.textproto", "recipe.textproto"], changes))
    program = folder / "program"
    run([tools / "weft", "compile", model, "--recipe", recipe, "--pin", mesh,
         "--machine", ROOT / f"machines/{machine}.textproto", "--target", "cuda", "-o", program])
    return program


def calls_of(program, plugin, steps, flags, folder):
    """Returns the number of calls of all ranks, by function."""
    data, calls = folder / "data", folder / "calls"
    data.write_bytes(bytes(1 << 24))
    run([program, "--data", data, "--data-format", "bytes", "--timeout", 600, "--steps", steps,
         *flags], WEFT_RT_CUDA=str(plugin),
        WEFT_SIMULATOR_CALLS=str(calls), WEFT_SIMULATOR_MEMORY=str(1 << 38))
    return {name: int(count) for name, count in (line.split() for line in calls.read_text().splitlines())}


def calls_of_a_step(program, plugin, ranks, flags, folder):
    few, many = (calls_of(program, plugin, steps, flags, folder) for steps in STEPS)
    return {name: (many[name] - few.get(name, 0)) / (STEPS[1] - STEPS[0]) / ranks for name in many}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft")
    parser.add_argument("--full", action="store_true", help="large models")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    plugin = options.bin.parent / "lib" / "libweft-rt-cuda-simulator-plugin.so"
    print("| program |", " | ".join(COLUMNS), "| all |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    failed = False
    for name, machine, mesh, *changes in FULL if options.full else SMALL:
        with tempfile.TemporaryDirectory() as folder:
            folder = Path(folder)
            program = compiled(options.bin, name, machine, mesh, changes, folder)
            ranks = int(re.search(r"dp=(\d+)", mesh)[1])
            for flags in ([], ["--graphs"]):
                calls = calls_of_a_step(program, plugin, ranks, flags, folder)
                row = [sum(calls.get(function, 0) for function in functions) for functions in COLUMNS.values()]
                words = [changes[0].get("name", name).strip('"'), mesh.replace(",", " "), *flags]
                cells = [" ".join(words), *(f"{count:g}" for count in [*row, sum(row)])]
                print("|", " | ".join(cells), "|", flush=True)
                launched, graphs = sum(row[:3]) > 0, calls.get("launchGraph", 0) > 0
                failed = failed or calls.get("await", 0) > 1 or launched == graphs or graphs != bool(flags)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
