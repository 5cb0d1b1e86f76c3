#!/usr/bin/python3
#===- training_steps.py - predicted steps beside published ones ------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Prints the table of training-steps.md: for each row of measured/training.csv the tokens per second of a device and
the share of peak, published and predicted for the same model, batch and split.

Both shares count the operations as `weft plan` does. Fails if a prediction is slower than a published speed by a tenth:
what others have measured is possible.
"""

import argparse
import csv
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SLOWEST = 0.9


def describe(row, folder):
    """Writes the model and the recipe of a row into `folder`; returns their files."""
    is_llama = row["norm"] == "RMS_NORM"
    kinds = ("activation: SWIGLU positions: ROTARY rotary { theta: 500000 }" if is_llama else
             "activation: GELU_TANH positions: LEARNED tied_embeddings: true attention_biases: true "
             "mlp_biases: true")
    model, recipe = folder / "model.textproto", folder / "recipe.textproto"
    model.write_text(f"""version: 1 name: "{row['model']}" layers: {row['layers']} hidden: {row['hidden']}
heads: {row['heads']} kv_heads: {row['kv_heads']} ffn: {row['ffn']} vocabulary: {row['vocabulary']}
norm: {row['norm']} {kinds} maximum_length: {row['sequence']}
""")
    recipe.write_text(f"""version: 1 steps: 1 sequence_length: {row['sequence']}
global_batch_sequences: {row['sequences']} precision: BF16 clip_norm: 1
adamw {{}} schedule {{ peak_learning_rate: 0.001 decay: CONSTANT }}
""")
    return model, recipe


def predict(weft, row):
    """Returns the predicted tokens per second of a device and the share of peak."""
    pins = ["dp=" + row["ranks"]] + (["zero=" + row["zero"]] if row["ranks"] != "1" else [])
    with tempfile.TemporaryDirectory() as folder:
        model, recipe = describe(row, Path(folder))
        done = subprocess.run(
            [weft, "plan", model, "--machine", ROOT / f"machines/{row['machine']}.textproto", "--recipe", recipe,
             "--target", "cuda", "--alone", "--pin", ",".join([*pins, "accumulation=" + row["parts"]])],
            capture_output=True, text=True, check=False)
    found = re.search(r"predicted: .* ([0-9,]+) tokens/s, MFU ([0-9.]+) %", done.stdout)
    if not found:
        raise RuntimeError(f"{row['model']} of {row['source']}: {done.stderr.strip()}")
    return float(found[1].replace(",", "")) / int(row["ranks"]), float(found[2])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="weft", help="the compiler")
    parser.add_argument("--models", nargs="+", help="of these models alone")
    options = parser.parse_args()
    print("| source | machine | model | a step | dp | zero | micro-batches | published | share | predicted | share |"
          " predicted/published |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    slow = None
    with open(ROOT / "validation/measured/training.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if not options.models or row["model"] in options.models]
    for row in rows:
        published = float(row["tokens_per_second_of_device"])
        speed, share = predict(options.weft, row)
        print(f"| {row['source']} | {row['machine']} | {row['model']} | {row['sequences']} × {row['sequence']} | "
              f"{row['ranks']} | {row['zero']} | {row['parts']} | {published:,.0f} | "
              f"{share * published / speed:.0f} % | {speed:,.0f} | {share:.0f} % | {speed / published:.2f} |",
              flush=True)
        if speed < SLOWEST * published:
            slow = f"{row['model']} is predicted at {speed:,.0f} tokens/s, {row['source']} measured {published:,.0f}"
    if slow:
        sys.exit(f"training_steps.py: {slow}")


if __name__ == "__main__":
    main()
