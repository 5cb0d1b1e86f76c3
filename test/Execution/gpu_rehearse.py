#!/usr/bin/python3
#===- gpu_rehearse.py - utils/gpu/rehearse, on a small pack ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Rehearses utils/gpu/check on machines that lack something, with a pack without models.

    gpu_rehearse.py --bin bin

A missing library or tool must cost the rows that need it and no others, and so must a program that crashes. Needs a
build of libweft-rt-cuda.so.1 and the right to make namespaces. Prints a line for each case, then "N passed, N failed";
fails if one failed or none ran.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from device_code import has_no_toolkit

GPU = Path(__file__).resolve().parents[2] / "utils/gpu"
sys.path.insert(0, str(GPU))
import gpu_machine  # noqa: E402  pylint: disable=wrong-import-position

# Rows that need nothing, a library, or a tool; and kernels of two unit tests, one for the sanitizer's row.
ROWS = "versions|kernels, small|ceilings|conformance|memcheck"
KERNELS = "*FunctionTest.Sqrt/*:*NormTest.RootMeanSquare/*"
# Exit status if this user may not make namespaces, or if a prerequisite is missing.
SKIPPED = 77


class Bench:
    def __init__(self, build, folder):
        self.build, self.pack, self.passed, self.failed = build, folder / "gpu.tar.xz", 0, 0
        # Where tools make temporary files.
        self.temporary = folder / "tmp"
        self.temporary.mkdir()

    def start(self, tool, *words, **environment):
        return subprocess.Popen([str(word) for word in (GPU / tool, "--build", self.build, *words)], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, "TMPDIR": str(self.temporary), **environment})

    def run(self, tool, *words, **environment):
        with self.start(tool, *words, **environment) as running:
            said = running.communicate()[0]
        return running.returncode, said

    def told(self, what, is_good, said):
        """Reports a case; all temporary files must be gone."""
        is_good = is_good and not list(self.temporary.iterdir())
        self.passed, self.failed = self.passed + is_good, self.failed + (not is_good)
        print("pass" if is_good else "FAIL", what, "" if is_good else said, flush=True)

    def expect(self, what, status, patterns, *words, **environment):
        """Expects all patterns in the output of a rehearsal."""
        got, said = self.run("rehearse", self.pack, "--only", ROWS, "--slower", 20, *words, **environment)
        self.told(what, got == status and all(re.search(one, said, re.MULTILINE) for one in patterns),
                  f"{got}: {said}, left: {list(self.temporary.iterdir())}")


def line(name, *states):
    """Returns the pattern of a row's line, with its state on each machine."""
    return rf"^\| {name} \| \d+ " + "".join(rf"\| {state} [\d.]+ " for state in states) + r"\|$"


def rehearse(bench):
    bench.expect("machines that lack something", 0, [
        r"^Carried: [\d,]+ bytes of the pack \([\d.]+ MiB\) beside [\d,]+ bytes of tracked files \([\d.]+ MiB\)\.$",
        r"^\| row \| planned s \| driver \| toolkit \| libraries \| torch \|$",
        line("versions", *["told"] * 4), line("kernels, small", *["pass"] * 4),
        line("ceilings of copies", *["pass"] * 4), line("ceilings of matmuls", "skipped", "skipped", "pass", "pass"),
        line("conformance", "skipped", "skipped", "pass", "pass"),
        line("compute-sanitizer memcheck", "skipped", "pass", "pass", "pass"),
        r"^- skipped, 1: cannot load libcublasLt\.so\.13, .*: ceilings of matmuls$",
        r"^- skipped, 1: cannot load libnccl\.so\.2, .*: conformance$",
        r"^- skipped, 1: there is no compute-sanitizer: compute-sanitizer memcheck$",
        r"^On libraries:\n\n- all rows passed$", r"there is no PyTorch: ModuleNotFoundError", r"PyTorch fake"])
    bench.expect("a program that crashes", 0, [
        line("ceilings of copies", "pass"), line("conformance", "FAIL"), line("compute-sanitizer memcheck", "pass"),
        r"^- FAIL, 1: \S*/weft-rt-conformance-cuda ends with status -11: conformance$"],
        "--machine", "torch", "--crash", "weft-rt-conformance-cuda")
    bench.expect("one library that is missing", 0, [
        line("ceilings of matmuls", "pass"), line("conformance", "skipped"),
        r"^On libraries:\n\n- skipped, 1: cannot load libnccl\.so\.2, .*: conformance\n"],
        "--machine", "libraries", "--hide", "libnccl*")
    bench.expect("later calls", 0, [
        r"^\| row \| planned s \| toolkit, call 1 \| toolkit, call 2 \| toolkit, call 3 \|$",
        r"^\| kernels, small \| 10 \| pass [\d.]+ \|  \|  \|$", line("conformance", *["skipped"] * 3),
        r"^\| compute-sanitizer memcheck, all kernels \| 60 \|  \| pass [\d.]+ \|  \|$"],
        "--machine", "toolkit", "--calls", 3)
    with bench.start("rehearse", bench.pack, "--only", ROWS) as running:
        first = running.stdout.readline()
        running.terminate()
        rest = running.communicate()[0]
    bench.told("a rehearsal that is stopped",
               first.startswith("driver 1: ") and rest.endswith("rehearse: stopped by SIGTERM\n"), first + rest)
    bench.expect("no namespaces", SKIPPED, [r"^rehearse: this user may not make namespaces: unshare: No such file"],
                 PATH="/no/programs")
    bench.expect("no such program", 1, [r"^rehearse: nothing is not in "], "--machine", "driver", "--crash", "nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft-rt-kernels and LowerTests")
    options = parser.parse_args()
    build = options.bin.resolve().parent
    if not (build / "lib/libweft-rt-cuda.so.1").exists():
        print("skipped: libweft-rt-cuda.so.1 is left out of this build")
        return SKIPPED
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(build, Path(folder))
        (Path(folder) / "probe").mkdir()
        if reason := gpu_machine.lack_of_rights(Path(folder) / "probe"):
            print(f"skipped: this user may not make namespaces: {reason}")
            return SKIPPED
        status, said = bench.run("check", "--pack", bench.pack, "--only", "no model", "--kernels", KERNELS)
        if status != 0:
            sys.exit(said)
        rehearse(bench)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return bench.failed > 0 or bench.passed == 0


if __name__ == "__main__":
    sys.exit(main())
