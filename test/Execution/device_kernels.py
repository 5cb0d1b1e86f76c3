#!/usr/bin/python3
#===- device_kernels.py - tests of weft-rt-kernels on the simulator --------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Lets unit tests write some of their kernels for weft-rt-kernels, and runs these on the simulator for devices.

    device_kernels.py --bin bin

All must pass, and planted mistakes must be found: a kernel that computes something else, a device that fails,
files that are damaged. Needs a CUDA toolkit for compiling, and no device. Prints a line for each case, then
"N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from device_code import has_no_toolkit

# Of both types of float, in bf16 and f16, in place, at a place of a mesh, of numbers that are none, and with phases
# that only the host has iterations of.
TESTS = ("*NormTest.RootMeanSquare/*:*BF16Test.Norms*:*FunctionTest.Exp/*:*FunctionTest.Sqrt/*:*SlicesAtThePlace*:"
         "*PassesOnWhatIsNotANumber*:*WidensExactlyAndKeepsNaN*:*F16Test*:*AddsNothingWithoutTokens/*")


class Bench:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        self.cases, self.table = folder / "cases", folder / "cases/cases.json"
        self.passed = self.failed = 0

    def run(self, command, **environment):
        return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                              env={**os.environ, **environment})

    def expect(self, what, status, pattern, *options, **environment):
        """Expects an exit status and messages of weft-rt-kernels."""
        plugin = self.binaries.parent / "lib" / "libweft-rt-cuda-simulator-plugin.so"
        done = self.run([self.binaries / "weft-rt-kernels", *(options or [self.cases])],
                        **{"WEFT_RT_CUDA": str(plugin), **environment})
        said = done.stdout + done.stderr
        is_good = done.returncode == status and re.search(pattern, said, re.MULTILINE)
        self.passed, self.failed = self.passed + bool(is_good), self.failed + (not is_good)
        print("pass" if is_good else "FAIL", what, "" if is_good else f"{done.returncode}: {said}", flush=True)

    def expect_of(self, what, change, pattern):
        """Expects the same of a table of cases after `change`."""
        whole = self.table.read_text()
        table = json.loads(whole)
        change(table)
        self.table.write_text(json.dumps(table))
        self.expect(what, 1, pattern)
        self.table.write_text(whole)


def number_of(table, name):
    return next(i for i, case in enumerate(table["cases"]) if case["name"].startswith(name))


def take_other_reference(table):
    """Replaces the reference of the exponential with the square root's."""
    exponential, root = (table["cases"][number_of(table, f"FunctionTest.{name}/f32")] for name in ("Exp", "Sqrt"))
    exponential["reference"] = root["reference"]


def faults(bench):
    bench.expect_of("a kernel that computes something else", take_other_reference,
                    r"^FAIL FunctionTest\.Exp.*: operand \d element \d+ is .*, expected .* to within .*$")
    report = bench.folder / "json"
    bench.expect("a device that fails", 1,
                 r"^error: \S+ \d+: device 0 of rank 0, in step instruction \d+ \(.*\): launch: it is lost$",
                 bench.cases, "--json", report, WEFT_SIMULATOR_FAIL="launch:3")
    told, count = json.loads(report.read_text()), len(json.loads(bench.table.read_text())["cases"])
    tried = len(told["cases"]) + 1
    if tried == 1 or not told["fault"].startswith(told["trying"] + ": device 0"):
        sys.exit(f"expected what it was trying, got {told}")
    bench.expect("what is left then", 0, rf"^{count - tried} passed, 0 failed$", bench.cases, "--skip", tried)
    bench.expect("no number", 1, r"^usage: weft-rt-kernels FOLDER", bench.cases, "--skip", "-1")
    bench.expect("no such kernels", 1, r"^0 passed, 0 failed$", bench.cases, "--only", "nothing")
    bench.expect("no folder", 1, r"^error: .*nowhere/cases\.json.*No such file", "nowhere")
    bench.expect("no words", 1, r"^usage: weft-rt-kernels FOLDER", "--only")
    bench.expect_of("a kernel that is missing", lambda table: table["cases"][0].update(kernel=10000),
                    r"^error: .*cases\.json is not a file of kernel cases: an unknown kernel$")
    bench.expect_of("an operand that is missing", lambda table: table["cases"][0]["buffers"][0].update(offset=1 << 40),
                    r"^error: .*: an operand beyond the end of cases\.bin$")
    bench.expect_of("a type that is none", lambda table: table["cases"][0]["buffers"][0].update(type="f7"),
                    r"^error: .*: an unknown type$")
    bench.expect_of("a field that is missing", lambda table: table["cases"][0].pop("immediates"),
                    r"^error: .*cases\.json is not a file of kernel cases: .*immediates.*$")
    (bench.cases / "kernels.so").write_bytes(b"")
    bench.expect("code that is damaged", 1, r"^error: .*kernels\.so.*$")


def ceilings(bench):
    report = bench.folder / "json"
    for kind, pattern, field in (("copies", r"copies \d+ GB/s$", "copied_bytes_per_second"),
                                 ("matmuls", r"matmuls of bf16 .* TFLOP/s, in FP8 [\d.]+$",
                                  "product_flops_per_second")):
        bench.expect(f"the peak rate of {kind}", 0, pattern, "--ceilings", kind, "--json", report)
        assert json.loads(report.read_text())["ceilings"][field] > 0
    bench.expect("no such peak rate", 1, r"^usage: weft-rt-kernels FOLDER", "--ceilings", "both")


def libraries(bench):
    """Tests which libraries are found: with a driver and a library of matmuls only, with all, and with none."""
    report, fakes, some = bench.folder / "json", bench.binaries.parent / "runtime/fake-cuda", bench.folder / "some"
    if not fakes.exists():
        return
    some.mkdir()
    for name in ("libcuda.so.1", "libcublasLt.so.13"):
        (some / name).symlink_to(fakes / name)
    for name in ("libnccl.so.2", "libcudnn.so.9"):
        (some / name).write_text("none")
    for what, path, pattern, missing in (
            ("some libraries", some, r"^matmuls: found\nattention: cannot load libcudnn\.so\.9, .*\n"
                                     r"collectives: cannot load libnccl\.so\.2, ", {"attention", "collectives"}),
            ("all libraries", fakes, r"^driver: found\nmatmuls: found\nattention: found\ncollectives: found$", set())):
        bench.expect(what, 0, pattern, "--libraries", "--json", report, WEFT_SIMULATOR_LOADS="1",
                     LD_LIBRARY_PATH=str(path))
        told = json.loads(report.read_text())["missing"]
        if {name for name, reason in told.items() if reason} != missing:
            sys.exit(f"expected {missing} to be missing, got {told}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of LowerTests and weft-rt-kernels")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.bin.resolve(), Path(folder))
        done = bench.run([bench.binaries / "LowerTests", f"--gtest_filter={TESTS}"],
                         WEFT_KERNEL_CASES=str(bench.cases))
        if done.returncode != 0:
            sys.exit(done.stdout + done.stderr)
        bench.expect("kernels of tests", 0, r"^\d\d passed, 0 failed$")
        ceilings(bench)
        bench.expect("kernels of several names", 0, r"^[46] passed, 0 failed$", bench.cases, "--only", "Sqrt,Exp")
        libraries(bench)
        faults(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return bench.failed > 0 or bench.passed == 0


if __name__ == "__main__":
    sys.exit(main())
