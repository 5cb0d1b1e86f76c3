#===- test_training.py - tests of optimizers, schedules, files and whole runs --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import math
import os
import struct
import tempfile
import unittest

import numpy as np

import config
import optimizer
import reference
import safetensors
import text_format
from config import Recipe

MODEL = """
# A comment.
version: 1 name: "two" layers: 2 hidden: 8 heads: 4 kv_heads: 2 ffn: 12
norm: RMS_NORM activation: SWIGLU positions: ROTARY
rotary { theta: 500.0, scaling: LLAMA3 factor: 4 original_maximum_length: 16 }
vocabulary: 13 tied_embeddings: true dropout: 0.1
initialization: < standard_deviation: .3 >
"""
RECIPE = """
version: 1 sequence_length: 5 global_batch_tokens: 20 precision: F64
adamw { beta2: 0.9 } schedule { peak_learning_rate: 1e-1 warmup_steps: 2 } clip_norm: 0.5 steps: 30
"""


def recipe(**options):
    return Recipe(sequence_length=1, global_batch=1, **{"steps": 10, **options})


class TextFormat(unittest.TestCase):
    def test_scalars_and_nesting(self):
        text = 'a: 1 a: [2, 3] b { c: "x\\"y" \'z\' d: true } e: -1.5e3; f: NAME #!'
        got = text_format.parse(text)
        self.assertEqual(got, {"a": [1, 2, 3], "b": [{"c": ['x"yz'], "d": [True]}],
                               "e": [-1500.0], "f": ["NAME"]})

    def test_says_where_it_fails(self):
        with self.assertRaisesRegex(ValueError, r"line 2: unexpected '\?'"):
            text_format.parse("a: 1\n?")
        with self.assertRaisesRegex(ValueError, "expected a field name"):
            text_format.parse("a { b: 1")

    def test_descriptions(self):
        model, trained = config.parse_model(MODEL), config.parse_recipe(RECIPE)
        self.assertEqual((model.head_size, model.group, model.norm_bias), (2, 2, False))
        self.assertEqual(model.rope_scaling, ("llama3", 4, 1.0, 4.0, 16))
        self.assertEqual((trained.global_batch, trained.beta2, trained.weight_decay), (4, 0.9, 0.1))

    def test_unknown_field_is_refused(self):
        with self.assertRaisesRegex(ValueError, "windows"):
            config.parse_model(MODEL + "windows: 3")


class Schedules(unittest.TestCase):
    def test_warm_up_then_constant(self):
        r = recipe(peak_learning_rate=1.0, warmup_steps=4, decay="CONSTANT")
        self.assertEqual([optimizer.learning_rate(r, s) for s in range(6)],
                         [0.25, 0.5, 0.75, 1.0, 1.0, 1.0])

    def test_linear_and_cosine_reach_the_fraction(self):
        for decay in ("LINEAR", "COSINE"):
            r = recipe(peak_learning_rate=2.0, warmup_steps=2, decay=decay,
                       final_learning_rate_fraction=0.1)
            self.assertEqual(optimizer.learning_rate(r, 2), 2.0)
            self.assertAlmostEqual(optimizer.learning_rate(r, 6), 2.0 * 0.55, places=14)
            for step in (10, 1000):
                self.assertAlmostEqual(optimizer.learning_rate(r, step), 0.2, places=14)

    def test_warm_up_to_the_end(self):
        r = recipe(peak_learning_rate=1.0, warmup_steps=10, decay="LINEAR")
        self.assertAlmostEqual(optimizer.learning_rate(r, 10), 0.1)


class Optimizers(unittest.TestCase):
    def test_first_step_of_adamw(self):
        # With corrected means the first update is the sign of the gradient, whatever its size.
        r = recipe(peak_learning_rate=0.1, decay="CONSTANT", weight_decay=0.5)
        weights = {"a.weight": np.array([2.0, -2.0]), "a.bias": np.array([1.0])}
        adamw = optimizer.AdamW(r, weights)
        adamw.update(weights, {"a.weight": np.array([1e-3, -5.0]), "a.bias": np.array([1.0])}, 0)
        expected = [2.0 - 0.1 - 0.1, -2.0 + 0.1 + 0.1]
        np.testing.assert_allclose(weights["a.weight"], expected, rtol=1e-5)
        np.testing.assert_allclose(weights["a.bias"], [0.9], rtol=1e-7)

    def test_two_steps_of_sgd(self):
        r = recipe(optimizer="sgd", peak_learning_rate=0.1, decay="CONSTANT", momentum=0.5)
        weights = {"a.weight": np.array([1.0])}
        sgd = optimizer.SGD(r, weights)
        for step in range(2):
            sgd.update(weights, {"a.weight": np.array([1.0])}, step)
        np.testing.assert_allclose(weights["a.weight"], [1.0 - 0.1 - 0.15])

    def test_muon_makes_matrices_orthogonal(self):
        update = np.random.default_rng(1).normal(size=(2, 3, 8, 4))
        for name, shape in (("experts.up", (6, 8, 4)), ("attention.output", (2, 96)),
                            ("attention.query", (48, 4))):
            got = optimizer.scaled_orthogonal(f"layers.0.{name}.weight", update.reshape(
                shape if "experts" in name else update.shape), recipe(scale="SPECTRAL"))
            values = np.linalg.svd(got.reshape(shape), compute_uv=False)
            values /= max(1.0, shape[-2] / shape[-1])**0.5
            self.assertTrue(np.all((values > 0.6) & (values < 1.3)), values)

    def test_decay_spares_norms_and_biases(self):
        decayed = {n: optimizer.is_decayed(n) for n in config.parse_model(MODEL).parameters()}
        free = {n for n, yes in decayed.items() if not yes}
        self.assertEqual(free, {"final_norm.weight", "layers.0.attention_norm.weight",
                                "layers.0.mlp_norm.weight", "layers.1.attention_norm.weight",
                                "layers.1.mlp_norm.weight"})
        self.assertFalse(optimizer.is_decayed("layers.0.mlp.up.bias"))

    def test_clipping(self):
        norm = optimizer.global_norm({"a": np.array([3.0]), "b": np.array([[4.0]])})
        self.assertEqual(norm, 5.0)
        self.assertAlmostEqual(optimizer.clip_scale(recipe(clip_norm=1.0), norm), 0.2, places=6)
        self.assertEqual(optimizer.clip_scale(recipe(clip_norm=10.0), norm), 1.0)
        self.assertEqual(optimizer.clip_scale(recipe(), norm), 1.0)


class Training(unittest.TestCase):
    def test_learns_to_repeat_one_batch(self):
        model = config.parse_model(MODEL)
        tokens = np.random.default_rng(1).integers(0, 13, (4, 6))
        for text in (RECIPE, RECIPE.replace("adamw { beta2: 0.9 }", "sgd { momentum: 0.5 }")):
            trained, weights = config.parse_recipe(text), model.initial_weights(1)
            results = list(reference.train(model, trained, weights,
                                           lambda step: (tokens[:, :-1], tokens[:, 1:]), 30, 1))
            self.assertLess(results[-1].loss, 0.9 * results[0].loss)
            self.assertEqual(results[0].step, 0)
            self.assertAlmostEqual(results[0].loss, math.log(13), delta=2.0)


class Files(unittest.TestCase):
    def test_safetensors_round_trip(self):
        tensors = {"a": np.arange(6.0).reshape(2, 3), "b": np.array([1, 2], np.int32),
                   "scalar": np.float32(3.0).reshape(())}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            safetensors.save(path, tensors)
            loaded = safetensors.load(path)
            self.assertEqual(os.listdir(folder), ["x.safetensors"])
        self.assertEqual(set(loaded), set(tensors))
        for name, array in tensors.items():
            np.testing.assert_array_equal(loaded[name], array)
            self.assertEqual(loaded[name].dtype, array.dtype)

    def test_safetensors_of_bf16(self):
        header = b'{"a":{"dtype":"BF16","shape":[3],"data_offsets":[0,6]}}'.ljust(64)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            with open(path, "wb") as file:
                file.write(struct.pack("<Q", 64) + header + struct.pack("<3H", 0x3F80, 0xC049, 1))
            loaded = safetensors.load(path)["a"]
        np.testing.assert_array_equal(loaded, np.array([1, -3.140625, 2.0 ** -133], np.float32))

    def test_damaged_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.safetensors")
            for content in (b"", struct.pack("<Q", 100) + b"{}", struct.pack("<Q", 64)
                            + b'{"a":{"dtype":"F64","shape":[2],"data_offsets":[0,16]}}'.ljust(64)):
                with open(path, "wb") as file:
                    file.write(content)
                with self.assertRaises(ValueError):
                    safetensors.load(path)


if __name__ == "__main__":
    unittest.main()
