#!/usr/bin/python3
#===- examples_bench.py - examples, compiled and run in a folder -----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compiles and runs variants of the examples, and counts the cases that pass."""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(command, folder, environment=None):
    """Runs `command` in `folder` and returns what it prints; raises RuntimeError if it fails."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, cwd=folder,
                          env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} fails: {done.stderr.strip()}")
    return done.stdout


def tensors_of(path):
    """The bytes of the tensors of a safetensors file, by name."""
    file = path.read_bytes()
    begin = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:begin])
    return {name: file[begin + entry["data_offsets"][0]:begin + entry["data_offsets"][1]]
            for name, entry in header.items() if name != "__metadata__"}


# Examples take a quarter of their samples' lengths: their steps take a fourth of the time.
LENGTHS = ("sequence_length: 128", "sequence_length: 32")


class Bench:
    """A folder with the files of a case, and the numbers of those that passed and failed."""

    machine = "laptop"
    nodes = 1

    def __init__(self, tools, folder):
        self.tools, self.folder = tools, folder
        self.passed = self.failed = 0
        (folder / "text").write_bytes(bytes(i * i % 101 for i in range(1 << 16)))

    def describe(self, name, recipe, model):
        """Writes the files of an example, with more lines for its recipe and its model."""
        for what, lines in (("recipe", recipe), ("model", model)):
            text = (ROOT / f"examples/{name}/{what}.textproto").read_text()
            (self.folder / what).write_text(f"{text.replace(*LENGTHS)}\n{lines}\n")

    def compiled(self, *plan):
        """Compiles into the file `train`, and returns its bytes."""
        run([self.tools / "weft", "compile", "model", "--recipe", "recipe", "--machine",
             ROOT / f"machines/{self.machine}.textproto", "--nodes", self.nodes, *plan, "-o", "train"], self.folder)
        return (self.folder / "train").read_bytes()

    def tell(self, what, check, *arguments):
        """Prints whether the check finds no fault: it returns a sentence, or None."""
        try:
            fault = check(*arguments)
        except RuntimeError as error:
            fault = str(error)
        self.passed += fault is None
        self.failed += fault is not None
        print(f"pass {what}" if fault is None else f"FAIL {what}: {fault}", flush=True)


def main_of(description, bench_class, check_all):
    """The main function of a test: `check_all` gets a bench. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=Path, help="the folder of weft")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = bench_class(options.bin.absolute(), Path(folder))
        check_all(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return 0 if bench.passed and not bench.failed else 1
