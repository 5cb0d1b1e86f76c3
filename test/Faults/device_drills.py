#!/usr/bin/python3
#===- device_drills.py - every call to a device's libraries fails -------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs programs for CUDA devices on fake libraries, of which each function fails with each documented error.

    device_drills.py --bin bin                    a sample: each function once
    device_drills.py --bin bin --full             each function with each error, at its first, middle and last call
    device_drills.py --bin bin --only cuMemAlloc  all cases of one function

docs/DeviceCalls.md lists the functions, their errors and what an error does. Whatever fails, the run must end soon,
with one report that names device, rank and call, for a call of an instruction also the instruction with its label, and
with the exit status of docs/Running.md. A run that goes on must free everything. Needs a CUDA toolkit for compiling and
for its headers, and no device. Prints a line for each failed case, then "N passed, M failed"; fails if one failed or
none ran.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import faults
from device_call_table import SOURCE, Function, Headers, functions_of

sys.path.insert(0, str(SOURCE / "test" / "Execution"))
from device_code import has_no_toolkit  # noqa: E402  # pylint: disable=wrong-import-position

ERROR, OUT_OF_MEMORY = 1, 4
# Seconds that a run may take to end; more is a hang.
TIME_LIMIT = 60
EXPERTS = "experts { experts: 4 experts_per_token: 2 }\n"
RECIPE = faults.RECIPE.replace("F64", "BF16")
# Program: model, recipe, machine, pins, devices.
PROGRAMS = {
    "one": (faults.MODEL, RECIPE, faults.MACHINE, ["dp=1"], 1),
    "four": (faults.MODEL + EXPERTS, RECIPE, faults.MACHINE, ["dp=2", "ep=2"], 4),
    # Its collectives run beside computation.
    "eight": (faults.MODEL + EXPERTS, RECIPE.replace("global_batch_sequences: 4", "global_batch_sequences: 8"),
              (SOURCE / "machines" / "h100-8.textproto").read_text(), ["dp=4", "ep=2"], 8),
}
# Program, variables of the fake libraries, options of the run. A function fails in the first that calls it, and in the
# last.
VARIANTS = {
    "four ranks": ("four", {}, []),
    "graphs": ("four", {}, ["--graphs"]),
    "without windows": ("four", {"WEFT_FAKE_NO_WINDOWS": "1"}, []),
    "eight ranks": ("eight", {}, []),
    "one rank": ("one", {}, []),
}
# Functions that no run without an error calls; runtime/tests/backends/cuda calls them.
NOT_CALLED = {"cuGetErrorName", "cuGetErrorString", "cuMemcpyDtoDAsync", "cuMemcpy2DAsync", "cuMemsetD2D8Async",
              "cublasLtGetStatusString", "cublasLtGetVersion", "cublasLtMatmulAlgoConfigGetAttribute",
              "ncclGetErrorString", "ncclGetLastError", "ncclCommAbort"}
# Functions whose calls are all for instructions, without graphs.
FOR_INSTRUCTIONS = re.compile(r"cuLaunchKernel|cuModuleGetFunction|cuFunc\w+|cublasLtMatmul|cublasLtMatmulAlgo\w+|"
                              r"nccl(?:AllReduce|AllGather|ReduceScatter|Send|Recv|GroupStart|GroupEnd)")
INSTRUCTIONS = r"(?:in|for) (?:init|step|evaluate) instructions? \d+[^\n]* \([^\n]*, [^\n]*\)"
FREES = re.compile(r"\w*(?:Free|Destroy|Release|Unload)\w*")


@dataclass
class Case:
    """Call `number` of `count` of a function returns `code`, which is `error`."""

    variant: str
    function: Function
    symbol: str
    number: int
    count: int
    error: str
    code: int

    def __str__(self):
        return f"{self.function.name} {self.error}, call {self.number} of {self.count}, {self.variant}"

    def report(self):
        """Returns the pattern of the report."""
        name = self.function.name
        place = rf"(?:, {INSTRUCTIONS})?(?:, having come to [^\n]*)?"
        if FOR_INSTRUCTIONS.fullmatch(name) and self.variant != "graphs":
            place = rf", {INSTRUCTIONS}"
        reports = [rf"device \d of rank \d{place}: {name}[^\n]*"]
        if name in ("cuInit", "cuDeviceGetCount", "cuDriverGetVersion"):
            reports.append(rf"this program is for CUDA devices: {name}[^\n]*")
        if self.lacks_memory():
            reports += [r"rank \d cannot allocate [^\n]*",
                        r"device \d of rank \d, a Fake, has too little memory [^\n]*"]
        table = r"\nmemory of each rank: [^\n]*\n  parameter [^\n]*\nmemory of each device: [^\n]*"
        return "error: (?:" + "|".join(reports) + ")" + (table if self.lacks_memory() else "")

    def lacks_memory(self):
        return self.error in ("CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED")

    def wrong(self, status, errors, left):
        """Returns what is wrong with the end of the run, or None."""
        is_answer = self.error == "CUDA_ERROR_NOT_READY" and self.function.name == "cuEventQuery"
        ends = {"none"} if is_answer else self.function.ends
        kept = 1 if FREES.fullmatch(self.function.name) else 0
        if status is None:
            return f"a hang of more than {TIME_LIMIT} s"
        if status == 0 and not 0 <= left <= kept:
            return f"{left} objects are not freed"
        if status == 0:
            end = "note" if re.fullmatch(r"note: [^\n]*", errors) else "none" if not errors else "words"
            return None if end in ends else f"expected {' or '.join(ends)}, got a run that goes on: {errors[-300:]}"
        if "report" not in ends:
            return f"expected {' or '.join(ends)}, got exit status {status}: {errors[-300:]}"
        expected = OUT_OF_MEMORY if self.lacks_memory() else ERROR
        if status != expected:
            return f"expected exit status {expected}, got {status}: {errors[-300:]}"
        return None if re.fullmatch(self.report(), errors) else f"expected '{self.report()}', got '{errors[-600:]}'"


class Bench:
    """A folder with programs, and the number of cases."""

    def __init__(self, binaries, folder):
        self.folder, self.passed, self.failed = folder, 0, 0
        self.environment = dict(os.environ, LD_LIBRARY_PATH=str(binaries.parent / "runtime" / "fake-cuda"),
                                WEFT_FAKE_PHASES="1")
        self.environment.pop("WEFT_RT_CUDA", None)
        (folder / "text").write_text(faults.TEXT)
        for name, (model, recipe, machine, pins, _) in PROGRAMS.items():
            for kind, text in (("model", model), ("recipe", recipe), ("machine", machine)):
                (folder / kind).write_text(text)
            done = subprocess.run([binaries / "weft", "compile", "model", "--machine", "machine", "--recipe", "recipe",
                                   *(word for pin in pins for word in ("--pin", pin)), "--target", "cuda", "-o", name],
                                  cwd=folder, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                sys.exit(f"weft compile of {name}: {done.stderr}")

    def run(self, variant, **more):
        """Returns the exit status of a run (None for a hang), its errors, the numbers of calls, and of objects left."""
        program, variables, options = VARIANTS[variant]
        calls = self.folder / "calls"
        calls.write_text("")
        with tempfile.TemporaryDirectory(dir=self.folder) as cache:  # Otherwise runs would use choices of earlier ones.
            variables = {**self.environment, "WEFT_FAKE_DEVICES": str(PROGRAMS[program][4]), "XDG_CACHE_HOME": cache,
                         "WEFT_FAKE_CALLS": str(calls), **variables, **more}
            try:
                done = subprocess.run([f"./{program}", "--data", "text", "--steps", "2", "--quiet", *options],
                                      cwd=self.folder, env=variables, text=True, capture_output=True, check=False,
                                      timeout=TIME_LIMIT)
            except subprocess.TimeoutExpired:
                return None, "", {}, 0
        counts = {}
        for name, count in map(str.split, calls.read_text().splitlines()):
            counts[name] = counts.get(name, 0) + int(count)
        # What the fake cuDNN cannot do is said before.
        lines = [line for line in done.stderr.splitlines() if not line.startswith("the compiler's code runs ")]
        return done.returncode, "\n".join(lines), counts, counts.pop("left", 0)

    def attempt(self, case):
        status, errors, _, left = self.run(case.variant, WEFT_FAKE_FAIL=f"{case.symbol}:{case.number}:{case.code}")
        wrong = case.wrong(status, errors, left)
        self.passed, self.failed = self.passed + (not wrong), self.failed + bool(wrong)
        if wrong:
            print(f"FAIL {case}: {wrong}", flush=True)


def symbol_of(name, counts):
    """Returns the exported name of a function, of a newer version or not, if it was called."""
    return next((symbol for symbol in counts if re.fullmatch(rf"{name}(?:WithFlags)?(?:_v\d)?", symbol)), None)


def cases(functions, headers, called):
    """Returns all cases, by function."""
    found = {}
    for function in functions:
        for variant, counts in called.items():
            symbol = symbol_of(function.name, counts)
            if not symbol or (function.name in found and variant != "one rank"):
                continue
            numbers = sorted({1, (counts[symbol] + 1) // 2, counts[symbol]})
            found.setdefault(function.name, []).extend(
                Case(variant, function, symbol, number, counts[symbol], error, code)
                for number in numbers for error, code in function.codes(headers).items())
    return found


def sampled(found):
    """Returns one case of each function, at another place and of another error for each."""
    return {name: [all_of[place * 7 % len(all_of)]] for place, (name, all_of) in enumerate(found.items()) if all_of}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft")
    parser.add_argument("--headers", type=Path, default=Path("/usr/local/cuda/include"), help="the folder of cuda.h")
    parser.add_argument("--full", action="store_true", help="all cases")
    parser.add_argument("--only", help="all cases of the function of this name")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    if not (options.headers / "nccl.h").exists() or not (options.bin.parent / "runtime/fake-cuda").exists():
        print("skipped: this build has no libweft-rt-cuda.so.1")
        return 77
    functions = functions_of((SOURCE / "docs" / "DeviceCalls.md").read_text())
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.bin.resolve(), Path(folder))
        called = {}
        for variant in VARIANTS:
            status, errors, called[variant], left = bench.run(variant)
            if status != 0 or errors or left != 0:
                sys.exit(f"{variant}: expected success, got status {status}, {left} objects left, {errors}")
        all_cases = cases(functions, Headers(options.headers), called)
        missing = {function.name for function in functions} - set(all_cases)
        if missing != NOT_CALLED:
            bench.failed += 1
            print(f"FAIL functions without a call: expected {sorted(NOT_CALLED)}, got {sorted(missing)}")
        if options.only:
            chosen = {options.only: all_cases[options.only]}
        else:
            chosen = all_cases if options.full else sampled(all_cases)
        for case in (case for group in chosen.values() for case in group):
            bench.attempt(case)
    print(f"{bench.passed} passed, {bench.failed} failed")
    return 1 if bench.failed or not bench.passed else 0


if __name__ == "__main__":
    sys.exit(main())
