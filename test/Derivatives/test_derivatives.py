#===- test_derivatives.py - tests of the comparison, without a compiler ----===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import unittest
from dataclasses import replace
from unittest import mock

import numpy as np

import cases
import derivatives
import modules
import slopes

VALUES = {"x": np.array([0.5, -1.25, 2.0]), "y": np.full((6, 5), 0.75)}


def loss(values):
    """A function whose gradient is known."""
    return float(np.sin(values["x"]).sum() + values["x"][0] * (values["y"] ** 2).sum())


def gradients():
    """Its gradient at VALUES."""
    x = np.cos(VALUES["x"])
    x[0] += (VALUES["y"] ** 2).sum()
    return {"x": x, "y": 2.0 * VALUES["y"] * VALUES["x"][0]}


def measured():
    """Slopes of it at VALUES."""
    found = slopes.directions({name: value.shape for name, value in VALUES.items()})
    for slope in found:
        slopes.measure(loss, VALUES, slope)
    return found


class Slopes(unittest.TestCase):
    def test_the_right_gradient_passes(self):
        fault, worst = slopes.fault(gradients(), measured())
        self.assertIsNone(fault)
        self.assertLess(worst, 1e-8)

    def test_one_wrong_element_is_named(self):
        wrong = gradients()
        wrong["x"][1] += 1e-5 * slopes.norm([wrong["x"]])
        fault, _ = slopes.fault(wrong, measured())
        self.assertRegex(fault, r"^slope along x\[1\] is .*, relative difference 1.0e-05 above")

    def test_one_wrong_element_of_many_is_noticed(self):
        wrong = gradients()
        wrong["y"][4, 2] *= 1.001
        self.assertRegex(slopes.fault(wrong, measured())[0], "^slope along y, direction ")

    def test_a_gradient_that_is_not_a_number_is_noticed(self):
        for value in (np.nan, np.inf):
            wrong = gradients()
            wrong["x"][2] = value
            self.assertIsNotNone(slopes.fault(wrong, measured())[0])

    def test_a_missing_gradient_is_noticed(self):
        nothing = {name: np.zeros_like(value) for name, value in VALUES.items()}
        self.assertIsNotNone(slopes.fault(nothing, measured())[0])

    def test_no_blind_spot(self):
        self.assertIsNone(slopes.blind_spot(gradients(), measured()))

    def test_a_blind_spot_is_named(self):
        only_x = [slope for slope in measured() if set(slope.direction) == {"x"}]
        self.assertEqual(slopes.blind_spot(gradients(), only_x),
                         "a gradient of y with a wrong element is not noticed")


class Cases(unittest.TestCase):
    def test_every_op_with_a_derivative_has_a_case(self):
        self.assertEqual(derivatives.check_coverage()[0], True)

    def test_an_op_without_a_case_is_named(self):
        fewer = [case for case in cases.ALL if not case.name.startswith(("norm/", "scalar/cos"))]
        fewer = [replace(case, functions=case.functions.replace("math.cos", "math.sin"))
                 for case in fewer]
        with mock.patch.object(cases, "ALL", fewer):
            self.assertEqual(derivatives.check_coverage(),
                             (False, "no case has math.cos, weft.norm"))

    def test_names_are_distinct(self):
        names = [case.name for case in cases.ALL]
        self.assertEqual(len(names), len(set(names)))

    def test_values_are_exact_in_float32(self):
        for case in cases.ALL:
            for name, value in modules.values(case).items():
                for moved in (value - slopes.STEP, value + slopes.STEP):
                    self.assertTrue((moved.astype(np.float32) == moved).all(), (case.name, name))


if __name__ == "__main__":
    unittest.main()
