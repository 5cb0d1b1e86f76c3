#!/usr/bin/python3
#===- equality.py - graphs train the same under every split ----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Imports small ONNX models, compiles them in float64 for several meshes, trains them, and compares
losses and weights with those of one rank. Then in bf16: losses and the gradients of the first step are,
under every split, at most twice as far from float64 as those of one rank.

    equality.py --weft bin/weft

Prints a line for each comparison, then "N passed, N failed"; fails if one failed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import graphs

MESHES = (("dp=4",), ("dp=2", "tp=2"))
# A batch of 8 is padded, unless the graph reshapes it or takes means of groups of it.
PADDED = ("dp=3",)
STEPS = 8
TOLERANCE = 1e-10

MACHINE = Path(__file__).resolve().parents[2] / "machines/laptop.textproto"

BF16_MESHES = (("dp=2",), ("tp=2",), ("dp=2", "tp=2"), ("dp=4",))
# How far the one rank may be from float64: losses, and gradients by norm.
BF16_LIMITS = (0.02, 0.1)

RECIPE = """version: 1 precision: {precision} steps: 8 seed: 3 {batch}
adamw {{ epsilon: 1e-6 }} schedule {{ peak_learning_rate: 0.01 decay: CONSTANT }} clip_norm: 1
"""


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          timeout=300)
    if done.returncode:
        raise RuntimeError(f"{Path(command[0]).name}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def read_safetensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    types = {"F64": np.float64, "F32": np.float32, "I64": np.int64}
    return {name: np.frombuffer(data[8 + size:][slice(*entry["data_offsets"])], types[entry["dtype"]])
            for name, entry in json.loads(data[8 : 8 + size]).items() if name != "__metadata__"}


def write_safetensors(path, tensors):
    names = {np.dtype(np.float32): "F32", np.dtype(np.uint8): "U8", np.dtype(np.int64): "I64"}
    header, offset = {}, 0
    for name, array in tensors.items():
        header[name] = {"dtype": names[array.dtype], "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text
                     + b"".join(array.tobytes() for array in tensors.values()))


def write_data(folder, model):
    """A file of samples for the graph, and what the recipe says of the batch."""
    random = np.random.default_rng(5)
    if model.kind == graphs.INT64:
        path = folder / "data.txt"
        path.write_bytes(random.integers(0, 8, 4000, np.uint8).tobytes())
        return path, f"sequence_length: {model.shape[1]} global_batch_sequences: 8"
    path = folder / "data.safetensors"
    write_safetensors(path, {"images": random.normal(size=(40, *model.shape[1:])).astype(np.float32),
                             "labels": random.integers(0, 4, 40)})
    return path, "global_batch_samples: 8"


class Case:
    """One model, imported."""

    def __init__(self, weft, name, folder, extra=""):
        self.weft, self.folder = weft, folder
        model = graphs.MODELS[name]()
        source = folder / f"{name}.textproto"
        model.write(source)
        run(weft, "import", source, "-o", folder / "imported")
        description = folder / "imported/model.textproto"
        description.write_text(description.read_text().replace("graph {", "graph {" + extra))
        self.data, batch = write_data(folder, model)
        for precision in ("F64", "BF16"):
            text = RECIPE.format(batch=batch, precision=precision)
            (folder / f"recipe-{precision}").write_text(text)

    def train(self, pins, precision="F64", saves="--save"):
        """Returns the losses of all steps, and the saved tensors: weights and statistics after the
        steps, or gradients of the first."""
        out = self.folder / "-".join(["run", precision, *pins])
        run(self.weft, "compile", self.folder / "imported/model.textproto", "--machine",
            MACHINE, "--recipe", self.folder / f"recipe-{precision}", "-o", out,
            *(part for pin in pins for part in ("--pin", pin)))
        metrics, weights = out.with_suffix(".jsonl"), out.with_suffix(".safetensors")
        # Not from the file, which is in float32.
        run(out, "--data", self.data, "--steps", STEPS, "--metrics", metrics,
            saves, weights, "--validation-split", "0.3")
        lines = [json.loads(line) for line in metrics.read_text().splitlines()]
        losses = [line.get("loss", line.get("validation_loss")) for line in lines]
        return np.array(losses), read_safetensors(weights)


def difference(a, b):
    """Returns the largest difference of two runs, as text; nothing if they agree."""
    losses, weights = a
    others, otherWeights = b
    worst = np.abs(losses - others).max()
    if not worst <= TOLERANCE:
        return f"losses differ by {worst:.2e}"
    if losses[STEPS - 1] >= losses[0] or set(weights) != set(otherWeights):
        return "the loss does not fall, or the names of weights differ"
    for name, values in weights.items():
        worst = np.abs(values - otherWeights[name]).max()
        if not worst <= TOLERANCE * max(1.0, np.abs(values).max()):
            return f"{name} differs by {worst:.2e}"
    return None


def distance(run, exact):
    """Returns the distances of a run's losses and gradients from those in float64."""
    losses = np.sqrt(np.mean((run[0] - exact[0]) ** 2))
    off = sum(np.sum((run[1][name] - values) ** 2.0) for name, values in exact[1].items())
    return losses, np.sqrt(off / sum(np.sum(values ** 2.0) for values in exact[1].values()))


def check_bf16(case, title, report):
    """Compares every split of a case in bf16."""
    def train(pins, precision="BF16"):
        return case.train(pins, precision, "--save-gradients")

    exact = train((), "F64")
    one = distance(train(()), exact)
    fits = all(0 < value <= limit for value, limit in zip(one, BF16_LIMITS))
    report(f"{title} in bf16", None if fits else f"is {one} from float64, expected {BF16_LIMITS}")
    for pins in BF16_MESHES:
        found = distance(train(pins), exact)
        fits = all(value <= 2 * least for value, least in zip(found, one))
        report(f"{title} in bf16 on {' '.join(pins)}",
               None if fits else f"is {found} from float64, one rank {one}")


def main():
    parser = argparse.ArgumentParser(description="graphs train the same under every split")
    parser.add_argument("--weft", type=Path, required=True)
    parser.add_argument("--only", help="one model")
    options = parser.parse_args()
    counts = {True: 0, False: 0}

    def report(what, fault):
        print(f"{'FAIL' if fault else 'ok'}: {what}" + (f": {fault}" if fault else ""), flush=True)
        counts[not fault] += 1

    cases = [(name, name, "") for name in graphs.MODELS]
    cases.append(("resnet in groups of 2", "resnet", " batch_norm_group: 2 "))
    for title, name, extra in cases:
        if options.only and options.only != title:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                case = Case(options.weft, name, Path(folder), extra)
                expected = case.train(())
                for pins in MESHES + ((PADDED,) if title in ("mlp", "resnet") else ()):
                    report(f"{title} on {' '.join(pins)}", difference(expected, case.train(pins)))
                check_bf16(case, title, report)
            except RuntimeError as error:
                report(title, str(error))
    print(f"{counts[True]} passed, {counts[False]} failed")
    return 1 if counts[False] or not counts[True] else 0


if __name__ == "__main__":
    sys.exit(main())
