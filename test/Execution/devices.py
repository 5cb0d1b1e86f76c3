#!/usr/bin/python3
#===- devices.py - programs for CUDA devices give the host's results -------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs examples that were compiled for CUDA devices on the simulator for these, and on the host.

    devices.py --bin bin           small examples, each with one mesh
    devices.py --bin bin --full    with all their meshes, and more orders of the device's work

The code that issues work is the same as for real devices; the simulator does the work on the host, in an order that
streams and events allow, and refuses calls that may fail on a device. Losses, gradients and weights
must have the bits of the host's program, or where matmuls have an epilogue that rounds otherwise than the host's
kernels do (NEAR), or are padded (NEAR_MESHES), or multiply bytes (FP8), or where gradients of norms compute their
operands (FUSED_SUMS), be as near as float32 allows; launched as graphs, steps have the same bits as without.
Needs a CUDA toolkit for compiling, and no device. Prints a line for each run, then "N passed, N failed"; fails if
one failed or none ran.
"""

import argparse
import array
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from device_code import SMALL, compile_command, has_no_toolkit
from verify import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
STEPS = 2
# Of GPT-2, GELU and sums of gradients are part of matmuls. What is padded is longer on devices, for aligned rows, so
# that sums over it have another order.
NEAR = {"gpt2-tiny"}
NEAR_MESHES = {"tp=3"}
# Into how many parts the host's code cuts a row's sums depends on its processor and on what else the loop computes. So
# sums of a kernel that computes maps of its operands, as devices' kernels do, may have another order than the host's.
FUSED_SUMS = re.compile("@kernel_fused_norm")
# Beside the meshes of verify.py: matmuls that add up the gradients of micro-batches, padded heads, ffn and vocabulary,
# micro-batches that are actions of one body, activations that are computed twice, and pipeline stages.
MORE_MESHES = {"llama-tiny": ["tp=2,accumulation=2", "tp=3", "dp=2,zero=3,accumulation=4", "tp=2,recompute=full",
                              "pp=2,accumulation=4", "pp=2,dp=2,zero=3,accumulation=4,schedule=gpipe",
                              "pp=2,chunks=2,tp=2,accumulation=4"]}
# A plan whose stages have other groups of ranks: the second has tensor parallelism.
PLAN_OF_LAYERS = """version: 1
mesh { axis { name: "a" size: 2 } axis { name: "b" size: 2 } }
sharding { dimension: "batch" axes: ["a", "b"] }
sharding { dimension: "batch" axes: "a" first_layer: 2 }
sharding { dimension: "kv_heads" axes: "b" first_layer: 2 }
sharding { dimension: "ffn" axes: "b" first_layer: 2 }
home { dimension: "hidden" axes: ["a", "b"] last_layer: 1 }
accumulation: 4
pipeline { stages: 2 }
"""
# What a number may be off, as a part of the largest in its tensor, of small tensors as a part of that part of the
# largest of all: gradients of keys' biases are nothing but roundings, from which AdamW makes whole steps.
# A norm is printed with four digits, of which the last may be another.
PARTS = {"steps": (3e-4, 1e-3), "gradients": (1e-3, 1e-3), "weights": (1e-2, 1)}
# An operand on the border between two FP8 numbers, an eighth of it apart, may go to either: so more differs, and
# gradients are those of the first step, before AdamW makes steps of roundings.
PARTS_OF_BYTES = {**PARTS, "steps": (2e-3, 1e-3), "gradients": (3e-2, 1e-3)}
# Of more than examples have. At the default scale of F16 the first gradients leave the range.
MORE_LINES = ("precision: F16 loss_scale { initial: 1024 }", "precision: TF32", "documents { end: 5 }",
              "precision: BF16 documents { end: 5 }")
# Stages that gather parameters once a step, or several times: the same bits.
GATHERED = ("llama-tiny", "h100-8", "pp=2,chunks=2,dp=2,zero=1,accumulation=4", "precision: BF16")
# The machine has a rate for FP8 matmuls. Beside their operands all is float32: in bf16 a sum in another
# order rounds to another number now and then, and that to another FP8 number.
FP8 = (("llama-tiny", "tp=2", "precision: F32 fp8 {}"),
              ("gpt2-tiny", "dp=2,tp=2,zero=3", "precision: F32 fp8 {}"),
              ("llama-tiny", "dp=2,tp=2,zero=1,accumulation=2",
               "precision: F32 fp8 { scaling: DELAYED history: 2 }"))


def run(command, **environment):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})


def compiled(tools, name, machine, nodes, mesh, target, folder, lines):
    """Returns the program, compiled with more lines in its recipe; raises if compilation fails."""
    program, recipe = folder / target, folder / "recipe.textproto"
    recipe.write_text((ROOT / "examples" / name / "recipe.textproto").read_text() + lines)
    command = compile_command(tools, name, ROOT / f"machines/{machine}.textproto", nodes, mesh)
    command[command.index("--recipe") + 1] = recipe
    if mesh == PLAN_OF_LAYERS:
        plan = folder / "plan.textproto"
        plan.write_text(mesh)
        command[command.index("--pin"):] = ["--plan", plan]
    done = run([*command, "--target", target, "-o", program])
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return program


def trained(program, text, of_bytes, *flags, **environment):
    """Returns a run's output about its steps, and its files; raises if it fails."""
    weights, gradients = program.with_suffix(".weights"), program.with_suffix(".gradients")
    # Gradients are looked at in one step, which is then not done by graphs.
    done = run([program, "--data", text, "--steps", STEPS, "--save", weights, "--save-gradients", gradients,
                "--gradients-step", 0 if of_bytes else STEPS - 1, *flags], **environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    steps = re.findall(r"^step .*?gradient norm [^ ]+", done.stdout, re.MULTILINE)
    return {"steps": steps, "weights": weights.read_bytes(), "gradients": gradients.read_bytes()}


def floats_of(file):
    """The tensors of a safetensors file of float32, by name."""
    begin = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:begin])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            assert entry["dtype"] == "F32", entry
            tensors[name] = array.array("f", file[begin + first:begin + last])
    return tensors


def is_near(what, got, expected, of_bytes):
    """Returns whether steps, or the tensors of a file, are the same except for rounding, of operands to bytes, too."""
    if what == "steps":
        got, expected = ({str(i): [float(number) for number in re.findall(r"[-+0-9.e]*[0-9]", step)]
                          for i, step in enumerate(steps)} for steps in (got, expected))
    else:
        got, expected = floats_of(got), floats_of(expected)
    part, small = (PARTS_OF_BYTES if of_bytes else PARTS)[what]
    greatest = {name: max(map(abs, values), default=0) for name, values in expected.items()}
    least = small * max(greatest.values())
    return got.keys() == expected.keys() and all(
        len(got[name]) == len(values) and
        max(map(abs, map(float.__sub__, got[name], values)), default=0) <= part * max(greatest[name], least)
        for name, values in expected.items())


def plugin_of(options):
    return options.bin.parent / "lib" / "libweft-rt-cuda-simulator-plugin.so"


def fault_of(options, name, machine, nodes, mesh, seeds, lines=""):
    """Returns a sentence about the fault, or None."""
    of_bytes = "fp8" in lines
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        text = folder / "text"
        text.write_bytes(bytes(i * i % 101 for i in range(1 << 16)))
        try:
            host, device = (compiled(options.bin, name, machine, nodes, mesh, target, folder, lines)
                            for target in ("host", "cuda"))
            expected = trained(host, text, of_bytes)
            if len(expected["steps"]) != STEPS:
                return f"expected {STEPS} steps, the host did {expected['steps']}"
            printed = run([device, "--print-program"]).stdout
            if of_bytes and not re.search("matmul f8e4m3 by f8e4m3", printed):
                return "no matmul multiplies bytes"
            may_round = of_bytes or name in NEAR or mesh in NEAR_MESHES or FUSED_SUMS.search(printed)
            for seed in range(seeds):
                # A library's attention has other roundings: device_attention.py.
                environment = {"WEFT_RT_CUDA": str(plugin_of(options)), "WEFT_SIMULATOR_SEED": str(seed),
                               "WEFT_SIMULATOR_REFUSES_ATTENTION": "not here"}
                got = trained(device, text, of_bytes, **environment)
                for what, value in expected.items():
                    if got[what] != value and not (may_round and is_near(what, got[what], value, of_bytes)):
                        return f"seed {seed}: {what} are not the host's"
                if trained(device, text, of_bytes, "--graphs", **environment) != got:
                    return f"seed {seed}: as graphs, steps do not do the same"
        except RuntimeError as error:
            return str(error)
    return None


def fault_of_gathers(options):
    """Returns a sentence about the fault, or None."""
    name, machine, mesh, lines = GATHERED
    environment = {"WEFT_RT_CUDA": str(plugin_of(options)), "WEFT_SIMULATOR_REFUSES_ATTENTION": "not here"}
    results = []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        text = folder / "text"
        text.write_bytes(bytes(i * i % 101 for i in range(1 << 16)))
        try:
            for gather in ("", ",gather=run"):
                program = compiled(options.bin, name, machine, 1, mesh + gather, "cuda", folder, lines)
                got = trained(program, text, False, "--graphs", **environment)
                # Files name their plans.
                results.append([got["steps"], *(floats_of(got[what]) for what in ("weights", "gradients"))])
        except RuntimeError as error:
            return str(error)
    return None if results[0] == results[1] else "bits are not those of parameters that are gathered once"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft and weft-translate")
    parser.add_argument("--full", action="store_true", help="all meshes, and more orders")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    passed = failed = 0

    def count(fault, *what):
        nonlocal passed, failed
        passed, failed = (passed, failed + 1) if fault else (passed + 1, failed)
        print("FAIL" if fault else "pass", *what, fault or "", flush=True)

    for name in SMALL:
        machine, nodes, meshes = EXAMPLES[name]
        for mesh in (meshes if options.full else meshes[-1:]) + MORE_MESHES.get(name, []):
            fault = fault_of(options, name, machine, nodes, mesh, 5 if options.full else 1)
            count(fault, name, mesh)
    for lines in MORE_LINES:
        count(fault_of(options, "llama-tiny", "laptop", 1, "tp=2", 1, lines), "llama-tiny tp=2", lines)
    count(fault_of(options, "llama-tiny", "h100-8", 1, PLAN_OF_LAYERS, 1), "llama-tiny", "stages split differently")
    for name, mesh, lines in FP8:
        count(fault_of(options, name, "h100-8", 1, mesh, 1, lines), name, mesh, lines)
    count(fault_of_gathers(options), *GATHERED, "gathered several times")
    print(f"{passed} passed, {failed} failed")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
