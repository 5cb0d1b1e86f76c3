#===- test_layers.py - tests of the operations and of the random numbers ---===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import math
import unittest

import numpy as np

import generator
import layers


class Activations(unittest.TestCase):
    def test_erf_at_known_values(self):
        # Abramowitz and Stegun, table 7.1.
        got = layers.erf(np.array([0.0, 0.5, 1.0, 2.0, -1.0]))
        expected = [0.0, 0.5204998778130465, 0.8427007929497149, 0.9953222650189527,
                    -0.8427007929497149]
        np.testing.assert_allclose(got, expected, rtol=1e-15, atol=1e-15)

    def test_gelu_and_its_approximation_are_close(self):
        x = np.linspace(-6.0, 6.0, 101)
        self.assertLess(np.abs(layers.gelu(x) - layers.gelu_tanh(x)).max(), 5e-4)

    def test_silu_does_not_overflow(self):
        got = layers.silu(np.array([-1000.0, 0.0, 1000.0]))
        np.testing.assert_allclose(got, [0.0, 0.0, 1000.0])


class Quantize(unittest.TestCase):
    def test_known_numbers(self):
        # Steps are 32 above 256, and 2^-9 below 2^-6; 272 is half way, where the even one wins.
        got = layers.quantize(np.array([448.0, -300.0, 272.0, 304.0, 0.0101, 0.0]), "E4M3")
        np.testing.assert_array_equal(got, [448.0, -288.0, 256.0, 320.0, 5 * 2.0**-9, 0.0])
        got = layers.quantize(np.array([57344.0, 1.125, 1.375, 2.0**-17, 3 * 2.0**-17]), "E5M2")
        np.testing.assert_array_equal(got, [57344.0, 1.0, 1.5, 0.0, 2.0**-15])

    def test_scales_by_powers_of_two(self):
        x = np.random.default_rng(1).normal(size=100)
        x *= 448.0 / np.abs(x).max()
        for power in (-30, -1, 1, 30):
            np.testing.assert_array_equal(layers.quantize(x * 2.0**power, "E4M3"),
                                          layers.quantize(x, "E4M3") * 2.0**power)

    def test_zeros(self):
        np.testing.assert_array_equal(layers.quantize(np.zeros(3), "E5M2"), np.zeros(3))


class Rotary(unittest.TestCase):
    def test_pairs_are_half_a_head_apart(self):
        x = np.zeros((2, 4))
        x[1, 0] = 1.0
        y = layers.rotate(x, np.array([0.5, 0.25]))
        np.testing.assert_allclose(y[1], [math.cos(0.5), 0.0, math.sin(0.5), 0.0], atol=1e-16)

    def test_scores_depend_on_the_distance_only(self):
        random = np.random.default_rng(1)
        q, k = random.normal(size=(2, 8))
        frequencies = layers.rotary_frequencies(8, 10000.0, None)
        qs = layers.rotate(np.tile(q, (10, 1)), frequencies)
        ks = layers.rotate(np.tile(k, (10, 1)), frequencies)
        self.assertAlmostEqual(qs[5] @ ks[3], qs[9] @ ks[7], places=12)

    def test_linear_scaling_stretches_all(self):
        plain = layers.rotary_frequencies(8, 10000.0, None)
        np.testing.assert_allclose(
            layers.rotary_frequencies(8, 10000.0, ("linear", 4.0)), plain / 4.0)

    def test_llama3_scaling_keeps_fast_and_stretches_slow(self):
        plain = layers.rotary_frequencies(128, 500000.0, None)
        got = layers.rotary_frequencies(128, 500000.0, ("llama3", 8.0, 1.0, 4.0, 8192))
        wavelength = 2.0 * math.pi / plain
        fast, slow = wavelength < 8192 / 4.0, wavelength > 8192 / 1.0
        np.testing.assert_allclose(got[fast], plain[fast])
        np.testing.assert_allclose(got[slow], plain[slow] / 8.0)
        between = got[~fast & ~slow]
        self.assertGreater(between.size, 0)
        self.assertTrue(np.all(np.diff(got) < 0))


class Loss(unittest.TestCase):
    def test_uniform_logits_give_the_logarithm_of_the_vocabulary(self):
        loss = layers.cross_entropy(np.zeros((2, 3, 16)), np.zeros((2, 3), int), 0.5)
        self.assertAlmostEqual(loss, math.log(16) + 0.5 * math.log(16) ** 2, places=14)

    def test_large_logits_do_not_overflow(self):
        logits = np.array([[[1e4, 0.0]]])
        self.assertEqual(layers.cross_entropy(logits, np.array([[0]]), 0.0), 0.0)


class Random(unittest.TestCase):
    def test_finalizer_of_splitmix64(self):
        # The generator seeded with 0 first gives the finalizer of the golden constant.
        self.assertEqual(generator.mix(generator.GOLDEN), 0xE220A8397B1DCDAF)
        self.assertEqual(generator.mix(2 * generator.GOLDEN & generator.MASK), 0x6E789E6AA1B965F4)

    def test_values_written_in_the_numerics_page(self):
        got = [int(value) for value in generator.bits(1, 2, np.arange(2))]
        self.assertEqual(got, [0xD84075A38C2A7917, 0x65844C5D623DB2DA])

    def test_hash_of_names(self):
        self.assertEqual(generator.fnv1a(""), 0xCBF29CE484222325)
        self.assertEqual(generator.fnv1a("a"), 0xAF63DC4C8601EC8C)

    def test_moments_of_uniform(self):
        u = generator.uniform(7, 3, 1 << 16)
        self.assertTrue(0.0 <= u.min() and u.max() < 1.0)
        self.assertAlmostEqual(u.mean(), 0.5, delta=5 * math.sqrt(1 / 12 / u.size))
        self.assertAlmostEqual(u.var(), 1 / 12, delta=0.002)
        self.assertLess(abs(np.corrcoef(u[:-1], u[1:])[0, 1]), 0.02)

    def test_moments_of_normal(self):
        x = generator.normal(7, generator.fnv1a("head.weight"), 1 << 16)
        self.assertAlmostEqual(x.mean(), 0.0, delta=5 / math.sqrt(x.size))
        self.assertAlmostEqual(x.std(), 1.0, delta=0.02)
        self.assertAlmostEqual((x**4).mean(), 3.0, delta=0.2)

    def test_masks_keep_the_mean_and_differ_by_place(self):
        shape = (8, 16, 64)
        seen = []
        for key in ((1, 0, 0, 1), (2, 0, 0, 1), (1, 1, 0, 1), (1, 0, 1, 1), (1, 0, 0, 2)):
            mask = generator.dropout_mask(shape, 0.25, *key)
            self.assertEqual(set(np.unique(mask)), {0.0, 1.0 / 0.75})
            self.assertAlmostEqual(mask.mean(), 1.0, delta=0.05)
            seen.append(mask)
        for i, a in enumerate(seen):
            for b in seen[i + 1:]:
                self.assertLess(abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]), 0.06)


if __name__ == "__main__":
    unittest.main()
