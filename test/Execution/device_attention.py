#!/usr/bin/python3
#===- device_attention.py - attention by a library is the compiler's -------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Runs a small Llama in bf16 for CUDA devices on the simulator, whose library does attention, and on the host.

    device_attention.py --bin bin

The simulator computes attention in another order and with other roundings than the host's kernels, so losses are
compared with a tolerance. If it refuses attention, losses have the host's digits, and the run reports that once.
Memory for threads of the compiler's kernels is taken only if such a kernel runs.
Needs a CUDA toolkit for compiling, and no device.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

from device_code import ROOT, has_no_toolkit
from devices import plugin_of, run

MESHES = ("dp=2", "cp=2:ring", "cp=4:ring", "cp=2:all-to-all", "cp=2:gather")
# With several documents in a sequence, of at most 11 tokens each.
DOCUMENTS = "documents { end: 4 }\n"
CASES = [(mesh, "") for mesh in MESHES] + [(mesh, DOCUMENTS) for mesh in ("dp=2", "cp=4:ring", "cp=2:all-to-all")]
# 512 KiB for each of 64 threads, more than there is.
GREEDY = {"WEFT_SIMULATOR_LOCAL": "attention:524288", "WEFT_SIMULATOR_MEMORY": str(24 << 20)}
# Of a loss near 5.5 in bf16.
TOLERANCE = 5e-4


def compiled(tools, recipe, mesh, target, folder):
    """Returns the compiled program; raises if compilation fails."""
    done = run([tools / "weft", "compile", ROOT / "examples/llama-tiny/model.textproto", "--recipe", recipe,
                "--machine", ROOT / "machines/h100-8.textproto", "--pin", mesh, "--target", target, "-o",
                folder / target])
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return folder / target


def losses(program, text, *options, **environment):
    """Returns the losses as printed, and standard error; raises if the run fails."""
    done = run([program, "--data", text, "--steps", 3, *options], **environment)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return re.findall(r"^step .*? loss (\S+)", done.stdout, re.MULTILINE), done.stderr


def fault_of(options, mesh, documents, folder):
    """Returns a sentence about the fault, or None."""
    recipe, text = folder / "recipe", folder / "text"
    source = (ROOT / "examples/llama-tiny/recipe.textproto").read_text()
    source = source.replace("sequence_length: 128", "sequence_length: 32")
    recipe.write_text(source.replace("global_batch_sequences: 16", "global_batch_sequences: 4") +
                      "precision: BF16\n" + documents)
    text.write_bytes(bytes(i * i % 101 if i % 11 or not documents else 4 for i in range(1 << 14)))
    host, device = (compiled(options.bin, recipe, mesh, target, folder) for target in ("host", "cuda"))
    library = {"WEFT_RT_CUDA": str(plugin_of(options))}
    expected, _ = losses(host, text)

    def are_near(got):
        return len(got) == 3 and all(abs(float(a) - float(b)) <= TOLERANCE for a, b in zip(got, expected))

    refused, said = losses(device, text, **library, WEFT_SIMULATOR_REFUSES_ATTENTION="not today")
    if not are_near(refused) or said.count("not today") != ("gather" not in mesh):
        return f"refused: expected {expected}, got {refused} and '{said}'"
    done = run([device, "--data", text, "--steps", 3], **library, **GREEDY,
               WEFT_SIMULATOR_REFUSES_ATTENTION="not today")
    if done.returncode != 4 or "of which one keeps 512 KiB a thread" not in done.stderr:
        return f"no memory for attention: expected status 4, got {done.returncode} and '{done.stderr}'"
    # Some parts of a ring are left to the compiler's kernels: those that see no keys.
    for extra in ([], ["--deterministic"]):
        greedy = GREEDY if mesh in ("dp=2", "cp=2:all-to-all") else {}
        got, said = losses(device, text, *extra, **library, **greedy)
        if said or not are_near(got):
            return f"expected {expected}, got {got} and '{said}'"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--bin", type=Path, required=True, help="folder of weft")
    options = parser.parse_args()
    if reason := has_no_toolkit(options.bin):
        print(f"skipped: {reason}")
        return 77
    failed = 0
    for mesh, documents in CASES:
        with tempfile.TemporaryDirectory() as folder:
            try:
                fault = fault_of(options, mesh, documents, Path(folder))
            except RuntimeError as error:
                fault = str(error)
        failed += bool(fault)
        print("FAIL" if fault else "pass", mesh, documents.strip(), fault or "", flush=True)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
