#===- test_dataset.py - tests of the data order ----------------------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import tempfile
import unittest

import numpy as np

from dataset import Dataset, Permutation


class Order(unittest.TestCase):
    def test_permutation_is_a_bijection(self):
        for count in (1, 2, 3, 16, 17, 100):
            for key in (0, 1, 99):
                order = Permutation(count, key)
                self.assertEqual(sorted(map(order, range(count))), list(range(count)))

    def test_keys_give_different_orders(self):
        orders = [[Permutation(64, key)(i) for i in range(64)] for key in (1, 2)]
        self.assertNotEqual(*orders)
        self.assertNotEqual(orders[0], list(range(64)))

    def test_order_written_in_the_numerics_page(self):
        self.assertEqual([Permutation(10, 1)(i) for i in range(10)],
                         [9, 3, 5, 7, 0, 1, 4, 2, 6, 8])

    def test_an_epoch_takes_each_sample_once(self):
        with tempfile.NamedTemporaryFile() as file:
            # 6 samples of 4 tokens, one byte more for the last target, and a rest.
            file.write(bytes(range(27)))
            file.flush()
            data = Dataset(file.name, 4, 3, 7)
            rows = [data.batch(step) for step in range(4)]
            in_order = data.batch_in_order(1)
        self.assertEqual(data.samples, 6)
        self.assertEqual(in_order[0][:, 0].tolist(), [12, 16, 20])
        self.assertEqual(in_order[1][2].tolist(), [21, 22, 23, 24])
        for tokens, targets in rows:
            self.assertEqual(tokens.shape, (3, 4))
            np.testing.assert_array_equal(targets, tokens + 1)
        starts = [[int(s) for tokens, _ in rows[e:e + 2] for s in tokens[:, 0]] for e in (0, 2)]
        for epoch in starts:
            self.assertEqual(sorted(epoch), [0, 4, 8, 12, 16, 20])
        self.assertNotEqual(*starts)

    def test_too_short_a_file_is_refused(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"abcd")
            file.flush()
            with self.assertRaisesRegex(ValueError, "less than one sample"):
                Dataset(file.name, 4, 1, 0)


if __name__ == "__main__":
    unittest.main()
