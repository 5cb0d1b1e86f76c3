#===- test_compare.py - tests of the comparisons with a simulator compiler --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import os
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent


def compare(*arguments, fault=""):
    """Exit status and lines of compare.py on one small case."""
    done = subprocess.run([HERE / "compare.py", *arguments, "--weft", HERE / "fake_weft.py"],
                          stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "WEFT_FAKE_FAULT": fault})
    return done.returncode, done.stdout.splitlines()


class Compare(unittest.TestCase):
    def test_equal_programs_pass(self):
        status, lines = compare("equality", "reference", "repeat", "--case",
                                "gpt2-sgd-plain-untied-f64")
        self.assertEqual((status, lines[-1]), (0, "6 passed, 0 failed"))
        self.assertEqual(lines[0], "pass equality gpt2-sgd-plain-untied-f64: loss falls")

    def test_a_wrong_gradient_is_named(self):
        status, lines = compare("equality", "--case", "llama-adamw-plain-tied-f64",
                                fault="gradient")
        self.assertEqual((status, lines[-1]), (1, "4 passed, 10 failed"))
        self.assertIn("dp=2 is one rank: gradient of layers.0.mlp.up.weight: relative "
                      "difference 1.0e-08 above 1e-10", lines[1])

    def test_a_program_that_fails_is_a_failure(self):
        status, lines = compare("equality", "--case", "gpt2-sgd-plain-untied-f64", fault="crash")
        self.assertEqual((status, lines[-1]), (1, "1 passed, 3 failed"))
        self.assertIn("exit status 1: error: the run failed", lines[1])

    def test_a_mutant_that_nobody_notices_is_a_failure(self):
        status, lines = compare("mutants", "--full", "--case", "gpt2-adamw-dropout-tied-f64")
        self.assertEqual((status, lines[-1]), (1, "6 passed, 1 failed"))
        self.assertIn("FAIL mutants gpt2-adamw-dropout-tied-f64-nobias: scale collective 1: "
                      "losses, gradients, weights and validations stay the same", lines)

    def test_each_collective_is_broken_once_by_default(self):
        status, lines = compare("mutants", "--case", "gpt2")
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed"))
        self.assertTrue(lines[1].endswith("drop collective 0"), lines)
        self.assertTrue(lines[2].endswith("double collective 1"), lines)

    def test_no_case_is_a_failure(self):
        self.assertEqual(compare("equality", "--case", "nothing"), (1, ["0 passed, 0 failed"]))


if __name__ == "__main__":
    unittest.main()
