#===- test_model.py - gradients against finite differences, for every variant --===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import unittest

import numpy as np

from config import Model
from model import Transformer, document_starts

SMALL = dict(vocabulary=11, hidden=8, layers=2, heads=4, kv_heads=2, head_size=4, ffn=12,
             maximum_length=9, tied_embeddings=True, attention_biases=True, mlp_biases=True,
             standard_deviation=0.3)
LLAMA = dict(SMALL, norm="RMS_NORM", norm_bias=False, activation="SWIGLU", positions="ROTARY",
             tied_embeddings=False, attention_biases=False, mlp_biases=False)

VARIANTS = {
    "gpt2": dict(SMALL, activation="GELU_TANH"),
    "gpt2 untied": dict(SMALL, activation="GELU_TANH", tied_embeddings=False),
    "gelu by erf": dict(SMALL),
    "no norm bias": dict(SMALL, norm_bias=False),
    "no biases": dict(SMALL, attention_biases=False, mlp_biases=False),
    "attention biases only": dict(LLAMA, attention_biases=True),
    "multi-head": dict(SMALL, kv_heads=4),
    "one key head": dict(SMALL, kv_heads=1),
    "llama": dict(LLAMA),
    "llama tied": dict(LLAMA, tied_embeddings=True),
    "llama with biases": dict(LLAMA, attention_biases=True, mlp_biases=True),
    "query, key and value biases only": dict(LLAMA, attention_biases=True,
                                             attention_output_bias=False),
    "output bias only": dict(SMALL, attention_biases=False, attention_output_bias=True),
    "query and key norms": dict(LLAMA, query_key_norm=True),
    "query and key norms with biases": dict(LLAMA, query_key_norm=True, attention_biases=True),
    "window": dict(LLAMA, attention_window=3),
    "window of one": dict(SMALL, attention_window=1),
    "window with dropout": dict(LLAMA, attention_window=2, attention_dropout=0.3),
    "linear scaling": dict(LLAMA, rope_scaling=("linear", 2.0)),
    "llama3 scaling": dict(LLAMA, rope_scaling=("llama3", 4.0, 1.0, 4.0, 6)),
    "no positions": dict(SMALL, positions="NO_POSITIONS"),
    "rotary and layer norm": dict(SMALL, positions="ROTARY"),
    "learned and swiglu": dict(SMALL, activation="SWIGLU", norm="RMS_NORM", norm_bias=False),
    "dropout": dict(SMALL, dropout=0.2),
    "attention dropout": dict(LLAMA, attention_dropout=0.3),
    "documents": dict(SMALL, document_end=0),
    "documents in a window": dict(LLAMA, attention_window=3, document_end=0),
    "both dropouts": dict(LLAMA, dropout=0.1, attention_dropout=0.1),
}


def batch(model, seed=3):
    random = np.random.default_rng(seed)
    return random.integers(0, model.vocabulary, size=(2, 3, 7))


def shaken(model):
    """Initial weights with noise on norms and biases, so that no gradient is trivial."""
    random = np.random.default_rng(5)
    weights = model.initial_weights(seed=1)
    return {name: w + 0.1 * random.normal(size=w.shape) for name, w in weights.items()}


class Gradients(unittest.TestCase):
    def check(self, options):
        options = dict(options)
        end = options.pop("document_end", None)
        model = Model(**options)
        transformer = Transformer(model, document_end=end)
        weights, (tokens, targets) = shaken(model), batch(model)
        if end is not None:
            tokens[:, 2] = end
        rest = (tokens, targets, 1e-2, 9, 4)
        loss, gradients = transformer.loss_and_gradients(weights, *rest)
        self.assertEqual(loss, transformer.loss(weights, *rest))
        self.assertEqual(set(gradients), set(weights))
        random = np.random.default_rng(6)
        for name, w in weights.items():
            self.assertEqual(gradients[name].shape, w.shape, name)
            # Along the gradient itself, where an error shows most, and along a random direction.
            for direction in (gradients[name], random.normal(size=w.shape)):
                direction = direction / (np.linalg.norm(direction) + 1e-30)
                expected = float((gradients[name] * direction).sum())
                got = self.slope(transformer, weights, name, direction, rest)
                self.assertAlmostEqual(got, expected, delta=1e-8 + 1e-7 * abs(expected), msg=name)

    @staticmethod
    def slope(transformer, weights, name, direction, rest):
        """The directional derivative by central differences, with one Richardson step."""
        def difference(h):
            up, down = (transformer.loss({**weights, name: weights[name] + s * h * direction},
                                         *rest) for s in (1.0, -1.0))
            return (up - down) / (2.0 * h)

        return (4.0 * difference(5e-4) - difference(1e-3)) / 3.0

    def test_key_bias_has_no_gradient_without_rotary(self):
        # A shift of all keys shifts all scores of a query alike, and softmax does not see it.
        model = Model(**SMALL)
        tokens, targets = batch(model)
        transformer = Transformer(model)
        _, gradients = transformer.loss_and_gradients(shaken(model), tokens, targets, 0.0, 1, 0)
        self.assertLess(np.abs(gradients["layers.0.attention.key.bias"]).max(), 1e-15)


for _name, _options in VARIANTS.items():
    setattr(Gradients, "test_" + _name.replace(" ", "_").replace("-", "_").replace(",", ""),
            lambda self, options=_options: self.check(options))


class Forward(unittest.TestCase):
    def test_attention_is_causal(self):
        model = Model(**LLAMA)
        transformer, weights = Transformer(model), shaken(model)
        tokens, _ = batch(model)
        changed = tokens.copy()
        changed[:, 4] = (changed[:, 4] + 1) % model.vocabulary
        a, b = (transformer.logits(weights, t, 1, 0, []) for t in (tokens, changed))
        np.testing.assert_array_equal(a[:, :4], b[:, :4])
        self.assertGreater(np.abs(a[:, 4:] - b[:, 4:]).max(), 0.0)

    def test_window_ends_what_a_query_sees(self):
        # One layer, so that nothing comes from further away through other positions.
        model = Model(**dict(LLAMA, layers=1, attention_window=3))
        transformer, weights = Transformer(model), shaken(model)
        tokens, _ = batch(model)
        changed = tokens.copy()
        changed[:, 1] = (changed[:, 1] + 1) % model.vocabulary
        a, b = (transformer.logits(weights, t, 1, 0, []) for t in (tokens, changed))
        moved = np.abs(a - b).max(axis=(0, 2)) > 0.0
        self.assertEqual(moved.tolist(), [False, True, True, True, False, False, False])

    def test_documents_are_alone(self):
        # Of four tokens each, as three sequences of two documents and as six of one.
        for options in (SMALL, LLAMA):
            model = Model(**options)
            weights = shaken(model)
            random = np.random.default_rng(7)
            tokens, targets = random.integers(1, model.vocabulary, size=(2, 3, 8))
            tokens[:, 3] = tokens[:, 7] = 0
            together, alone = Transformer(model, document_end=0), Transformer(model)
            shape = (6, 4)
            a = together.loss_and_gradients(weights, tokens, targets, 1e-2, 1, 0)
            b = alone.loss_and_gradients(weights, tokens.reshape(shape), targets.reshape(shape), 1e-2,
                                         1, 0)
            self.assertAlmostEqual(a[0], b[0], delta=1e-14)
            for name in weights:
                np.testing.assert_allclose(a[1][name], b[1][name], rtol=1e-10, atol=1e-13)

    def test_where_documents_begin(self):
        starts = document_starts(np.array([[1, 0, 2, 3, 0, 0, 4], [0, 1, 1, 1, 1, 1, 0]]), 0)
        self.assertEqual(starts.tolist(), [[0, 0, 2, 2, 2, 5, 6], [0, 1, 1, 1, 1, 1, 1]])

    def test_group_shares_its_key_head(self):
        # With the key and value heads repeated, multi-head attention gives the grouped result.
        grouped = Model(**LLAMA)
        full = Model(**dict(LLAMA, kv_heads=4))
        weights = shaken(grouped)
        spread = dict(weights)
        for layer in range(grouped.layers):
            prefix = f"layers.{layer}.attention."
            for part in ("key", "value"):
                name = f"{prefix}{part}.weight"
                spread[name] = np.repeat(weights[name], 2, axis=0)
            for part in ("query", "output"):
                name = f"{prefix}{part}.weight"
                spread[name] = weights[name].reshape(full.parameters()[name])
        tokens, _ = batch(grouped)
        a = Transformer(grouped).logits(weights, tokens, 1, 0, [])
        b = Transformer(full).logits(spread, tokens, 1, 0, [])
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-13)

    def test_initial_weights_have_the_asked_spread(self):
        model = Model(vocabulary=256, hidden=64, layers=2, heads=4, kv_heads=2, head_size=16,
                      ffn=256, maximum_length=32,
                      attention_biases=True, standard_deviation=0.02)
        weights = model.initial_weights(seed=1)
        for name, w in weights.items():
            if name.endswith(".bias"):
                self.assertEqual(np.abs(w).max(), 0.0)
            elif name.endswith("norm.weight"):
                self.assertEqual(np.abs(w - 1.0).max(), 0.0)
            else:
                into_residual = name.endswith(("attention.output.weight", "mlp.down.weight"))
                std = 0.01 if into_residual else 0.02
                self.assertAlmostEqual(w.std() / std, 1.0, delta=4 / np.sqrt(w.size))
        first, second = (weights[f"layers.{i}.mlp.up.weight"].ravel() for i in (0, 1))
        self.assertLess(abs(np.corrcoef(first, second)[0, 1]), 0.05)
        again = model.initial_weights(seed=2)["embed.tokens.weight"]
        self.assertGreater(np.abs(again - weights["embed.tokens.weight"]).max(), 0.0)


if __name__ == "__main__":
    unittest.main()
