#===- test_hostile_plans.py - tests of the damaged plans --------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import hostile_plans

HERE = Path(__file__).resolve().parent


def faults(script, count=8):
    """Exit status and lines of hostile_plans.py with a compiler that runs `script`."""
    with tempfile.TemporaryDirectory() as folder:
        weft = Path(folder) / "weft"
        weft.write_text("#!/bin/sh\nfor last; do :; done\n" + script)
        weft.chmod(0o755)
        done = subprocess.run([sys.executable, HERE / "hostile_plans.py", "--bin", folder, "--count", str(count),
                               "--folder", Path(folder) / "cases"], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout


class HostilePlans(unittest.TestCase):
    def test_a_seed_is_a_case(self):
        cases = [hostile_plans.Drawer(seed).case() for seed in (3, 3, 4)]
        self.assertEqual(cases[0], cases[1])
        self.assertNotEqual(cases[0], cases[2])

    def test_cases_are_of_all_kinds(self):
        cases = [hostile_plans.Drawer(seed).case() for seed in range(600)]
        texts = b"".join(b"".join(case.files.values()) + " ".join(case.arguments).encode(errors="surrogateescape")
                         for case in cases)
        for word in (b"\xef\xbb\xbf", b"\r\n", b"\x00", b"9223372036854775808", b"priority: 7", b"factor1",
                     b"accumulation: 3", b"padding: false", b"--mesh", b"zero=", b"verify", b"explain", b"cuda"):
            self.assertIn(word, texts)

    def test_what_is_wrong_is_found(self):
        for script, fault in (("kill -SEGV $$", "ends with status -11"),
                              ("exit 1", "refuses without an error"),
                              ("echo 'loc(\"w\"): error: expected b' >&2; exit 1", "has no place"),
                              ("echo 'plan.textproto:1:1: bad' >&2; exit 1", "does not say what is expected"),
                              ("echo 'plan.textproto:1:1: expected a' >&2; touch \"$last\"; exit 1", "leaves out")):
            status, lines = faults(script)
            self.assertEqual(status, 1)
            self.assertIn(fault, lines)

    def test_a_plan_that_reads_as_another_is_found(self):
        status, lines = faults("touch \"$last\"; echo \"m on 2 ranks, plan $(date +%N | md5sum | cut -c1-16)\"; "
                               "echo 'predicted: 1 ms'; exit 0")
        self.assertEqual(status, 1)
        self.assertIn("reads another plan than it wrote", lines)


if __name__ == "__main__":
    unittest.main()
