#===- test_summarize.py - tests of how utils/check counts ------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import subprocess
import tempfile
import unittest
from pathlib import Path
from xml.sax.saxutils import escape

SUMMARIZE = Path(__file__).resolve().parents[2] / "utils" / "summarize"


def case(output="", status="run", inside=""):
    return (f'<testcase name="suite" status="{status}">{inside}'
            f"<system-out>{escape(output)}</system-out></testcase>")


FAILURE = '<failure message=""/>'


class Summarize(unittest.TestCase):
    def check(self, cases, line, status):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write("<testsuite>" + "".join(cases) + "</testsuite>")
            file.flush()
            done = subprocess.run([SUMMARIZE, file.name], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout.splitlines()[-1], line)
        self.assertEqual(done.returncode, status)
        return done.stdout

    def test_a_test_without_a_summary_counts_as_one(self):
        self.check([case("hello"), case("", "fail", FAILURE)], "1 passed, 1 failed", 1)

    def test_own_summary(self):
        self.check([case("pass x\n12 passed, 0 failed\n")], "12 passed, 0 failed", 0)
        self.check([case("11 passed, 2 failed", "fail", FAILURE)], "11 passed, 2 failed", 1)

    def test_googletest(self):
        self.check([case("[  PASSED  ] 7 tests.\n")], "7 passed, 0 failed", 0)
        self.check([case("[  PASSED  ] 7 tests.\n[  FAILED  ] 1 test, listed below:\n", "fail",
                         FAILURE)], "7 passed, 1 failed", 1)

    def test_lit(self):
        text = ("Total Discovered Tests: 9\n  Unsupported      : 1 (11.11%)\n"
                "  Passed           : 6 (66.67%)\n  Expectedly Failed: 1 (11.11%)\n"
                "  Failed           : 1 (11.11%)\n")
        self.check([case(text, "fail", FAILURE)], "7 passed, 1 failed", 1)

    def test_unittest(self):
        self.check([case("Ran 5 tests in 0.1s\n\nOK (skipped=1)\n")], "4 passed, 0 failed", 0)
        self.check([case("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=2)\n", "fail",
                         FAILURE)], "2 passed, 3 failed", 1)

    def test_what_ctest_says_decides(self):
        self.check([case("3 passed, 0 failed\nSegmentation fault", "fail", FAILURE)],
                   "3 passed, 1 failed", 1)

    def test_a_program_that_is_missing_is_a_failure(self):
        skipped = '<skipped message="Unable to find executable"/>'
        self.check([case("1 passed, 0 failed"), case("", "notrun", skipped)],
                   "1 passed, 1 failed", 1)

    def test_a_test_may_skip_itself(self):
        skipped = '<skipped message="SKIP_RETURN_CODE=77"/>'
        out = self.check([case(), case("", "notrun", skipped)], "1 passed, 0 failed", 0)
        self.assertIn("skipped: suite", out)

    def test_the_longest_are_listed(self):
        cases = [f'<testcase name="n{i}" status="run" time="{i}.5"/>' for i in range(12)]
        lines = self.check(cases, "12 passed, 0 failed", 0).splitlines()
        self.assertEqual(lines[0], "longest:    11.5 s  n11")
        self.assertEqual(lines[9], "longest:     2.5 s  n2")
        self.assertEqual(lines[10], "in all:     72.0 s  12 entries")

    def test_nothing_ran_is_a_failure(self):
        self.check([], "0 passed, 0 failed", 1)
        done = subprocess.run([SUMMARIZE, "/no/such/file"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (1, "0 passed, 0 failed\n"))
        self.assertIn("no results in /no/such/file", done.stderr)


if __name__ == "__main__":
    unittest.main()
