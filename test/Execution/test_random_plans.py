#===- test_random_plans.py - tests of the cases drawn at random -------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import random_descriptions

HERE = Path(__file__).resolve().parent

# A compiler that accepts all models, and with biases of attention does not verify them.
WEFT = """#!/bin/sh
case "$1" in
  verify) if grep -q attention_biases: "$2"; then echo "weft verify: head 7 differs" >&2; exit 1; fi
          printf 'planned\\nverified: 2 ranks\\n' ;;
  compile) {compile} ;;
  plan) for last; do :; done; echo "mesh {{}}" > "$last" ;;
esac
"""


def outcomes(compile_, count=12):
    """Exit status and lines of random_plans.py with such a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        weft = Path(folder) / "weft"
        weft.write_text(WEFT.format(compile=compile_))
        weft.chmod(0o755)
        done = subprocess.run([sys.executable, HERE / "random_plans.py", "--weft", weft, "--count", str(count),
                               "--folder", Path(folder) / "cases"], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout.splitlines()


class RandomPlans(unittest.TestCase):
    def test_a_seed_is_a_case(self):
        lengths = {"mlp": 0, "gpt": 8}
        cases = [random_descriptions.descriptions_of(seed, lengths) for seed in (3, 3, 4)]
        self.assertEqual(cases[0], cases[1])
        self.assertNotEqual(cases[0], cases[2])

    def test_cases_are_of_all_kinds(self):
        cases = [random_descriptions.descriptions_of(seed, {"mlp": 0, "gpt": 8}) for seed in range(300)]
        texts = ["".join(case.files.values()) + " ".join(case.arguments) for case in cases]
        for word in ("layer_period: 2", "shared_ffn", "latent_attention", "fp8", "capacity_factor", "muon",
                     "clip_norm", "dropout", "loss_chunks", "tied_embeddings", "precision: BF16",
                     "loss_scale", "documents", "sub_axes", "cp=2:ring", "sp=true", "ep=", "zero=3",
                     "accumulation=", "--mesh", "sequence_length: 127", "gradient_accumulation: BF16"):
            self.assertTrue(any(word in text for text in texts), word)
        self.assertTrue(any(re.search(r"(sharding|home) \{[^}]*first_layer", text) for text in texts))
        self.assertEqual({case.graph for case in cases}, {"", "mlp", "gpt"})

    def test_some_layers_of_written_plans_have_fewer_axes(self):
        text = 'sharding { value: "*" dimension: "ffn" axes: ["a", "b"] }\n' * 4
        plans = [random_descriptions.edited_plan(text, edits, layers=3) for edits in range(40)]
        more = {line for plan in plans for line in plan.splitlines() if "first_layer" in line}
        self.assertIn('sharding { value: "*" dimension: "ffn" axes: ["b"] first_layer: 1 last_layer: 2 }', more)
        self.assertIn('sharding { value: "*" dimension: "ffn" first_layer: 0 }', more)
        self.assertFalse(any("layer" in random_descriptions.edited_plan(text, edits) for edits in range(40)))

    def test_what_compiles_and_is_not_verified_fails_and_becomes_smaller(self):
        status, lines = outcomes("exit 0")
        self.assertEqual(status, 1)
        failed = [at for at, line in enumerate(lines) if line.startswith("FAIL")]
        self.assertTrue(failed)
        end = next(at for at, line in enumerate(lines) if at > failed[0] and line.startswith("again: "))
        shown = lines[failed[0]:end]
        self.assertIn("failed: weft verify: head 7 differs", shown[0])
        # Nothing is left of the model but what fails.
        model = shown.index("model.textproto:")
        self.assertEqual(shown[model + 1:model + 2], ["attention_biases: true"])
        self.assertEqual(lines[-1], f"{12 - len(failed)} passed, {len(failed)} failed")

    def test_what_neither_compiles_nor_verifies_is_refused(self):
        status, lines = outcomes('echo "weft compile: no room for 8 GB" >&2; exit 1')
        self.assertEqual(status, 1)  # What is verified does not compile.
        self.assertTrue(any("refused: weft compile: no room for 8 GB" in line for line in lines))
        self.assertTrue(any("failed: verified, but weft compile: no room for 8 GB" in line for line in lines))

    def test_a_crash_fails(self):
        status, lines = outcomes("echo Stack dump >&2; exit 134", count=20)
        self.assertEqual(status, 1)
        self.assertTrue(any("failed: compile crashed with status 134" in line for line in lines))


if __name__ == "__main__":
    unittest.main()
