#===- test_assignments.py - tests of the comparison, without a compiler ----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import unittest

import numpy as np

import assignment_cases
import assignments
import modules

WHOLE = np.array([[1.0, -200.0], [0.5, 3.0]])


def compare(**ways):
    """Returns the faults of one result in these ways."""
    return assignments.faults({(1, "weft.map", 0): {"whole": WHOLE, **ways}}, 1e-12)


class FaultsTest(unittest.TestCase):
    def test_rounding_is_no_fault(self):
        ways, found = compare(near=WHOLE + 1e-10, same=WHOLE)
        self.assertEqual(ways, {(1, "weft.map", "near"), (1, "weft.map", "same")})
        self.assertEqual(found, [])

    def test_other_values_are(self):
        _, found = compare(far=WHOLE + 1e-9, same=WHOLE)
        self.assertEqual(found, ["weft.map (number 1) with far: result 0 is off by 1.0e-09"])

    def test_what_is_no_number_is(self):
        self.assertEqual(len(compare(far=WHOLE * np.nan)[1]), 1)

    def test_a_way_with_two_wrong_results_counts_once(self):
        results = {(1, "weft.norm_grad", number): {"whole": WHOLE, "far": -WHOLE}
                   for number in (0, 1)}
        ways, found = assignments.faults(results, 1e-12)
        self.assertEqual((len(ways), len(found)), (1, 1))


class CasesTest(unittest.TestCase):
    def test_names_differ(self):
        names = [case.name for case in assignment_cases.cases_for(4)]
        self.assertEqual(len(names), len(set(names)))

    def test_tokens_are_below_the_vocabulary(self):
        for case in assignment_cases.cases_for(4):
            table = modules.dimensions(case.parameters["embed.tokens.weight"])[1]
            self.assertLess(max(assignments.tokens(case)), table[0])

    def test_only_what_is_narrow_is_compared_narrowly(self):
        narrow = {case.name for case in assignment_cases.cases_for(4)
                  if assignments.tolerance_of(case) != assignments.TOLERANCE}
        self.assertEqual(narrow, {"map/bf16"})


if __name__ == "__main__":
    unittest.main()
