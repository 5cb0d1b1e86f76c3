#!/usr/bin/python3
#===- reshards.py - a value from every sharding to every other -------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs every reshard of a matrix on meshes of two and three axes, and compares all elements.

    reshards.py --weft bin/weft [--full]

One matmul of two matrices of whole numbers is computed under every sharding, pending sums
included, and resharded from each to each other. Every result is written to
a variable of its own, and must be the matmul exactly. Meshes of three axes have thousands of
pairs, of which a sample is taken unless --full is given.

Prints a line for each mesh, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "Reference"))
import safetensors  # noqa: E402

MESHES = ((2, 2), (2, 3), (2, 2, 2))
ROWS, COLUMNS, TERMS = 24, 24, 24
AXES = "abc"
SAMPLE = 300

RECIPE = """version: 1 sequence_length: 2 global_batch_sequences: 1 precision: F64
sgd {} schedule { peak_learning_rate: 1.0 } steps: 1
"""

MACHINE = """version: 1 name: "test" devices_per_node: 8
device {
  name: "core" peak_flops { precision: F64 flops: 1e10 }
  memory_bytes: 1073741824 memory_bandwidth_bytes_per_second: 1e10
}
links { name: "memory" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 5e9 }
"""


def layouts(mesh):
    """Returns all shardings of a matrix: axes of rows, of columns, and pending ones."""
    found = []
    for uses in itertools.product(range(4), repeat=len(mesh)):
        lists = [[axis for axis, use in enumerate(uses) if use == wanted] for wanted in range(3)]
        for rows in itertools.permutations(lists[0]):
            found += [(rows, columns, tuple(lists[2]))
                      for columns in itertools.permutations(lists[1])]
    return found


def cut(axes):
    return "{" + ", ".join(f'"{AXES[axis]}"' for axis in axes) + "}"


def tensor(shape, dims, pending=()):
    """The type of a sharded tensor of float64."""
    unreduced = f", unreduced = sum{cut(pending)}" if pending else ""
    sizes = "".join(f"{size}x" for size in shape)
    return (f"tensor<{sizes}f64, #weft.sharding<#mesh, "
            f"[{', '.join(cut(axes) for axes in dims)}]{unreduced}>>")


class Module:
    """A module after Plan in which a step computes all the reshards of `pairs`."""

    def __init__(self, mesh, pairs):
        self.mesh, self.variables, self.step, self.names = mesh, {}, [], []
        self.values = {}
        for number, (source, target) in enumerate(pairs):
            self.reshard(number, source, target)

    def parameter(self, name, kind):
        self.variables[name] = kind

    def value(self, layout):
        """Returns the matmul under `layout`, with the operands cut accordingly."""
        if layout not in self.values:
            rows, columns, pending = layout
            name = f"p{len(self.values)}"
            left, right = (tensor((TERMS, size), (pending, axes))
                           for size, axes in ((ROWS, rows), (COLUMNS, columns)))
            self.parameter(f"{name}.left", left)
            self.parameter(f"{name}.right", right)
            self.step += [
                f"%{name}.left = weft.read @{name}.left : {left}",
                f"%{name}.right = weft.read @{name}.right : {right}",
                f'%{name} = weft.contract "kr,kc->rc" (%{name}.left, %{name}.right) : '
                f"({left}, {right}) -> {self.type(layout)}"]
            self.values[layout] = f"%{name}"
        return self.values[layout]

    @staticmethod
    def type(layout):
        rows, columns, pending = layout
        return tensor((ROWS, COLUMNS), (rows, columns), pending)

    def reshard(self, number, source, target):
        value, kind = self.value(source), self.type(source)
        result = (target[0], target[1], ())
        for stage, wanted in enumerate((target, result)):
            if self.type(wanted) != kind:
                moved = f"%r{number}.{stage}"
                self.step.append(f"{moved} = weft.reshard {value} : {kind} -> {self.type(wanted)}")
                value, kind = moved, self.type(wanted)
        name = f"result.{number}"
        self.parameter(name, kind)
        self.names.append(name)
        self.step.append(f"weft.assign @{name}, {value} : {kind}")

    def text(self):
        axes = ", ".join(f'"{AXES[axis]}"={size}' for axis, size in enumerate(self.mesh))
        ids = "tensor<1x2xi32, #weft.sharding<#mesh, [{}, {}]>>"
        number = "tensor<i64, #weft.sharding<#mesh, []>>"
        lines = [f"#mesh = #weft.mesh<{axes}>",
                 "module @reshards attributes {weft.mesh = #mesh} {"]
        table = tensor((6, 1), ((), ()))
        for name, kind in {**self.variables, "embed.tokens.weight": table}.items():
            lines.append(f'weft.variable parameter @{name} ["d0", "d1"] : {kind}')
        lines += [f'weft.variable input @{name} ["batch", "sequence"] : {ids}'
                  for name in ("tokens", "targets")]
        lines += [f"weft.variable input @{name} [] : {number}" for name in ("seed", "step_number")]
        lines.append("func.func @init() {")
        for name, kind in {**self.variables, "embed.tokens.weight": table}.items():
            lines += [f"%{name} = weft.fill constant 0.0 : {kind}",
                      f"weft.assign @{name}, %{name} : {kind}"]
        scalar = "tensor<f64, #weft.sharding<#mesh, []>>"
        lines += ["return", "}", "func.func @step() {", *self.step,
                  f"%zero = weft.fill constant 0.0 : {scalar}",
                  f'weft.observe "loss", %zero : {scalar}', "return", "}", "}"]
        return "\n".join(lines) + "\n"


def call(folder, *command):
    done = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True,
                          text=True, timeout=600)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {(done.stderr or done.stdout).strip()[:2000]}")


def check(weft, folder, mesh, pairs):
    """Returns a sentence about the first wrong result, or None."""
    module = Module(mesh, pairs)
    for name, text in (("module.mlir", module.text()), ("recipe", RECIPE), ("machine", MACHINE)):
        (folder / name).write_text(text)
    plan = "version: 1 mesh { " + " ".join(
        f'axis {{ name: "{AXES[axis]}" size: {size} }}' for axis, size in enumerate(mesh)) + " }\n"
    (folder / "plan").write_text(plan)
    (folder / "text").write_bytes(bytes(8))
    call(folder, weft, "compile", "module.mlir", "--start-after=plan", "--machine", "machine",
         "--recipe", "recipe", "--plan", "plan", "-o", "program")
    generator = np.random.default_rng(1)
    left, right = (generator.integers(-9, 10, (TERMS, size)).astype(np.float64)
                   for size in (ROWS, COLUMNS))
    values = {name: left if name.endswith("left") else right if name.endswith("right")
              else np.zeros((ROWS, COLUMNS)) for name in module.variables}
    values["embed.tokens.weight"] = np.zeros((6, 1))
    safetensors.save(folder / "values", values)
    call(folder, "./program", "--data", "text", "--load", "values", "--steps", 1, "--quiet",
         "--save", "results")
    results = safetensors.load(folder / "results")
    for name, (source, target) in zip(module.names, pairs):
        if not np.array_equal(results[name], left.T @ right):
            return f"{Module.type(source)} -> {Module.type(target)} gives another value"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    parser.add_argument("--full", action="store_true", help="all pairs of every mesh")
    options = parser.parse_args()
    passed = failed = 0
    for mesh in MESHES:
        pairs = list(itertools.product(layouts(mesh), repeat=2))
        # What is pending stays so only where it was before.
        pairs = [(a, b) for a, b in pairs if a != b and (not a[2] or set(b[2]) <= set(a[2]))]
        if len(pairs) > SAMPLE and not options.full:
            pairs = random.Random(0).sample(pairs, SAMPLE)
        for begin in range(0, len(pairs), SAMPLE):
            part = pairs[begin:begin + SAMPLE]
            with tempfile.TemporaryDirectory(prefix="weft-reshards-") as folder:
                try:
                    fault = check(Path(options.weft).resolve(), Path(folder), mesh, part)
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    fault = str(error)
            passed, failed = passed + (not fault), failed + bool(fault)
            size = "x".join(str(size) for size in mesh)
            print(f"{'FAIL' if fault else 'ok  '} {size}: {len(part)} pairs"
                  + (f": {fault}" if fault else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


main()
