#!/usr/bin/python3
#===- device_code.py - kernels become code for CUDA devices ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Compiles the examples' kernels for CUDA devices, and checks their registers and memory.

    device_code.py --bin bin           small examples
    device_code.py --bin bin --full    all examples, each with several meshes

Needs a CUDA toolkit, and no device. On each architecture each phase of each kernel must be an entry that takes
no more registers, and memory for each thread, than the budget of its kind; and none may leave large buffers to one
thread. Prints a line for each program, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from verify import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURES = ("80", "90", "100")
SMALL = ("gpt2-tiny", "llama-tiny", "mixtral-tiny", "deepseek-tiny")

# By kind of kernel, for a thread: registers, bytes of memory, and how many of these are for what registers do not
# hold. Sines of large numbers go through a table in memory. The gradients of keys and values keep both sums
# in registers, which is more than fits where heads have 128 features.
BUDGET = (128, 64, 0)
BUDGETS = {
    "attention_grad": (128, 240, 512),
}

# Bytes of a buffer that one thread may go through.
LEAST_SHARED = 4096
# Kernels with a phase for each part, of which some are few bytes; so have joined kernels.
PARTS = ("concat", "split")
BYTES = {"bf16": 2, "f16": 2, "f32": 4, "f64": 8, "i32": 4, "i64": 8}


def has_no_toolkit(tools):
    """Returns why there is no toolkit; empty if there is one."""
    probe = subprocess.run([tools / "weft-translate", "--kernels-to-ptx"], input="", capture_output=True,
                           text=True, check=False)
    return probe.stderr.strip() if "found no CUDA toolkit" in probe.stderr else ""


def kind_of(entry):
    return re.fullmatch(r"kernel_(?:joined_)?(\w+)_\d+_phase_\d+", entry)[1]


def phases_of(module):
    """The number of phases of each kernel, by name."""
    found = {}
    for name, iterations in re.findall(
            r"llvm\.func @(kernel_\w+)\([^\n]*weft\.iterations = array<i64: ([^>]*)>", module):
        found[name] = iterations.count(",") + 1
    return found


def largest_buffers(kernels):
    """Bytes of the largest tensor of each kernel, by name."""
    found = {}
    for name, signature in re.findall(r"func\.func private @(kernel_\w+)\((.*) attributes", kernels):
        tensors = re.findall(r"tensor<((?:\d+x)*)(\w+)>", signature)
        found[name] = max((math.prod(map(int, sizes.split("x")[:-1])) * BYTES[kind] for sizes, kind in tensors),
                          default=0)
    return found


def lonely_threads(kernels, module):
    """Returns a line for each phase that leaves a large buffer to one thread."""
    largest = largest_buffers(kernels)
    numbers = r"array<i64: ([^>]*)>"
    for line in module[module.index("module @devices"):].splitlines():
        kernel = re.search(rf"llvm\.func @(kernel_(\w+)_\d+)\(.*weft\.iterations = {numbers}", line)
        if not kernel or largest[kernel[1]] <= LEAST_SHARED:
            continue
        if kernel[2] in PARTS or kernel[2].startswith("joined_"):
            continue
        iterations = kernel[3].split(", ")
        threads = re.search(rf"weft\.threads = {numbers}", line)
        threads = threads[1].split(", ") if threads else ["0"] * len(iterations)
        for phase, shape in enumerate(zip(iterations, threads)):
            if shape == ("1", "0"):
                yield f"{kernel[1]}: phase {phase} leaves a buffer of {largest[kernel[1]]} bytes to one thread"


def faults_of(module, resources):
    """Returns the faults, a line each."""
    line = re.compile(r"sm_(\d+) (\w+): (\d+) registers, (\d+) bytes of stack, (\d+) spilled, (\d+) shared")
    seen = {}
    for text in resources.splitlines():
        architecture, entry, *numbers = line.fullmatch(text).groups()
        takes = tuple(map(int, numbers[:3]))
        seen.setdefault(architecture, set()).add(entry)
        budget = BUDGETS.get(kind_of(entry), BUDGET)
        if any(number > most for number, most in zip(takes, budget)):
            yield (f"sm_{architecture} {entry}: expected at most {budget} registers, bytes of stack and bytes "
                   f"spilled, got {takes}")
    phases = phases_of(module)
    wanted = {f"{name}_phase_{phase}" for name, count in phases.items() for phase in range(count)}
    for architecture in ARCHITECTURES:
        if not wanted or seen.get(architecture) != wanted:
            yield f"sm_{architecture}: expected entries {wanted}, got {seen.get(architecture)}"


def compile_command(tools, name, machine, nodes, mesh):
    """Returns the command that compiles an example for `mesh`, without the output's options."""
    example = ROOT / "examples" / name
    return [tools / "weft", "compile", example / "model.textproto", "--recipe", example / "recipe.textproto",
            "--machine", machine, "--nodes", nodes, "--pin", mesh]


def check(tools, name, machine, nodes, mesh, folder):
    """Returns the faults, a line each, and the largest use of registers and memory."""
    module, kernels, roomy = folder / "module.mlir", folder / "kernels.mlir", folder / "machine.textproto"
    # Meshes are few ranks for the large ones; it is the kernels that count here.
    text = (ROOT / f"machines/{machine}.textproto").read_text()
    roomy.write_text(re.sub(r"memory_bytes: \S+", "memory_bytes: 1000000000000000", text))
    compiling = [*compile_command(tools, name, roomy, nodes, mesh), "--target", "cuda"]
    commands = [
        [*compiling, "--stop-after", "schedule", "-o", kernels],
        [*compiling, "--stop-after", "lower", "-o", module],
        [tools / "weft-translate", "--kernels-to-resources", module]]
    for command in commands:
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            return [done.stderr.strip()], ""
    entries = len(done.stdout.splitlines()) // len(ARCHITECTURES)
    faults = [*faults_of(module.read_text(), done.stdout), *lonely_threads(kernels.read_text(), module.read_text())]
    return faults, f"{entries} entries"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft and weft-translate")
    parser.add_argument("--full", action="store_true", help="all examples with all their meshes")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    passed = failed = 0
    for name, (machine, nodes, meshes) in EXAMPLES.items():
        for mesh in meshes if options.full else meshes[-1:] if name in SMALL else []:
            with tempfile.TemporaryDirectory() as folder:
                faults, takes = check(options.bin, name, machine, nodes, mesh, Path(folder))
            passed, failed = (passed + 1, failed) if not faults else (passed, failed + 1)
            print("FAIL" if faults else "pass", name, mesh, takes, flush=True)
            for fault in faults:
                print("    " + fault, flush=True)
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
