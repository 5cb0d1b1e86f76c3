#===- test_differences.py - tests of the comparison itself -----------------===#
#
# Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===------------------------------------------------------------------------===#

import math
import unittest

import numpy as np

import cases
import differences
import programs
import whole_cases


class Series(unittest.TestCase):
    def test_equal_within_tolerance(self):
        self.assertIsNone(differences.of_series("loss", [1.0, 2.0 + 1e-12], [1.0, 2.0], 1e-10))

    def test_names_the_first_step(self):
        found = differences.of_series("loss", [1.0, 2.1, 9.0], [1.0, 2.0, 3.0], 1e-10)
        self.assertIn("loss of step 1: 2.1, expected 2.0", found)

    def test_missing_step_and_not_a_number_differ(self):
        self.assertIn("1 steps, expected 2", differences.of_series("loss", [1.0], [1.0, 2.0], 1.0))
        self.assertIsNotNone(differences.of_series("loss", [float("nan")], [1.0], 1e-10))


class Tensors(unittest.TestCase):
    expected = {"a": np.array([3.0, 4.0]), "b": np.array([1e-13])}

    def test_rounding_alone_is_measured_against_all(self):
        got = {"a": self.expected["a"], "b": np.array([-2e-13])}
        self.assertIsNone(differences.of_tensors("weight", got, self.expected, 1e-10))
        got["b"] = np.array([1e-9])
        self.assertIn("weight b: relative difference 2.0e-10 above 1e-10 (1 of 2",
                      differences.of_tensors("weight", got, self.expected, 1e-10))

    def test_small_tensor_is_measured_by_itself(self):
        expected = {"a": np.array([3.0]), "b": np.array([1e-6])}
        got = {"a": np.array([3.0]), "b": np.array([1e-6 + 1e-12])}
        self.assertIn("weight b", differences.of_tensors("weight", got, expected, 1e-10))

    def test_names_shape_and_missing_tensor(self):
        self.assertIn("only in one", differences.of_tensors("weight", {}, self.expected, 1.0))
        got = dict(self.expected, a=np.zeros((2, 1)))
        self.assertIn("weight a: shape [2, 1], expected [2]",
                      differences.of_tensors("weight", got, self.expected, 1.0))

    def test_not_a_number_differs(self):
        got = dict(self.expected, a=np.array([np.nan, 4.0]))
        self.assertIn("weight a", differences.of_tensors("weight", got, self.expected, 1e-10))


class Errors(unittest.TestCase):
    @staticmethod
    def run_with(loss, a, b=1e-20):
        return programs.Run([1.0, loss], [], {"a": np.array([a, 0.0]), "b": np.array([b])}, {}, [],
                            {}, [], [])

    def setUp(self):
        self.exact = self.run_with(2.0, 1.0)

    def test_are_relative(self):
        found = differences.errors(self.run_with(2.02, 1.0, 0.03), self.exact)
        self.assertAlmostEqual(found["losses"], 0.01 / 2 ** 0.5)
        self.assertAlmostEqual(found["gradients"], 0.03)
        self.assertEqual(found["a"], 0.0)
        self.assertAlmostEqual(found["b"], 0.03)  # Zero in truth: measured against all.

    def test_too_far(self):
        self.assertIsNone(differences.too_far(self.run_with(2.001, 1.01), self.exact))
        self.assertIn("losses: relative error 3.5e-03",
                      differences.too_far(self.run_with(2.01, 1.0), self.exact))
        self.assertIn("gradients", differences.too_far(self.run_with(2.0, 1.05), self.exact))
        self.assertIn("losses", differences.too_far(self.run_with(np.nan, 1.0), self.exact))

    def test_figures_are_no_fault(self):
        found = differences.figures(self.run_with(2.02, 1.0, 0.03), self.exact)
        self.assertEqual(found, "losses 7.1e-03, gradients 3.0e-02 from float64")
        self.assertIsInstance(found, differences.Figures)

    def test_twice_as_far_as_one_rank(self):
        single = self.run_with(2.001, 1.01)
        self.assertIsNone(differences.further(self.run_with(1.9981, 0.981), single, self.exact))
        for loss, a, b, part in ((2.003, 1.0, 0.0, "losses"), (2.0, 1.03, 0.0, "gradients"),
                                 (2.0, 1.0, 0.01, "b"), (2.0, np.nan, 0.0, "gradients")):
            self.assertTrue(differences.further(self.run_with(loss, a, b), single,
                                                self.exact).startswith(part + ":"), part)


class Cases(unittest.TestCase):
    def test_every_description_is_understood(self):
        seen = set()
        for case in cases.all_cases() + cases.default_cases():
            model = programs.config.parse_model(cases.model_text(case))
            recipe = programs.config.parse_recipe(cases.recipe_text(case))
            self.assertEqual(model.dropout > 0, case.dropout)
            self.assertEqual(recipe.optimizer, case.optimizer)
            seen.add(case.name)
            heads = model.heads if case.heads else model.kv_heads
            experts = model.experts.experts if model.experts else math.inf
            outnumbered = any(
                size < shards for dp, fsdp, ep, cp, tp in map(cases.sizes_of, case.meshes)
                for size, shards in ((recipe.global_batch, dp * fsdp * ep), (recipe.sequence_length, cp),
                                     (heads, tp), (model.ffn, tp), (model.vocabulary, tp), (experts, ep)))
            self.assertEqual(outnumbered, case.short or case.heads not in ((), (8, 2)), case.name)
        self.assertEqual(len(seen), 135)

    def test_whole_models_are_understood_and_have_8_or_16_ranks(self):
        splits = set()
        for case in whole_cases.whole_cases():
            model, recipe = case.texts()
            self.assertEqual(programs.config.parse_model(model).layers, 2)
            self.assertEqual(programs.config.parse_recipe(recipe).precision, case.precision)
            for mesh in case.meshes:
                self.assertIn(cases.ranks_of(mesh), (8, 16), mesh)
                splits.add((case.family, case.even, mesh))
        self.assertGreaterEqual(len(splits), 30)

    def test_default_covers_every_choice_and_mesh(self):
        chosen = cases.default_cases()
        for field in ("family", "optimizer", "dropout", "tied", "precision"):
            every = {getattr(case, field) for case in cases.all_cases()}
            self.assertEqual({getattr(case, field) for case in chosen}, every, field)
        meshes = {mesh for case in chosen for mesh in case.meshes}
        self.assertLessEqual({*cases.ALL_MESHES, *cases.SEQUENCE_MESHES, *cases.HOME_MESHES,
                              *cases.EXPERT_MESHES,
                              *cases.UNEVEN_EXPERT_MESHES, *cases.SIX_EXPERTS_MESHES}, meshes)
        self.assertEqual(sum(case.dropout for case in cases.all_cases()), 60)

    def test_training_moves_the_loss_by_a_tenth(self):
        # In NumPy, on the text itself, for every case: a run that learns nothing shows nothing.
        text = np.frombuffer(cases.training_text().encode(), np.uint8).astype(int)
        for case in cases.all_cases()[:32]:
            model = programs.config.parse_model(cases.model_text(case))
            recipe = programs.config.parse_recipe(cases.recipe_text(case))

            def batch(step):
                starts = (np.arange(8) + 8 * step) * 16
                block = np.stack([text[start:start + 17] for start in starts])
                return block[:, :-1], block[:, 1:]

            steps = list(programs.reference.train(model, recipe, model.initial_weights(1), batch,
                                                  cases.STEPS, 1))
            self.assertLess(steps[-1].loss, 0.9 * steps[0].loss, case.name)


if __name__ == "__main__":
    unittest.main()
