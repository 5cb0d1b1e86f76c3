#!/usr/bin/python3
#===- documents.py - documents together and alone ------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#
"""Trains on samples of several documents, and on the same documents as samples of their own.

    documents.py --weft bin/weft

All documents have the same length, so that both have the same targets and the same mean. A batch is all of the data.
Losses, gradients and weights must agree in float64.

Prints a line for each model, then "N passed, N failed"; fails if one failed or none ran.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import cases
import differences
import programs

STEPS, LENGTH, DOCUMENTS, SAMPLES = 6, 4, 4, 2
END = ord(".")

MODELS = (cases.Case("gpt2", "adamw", False, True), cases.Case("llama", "sgd", False, False),
          cases.Case("llama", "adamw", False, True), cases.Case("qwen", "adamw", False, True),
          cases.Case("deepseek", "adamw", False, True, routing=False))


def data():
    """Returns the documents, and one token more that is the target of none."""
    words = [bytes((97 + (7 * number + 5 * place + number * place) % 23) for place in range(LENGTH - 1))
             for number in range(DOCUMENTS * SAMPLES)]
    return bytes([END]).join(words) + bytes([END]) + b"a"


class Compiler(programs.Compiler):
    """Compiles programs whose samples have so many documents."""

    def __init__(self, binary, folder, documents):
        super().__init__(binary, folder)
        self.documents = documents
        self.data.write_bytes(data())

    def run(self, case):
        """Trains `case` on one rank."""
        place = self.folder / f"{case.name}-{self.documents}"
        place.mkdir()
        model, recipe = cases.write(case, place)
        text = recipe.read_text().replace("sequence_length: 16", f"sequence_length: {LENGTH * self.documents}")
        text = text.replace("global_batch_sequences: 8",
                            f"global_batch_sequences: {DOCUMENTS * SAMPLES // self.documents}")
        recipe.write_text(text + (f"documents {{ end: {END} }}\n" if self.documents > 1 else ""))
        (place / "machine").write_text(cases.MACHINE)
        programs.call([self.binary, "compile", model, "--machine", place / "machine", "--recipe", recipe,
                       "--target", "host", "--pin", cases.ONE_RANK, "-o", place / "train"])
        files = [place / name for name in ("metrics", "weights", "gradients")]
        programs.call([place / "train", "--data", self.data, "--steps", STEPS, "--seed", cases.SEED, "--quiet",
                       "--metrics", files[0], "--save", files[1], "--save-gradients", files[2],
                       "--gradients-step", STEPS - 1])
        lines = [programs.json.loads(line) for line in files[0].read_text().splitlines()]
        lines = [line for line in lines if "loss" in line]
        weights, gradients = map(programs.safetensors.load, files[1:])
        return programs.Run([line["loss"] for line in lines], [line["gradient_norm"] for line in lines],
                            gradients, {name: value for name, value in weights.items() if "/" not in name},
                            [], None, [], files)


def check(weft, folder, case):
    """Returns a sentence about the first difference, or None."""
    together, alone = (Compiler(weft, folder, documents).run(case) for documents in (DOCUMENTS, 1))
    if together.losses[-1] > 0.95 * together.losses[0]:
        return f"loss went from {together.losses[0]:.4f} to {together.losses[-1]:.4f}"
    return differences.of_runs(together, alone, 1e-10, ("losses", "norms", "gradients", "weights"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default="build/bin/weft", help="the compiler")
    options = parser.parse_args()
    passed = failed = 0
    for case in MODELS:
        with tempfile.TemporaryDirectory(prefix="weft-documents-") as folder:
            try:
                fault = check(options.weft, Path(folder), case)
            except programs.ProgramError as error:
                fault = str(error)
        passed, failed = passed + (not fault), failed + bool(fault)
        print(f"{'FAIL' if fault else 'ok  '} {case.name}" + (f": {fault}" if fault else ""), flush=True)
    print(f"{passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
