#!/usr/bin/python3
#===- aligned_rows.py - programs whose rows of matmuls are padded ----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compares programs for devices, whose rows of matmuls are aligned by padding, with one rank of the host.

    aligned_rows.py --bin build/bin

The models have a vocabulary and an ffn of odd sizes. In float64 losses, gradients and weights must be those of
the host's program for one rank, which pads nothing; in bf16 losses must be near. The program for devices must pad
unless its plan refuses. Needs a CUDA toolkit for compiling, and no device. Prints a line for each run, then "N
passed, N failed"; fails if one failed or none ran.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

import numpy as np

import programs
from device_code import has_no_toolkit
from devices import ROOT, plugin_of, run

STEPS = 3
# An odd number of rows, which begin at multiples of 8 bytes in float64 and of 2 in bf16.
SIZES = {"vocabulary": 259, "ffn": 37}
# Model, pins, lines of the recipe, and tolerance. Losses in bf16 are rounded and added in another order.
CASES = (
    ("gpt2-tiny", (), "precision: F64", 1e-10),
    ("llama-tiny", ("tp=2",), "precision: F64", 1e-10),
    ("llama-tiny", ("dp=2", "zero=3"), "precision: F64", 1e-10),
    ("llama-tiny", ("tp=2", "accumulation=2"), "precision: F64", 1e-10),
    ("gpt2-tiny", ("dp=3",), "precision: F64", 1e-10),
    ("llama-tiny", ("tp=2",), "precision: BF16", 1e-2),
)
REFUSING = "version: 1 padding: false"


def write_descriptions(folder, name, lines):
    model = (ROOT / "examples" / name / "model.textproto").read_text()
    for field, size in SIZES.items():
        model = re.sub(rf"\b{field}: \d+", f"{field}: {size}", model)
    recipe = (ROOT / "examples" / name / "recipe.textproto").read_text()
    recipe = re.sub(r"^precision: .*\n", "", recipe, flags=re.MULTILINE)
    (folder / "model.textproto").write_text(model)
    (folder / "recipe.textproto").write_text(recipe + lines + "\n")
    (folder / "refusing.plan").write_text(REFUSING)
    (folder / "text").write_bytes((ROOT / "LICENSE").read_bytes())


def compile_program(tools, folder, program, *options):
    done = run([tools / "weft", "compile", folder / "model.textproto", "--machine",
                ROOT / "machines/laptop.textproto", "--recipe", folder / "recipe.textproto", *options, "-o",
                program])
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())


def train(program, folder, **environment):
    """Returns losses, and gradients and weights by name."""
    done = run([program, "--data", folder / "text", "--steps", STEPS, "--save", folder / "weights",
                "--save-gradients", folder / "gradients"], **environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    losses = [float(loss) for loss in re.findall(r"^step .*?loss ([0-9.]+)", done.stdout, re.MULTILINE)]
    tensors = {f"{kind} {name}": value for kind in ("gradients", "weights")
               for name, value in programs.safetensors.load(folder / kind).items()}
    return {"losses": np.array(losses), **tensors}


def difference(got, expected, tolerance):
    """Returns a sentence about the first difference, or None."""
    if got.keys() != expected.keys() or len(got["losses"]) != STEPS:
        return f"got {len(got)} tensors and {len(got['losses'])} losses"
    for name, value in expected.items():
        if got[name].shape != value.shape:
            return f"{name} has the shape {got[name].shape}, expected {value.shape}"
        far = np.abs(got[name] - value).max(initial=0)
        if not far <= tolerance * max(1, np.abs(value).max(initial=0)):
            return f"{name} is off by {far:.1e}"
    return None


def is_padded(program):
    """Returns whether no matrix of a matmul has rows of the model's vocabulary."""
    rows = re.findall(r"^\s*\d+: matmul .* ld ([0-9/]+)", run([program, "--print-program"]).stdout, re.MULTILINE)
    return bool(rows) and all(str(SIZES["vocabulary"]) not in row.split("/") for row in rows)


def check(options, name, pins, lines, tolerance):
    """Returns a sentence about the fault, or None."""
    with tempfile.TemporaryDirectory(prefix="weft-rows-") as path:
        folder = Path(path)
        write_descriptions(folder, name, lines)
        flags = [text for pin in pins for text in ("--pin", pin)]
        compile_program(options.bin, folder, folder / "one")
        compile_program(options.bin, folder, folder / "devices", "--target", "cuda", *flags)
        if not is_padded(folder / "devices"):
            return "rows of the vocabulary are not padded"
        if not pins:
            compile_program(options.bin, folder, folder / "plain", "--target", "cuda", "--plan",
                            folder / "refusing.plan")
            if is_padded(folder / "plain"):
                return "the plan refuses padding, but rows of the vocabulary are padded"
        expected = train(folder / "one", folder)
        got = train(folder / "devices", folder, WEFT_RT_CUDA=str(plugin_of(options)))
        if "BF16" in lines:
            expected, got = ({"losses": values["losses"]} for values in (expected, got))
        return difference(got, expected, tolerance)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, default=Path("build/bin"), help="the folder of weft")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    passed = failed = 0
    for case in CASES:
        try:
            fault = check(options, *case)
        except RuntimeError as error:
            fault = str(error)
        passed, failed = passed + (not fault), failed + bool(fault)
        print("FAIL" if fault else "pass", case[0], ",".join(case[1]), case[2], fault or "", flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
