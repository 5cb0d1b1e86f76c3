#===- test_redundant_gathers.py - tests of redundant gathers ---------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import unittest

from redundant_gathers import functions, redundant

GATHER = '%{} = weft.all_gather %0 dim 0 over ["dp"] of #mesh : tensor<2xf64> -> tensor<4xf64>'
USE = "{} = weft.map ins(%{} : tensor<4xf64>)"


def faults(*lines):
    text = "\n".join(["  func.func @f(%0: tensor<2xf64>) {", *("    " + line for line in lines), "  }"])
    return [fault for function in functions(text) for fault in redundant(*function)]


class RedundantGathers(unittest.TestCase):
    def test_twice(self):
        twice = ["@f: %0 over [\"dp\"] along 0 was gathered before"]
        first, second = GATHER.format(1), GATHER.format(2)
        both = [USE.format("%3", 1), USE.format("%4", 2)]
        self.assertEqual(faults(first, second, *both), twice)
        self.assertEqual(faults(first, both[0], second, both[1]), [])
        self.assertEqual(faults(first, both[0], second, both[1], USE.format("%5", 1)), twice)
        other = second.replace("dim 0", "dim 1")
        self.assertEqual(faults(first, other, *both), [])

    def test_cut_again(self):
        cut = '%2 = weft.slice %1 dim 0 over ["dp"] of #mesh : tensor<4xf64> -> tensor<2xf64>'
        only = ["@f: %0 over [\"dp\"] along 0 is only cut again"]
        self.assertEqual(faults(GATHER.format(1), cut), only)
        self.assertEqual(faults(GATHER.format(1), cut, USE.format("%3", 1)), [])
        self.assertEqual(faults(GATHER.format(1), cut.replace("dp", "tp")), [])

    def test_was_whole(self):
        cut = '%0 = weft.slice %9 dim 0 over ["dp"] of #mesh : tensor<4xf64> -> tensor<2xf64>'
        self.assertEqual(faults(cut, GATHER.format(1), USE.format("%3", 1)),
                         ["@f: %0 over [\"dp\"] along 0 was whole"])


if __name__ == "__main__":
    unittest.main()
