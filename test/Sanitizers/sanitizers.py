#!/usr/bin/python3
#===- sanitizers.py - the runtime and a program under a sanitizer ----------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Builds the runtime with one sanitizer, runs its tests, and trains a compiled program on it.

The address sanitizer comes with that of undefined behaviour.

The program is an example's, in float64 so that its matmuls are generated code too, on four ranks.
Its output must equal that of the program without a sanitizer, and no sanitizer may report anything.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test/Execution"))
import cases  # noqa: E402

STEPS = 3
VALIDATIONS = 2


def run(command, **options):
    """Runs a command, and ends with what it printed if it fails."""
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **options)
    if result.returncode != 0:
        print(result.stdout[-20000:])
        raise SystemExit(f"{' '.join(map(str, command))}: exit status {result.returncode}\n"
                         "0 passed, 1 failed")
    return result.stdout


def build_runtime(sanitizer, folder):
    run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_C_COMPILER=clang-22",
         "-DCMAKE_CXX_COMPILER=clang++-22", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache",
         f"-DWEFT_SANITIZE={sanitizer}"])
    # As utils/build: without it ccache does not serve files that use a precompiled header.
    run(["ninja", "-C", folder], env={**os.environ, "CCACHE_SLOPPINESS": "pch_defines,time_macros"})


def losses(weft, folder, name, options):
    """The losses of a few steps and validations of a program compiled with `options`."""
    case = next(case for case in cases.default_cases() if case.dropout and case.family == "llama")
    model, recipe = cases.write(case, folder)
    machine, text = folder / "machine.textproto", folder / "text"
    # On slow links collectives run beside computation.
    machine.write_text(cases.MACHINE.replace("bandwidth_bytes_per_second: 5e9", "bandwidth_bytes_per_second: 2e7"))
    text.write_text(cases.training_text())
    program, metrics = folder / name, folder / f"{name}.jsonl"
    run([weft, "compile", model, "--machine", machine, "--recipe", recipe, "--pin", "dp=2",
         "--pin", "tp=2", "-o", program, *options])
    run([program, "--data", text, "--steps", STEPS, "--metrics", metrics,
         "--save", folder / f"{name}.safetensors", "--save-gradients", folder / f"{name}.gradients",
         "--validation-split", "0.1", "--validation-every", "2", "--validation-steps", "2",
         "--checkpoint-dir", folder / f"{name}.checkpoints", "--checkpoint-every", 1],
        env={**os.environ, "TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=1"})
    lines = map(json.loads, metrics.read_text().splitlines())
    return [line["loss" if "loss" in line else "validation_loss"] for line in lines]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sanitizer", choices=["address", "thread"])
    parser.add_argument("--weft", required=True, type=Path, help="the compiler")
    parser.add_argument("--build", required=True, type=Path, help="folder for the runtime's build")
    options = parser.parse_args()

    build_runtime(options.sanitizer, options.build)
    run(["ctest", "--test-dir", options.build, "--output-on-failure", "--parallel", os.cpu_count()])
    print("pass: the runtime's tests")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = losses(options.weft, folder, "plain", [])
        watched = losses(options.weft, folder, "watched",
                         ["--sanitize", options.sanitizer,
                          "--runtime", options.build / "lib/libweft-rt.a"])
    if len(plain) != STEPS + VALIDATIONS or any(abs(a - b) > 1e-12 * abs(b) for a, b in zip(watched, plain)):
        print(f"FAIL: the program's losses are {watched}, expected {plain}")
        print("1 passed, 1 failed")
        return 1
    print("pass: a compiled program")
    print("2 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
