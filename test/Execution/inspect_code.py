#!/usr/bin/python3
#===- inspect_code.py - tests of utils/gpu/inspect --------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Inspects the kernels of a small program and of unit tests.

    inspect_code.py --bin bin

Registers and memory must be those that the assembler reported, kernels must be in the order of their predicted times,
and loads and stores have the widths that the kernels are written for. Needs a CUDA toolkit with cuobjdump and nvdisasm,
and no device. Prints a line for each case, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from device_code import ROOT, compile_command, has_no_toolkit

INSPECT = ROOT / "utils/gpu/inspect"
MACHINE = ROOT / "machines/h100-8.textproto"


class Bench:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        self.passed = self.failed = 0

    def expect(self, what, is_good, said):
        self.passed, self.failed = self.passed + bool(is_good), self.failed + (not is_good)
        print("pass" if is_good else "FAIL", what, "" if is_good else said, flush=True)


def run(*command, **environment):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def output_of(*command, **environment):
    done = run(*command, **environment)
    if done.returncode != 0:
        sys.exit(f"{command} fails: {done.stderr or done.stdout}")
    return done.stdout


def rows_of(table):
    """Returns the cells of each row by the names of columns, which are as wide as their texts."""
    head, *lines = table.splitlines()
    names, rows = re.findall(r"\S+", head), {}
    for line in lines:
        cells = re.split(r"\s{2,}", line)
        # Only first phases have a time and calls.
        cells = [cells[0], *[""] * (len(names) - len(cells)), *cells[1:]]
        rows[cells[0]] = dict(zip(names, cells))
    return rows


def as_compiled(bench, program):
    """Compares registers and shared memory with the assembler's report, and stacks, which count called functions."""
    module = bench.folder / "module.mlir"
    output_of(*compile_command(bench.binaries, "gpt2-tiny", MACHINE, 1, "dp=1"), "--target", "cuda", "--stop-after",
              "lower", "-o", module)
    resources = output_of(bench.binaries / "weft-translate", "--kernels-to-resources", module)
    expected = {name: numbers for name, *numbers in re.findall(
        r"sm_90 (\w+): (\d+) registers, (\d+) bytes of stack, \d+ spilled, (\d+) shared", resources)}
    rows = rows_of(output_of(INSPECT, program))
    wrong = [f"{name} {row}, expected {expected.get(name)}" for name, row in rows.items()
             if [row["regs"], row["shared"]] != expected.get(name, [])[::2]
             or int(row["stack"].split(":")[0]) < int(expected[name][1])]
    is_same = expected and rows.keys() == expected.keys() and not wrong
    bench.expect("registers and memory as the assembler said", is_same,
                 wrong or (rows.keys() ^ expected.keys()))
    times = [float(row["us"]) for row in rows.values() if row["us"]]
    bench.expect("the longest first", len(times) > 5 and times == sorted(times, reverse=True) and times[0] > 0, times)


def widths(bench):
    """Checks kernels whose code is known: in bf16 two operands and one result, of 16 bytes each."""
    folder = bench.folder / "cases"
    output_of(bench.binaries / "LowerTests", "--gtest_filter=LargeKernels.Elementwise", WEFT_KERNEL_CASES=str(folder))
    rows = rows_of(output_of(INSPECT, folder, "--only", "Large.Residual"))
    row = next(iter(rows.values()))
    got = [row[name] for name in ("threads", "loads", "stores", "shared", "slow")]
    bench.expect("the widths of loads and stores", len(rows) == 1 and got == ["256", "0/0/0/2", "0/0/0/1", "0", "0"],
                 rows)
    said = output_of(INSPECT, folder, "--only", "Large.Residual", "--sass")
    bench.expect("instructions", len(re.findall(r"^  LDG\.E\.128\.", said, re.MULTILINE)) == 2, said)


def refusals(bench, program):
    alone = bench.folder / "elsewhere/utils/gpu/inspect"
    alone.parent.mkdir(parents=True)
    shutil.copy(INSPECT, alone)
    text = bench.folder / "text"
    text.write_text("no program")
    for what, command, pattern in (
            ("a text", [INSPECT, text], "text is no executable, nor a folder with a kernels.so"),
            ("no file", [INSPECT, bench.folder / "nothing"], "cannot read .*nothing: No such file"),
            ("a program for the host", [INSPECT, bench.binaries / "weft"], "has no kernels for CUDA devices"),
            ("an unknown architecture", [INSPECT, program, "--architecture", "70"],
             "has code for sm_80, sm_90, sm_100, not for sm_70"),
            ("no such kernel", [INSPECT, program, "--only", "nowhere"], "has a name like 'nowhere'")):
        done = run(*command)
        bench.expect(what, done.returncode == 1 and re.search(f"^inspect: .*{pattern}", done.stderr), done.stderr)
    if not Path("/usr/local/cuda/bin/cuobjdump").exists():
        done = run(sys.executable, alone, program, CUDA_HOME=str(bench.folder), PATH=str(bench.folder))
        bench.expect("no tools", done.returncode == 1 and re.search(
            r"^inspect: found no cuobjdump and nvdisasm: looked in .*; utils/setup-cuda --inspect installs",
            done.stderr), done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft and weft-translate")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.bin, Path(folder))
        program = bench.folder / "train"
        output_of(*compile_command(options.bin, "gpt2-tiny", MACHINE, 1, "dp=1"), "--target", "cuda", "-o", program)
        done = run(INSPECT, program)
        if done.returncode != 0 and "found no cuobjdump" in done.stderr:
            print(f"skipped: {done.stderr.strip()}")
            return 77
        as_compiled(bench, program)
        widths(bench)
        refusals(bench, program)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return bench.failed > 0 or bench.passed == 0


if __name__ == "__main__":
    sys.exit(main())
