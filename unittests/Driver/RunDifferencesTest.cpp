//===- RunDifferencesTest.cpp - how far two runs are apart ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/RunDifferences.h"

#include "gtest/gtest.h"

#include <cmath>
#include <limits>

using namespace weft;

namespace {

Tensor tensorOf(std::vector<double> values) { return {{int64_t(values.size())}, values}; }

/// Steps `first` to before `end` of a model with the parameters a and b.
TrainingRun runOf(int64_t first, int64_t end) {
  TrainingRun run;
  run.firstStep = first;
  for (int64_t step = first; step < end; ++step) {
    run.losses.push_back(4.0 - 0.1 * double(step));
    run.norms.push_back(2.0);
  }
  run.validation = {3.5};
  run.gradients = {{"gradient/a", tensorOf({1, 2})}, {"gradient/b", tensorOf({3})}};
  run.weights = {{"a", tensorOf({0.5, 0.25})},
                 {"b", tensorOf({1})},
                 {"adam_m/a", tensorOf({0.1, 0.2})},
                 {"adam_m/b", tensorOf({0.3})}};
  return run;
}

std::vector<std::string> parameters() { return {"a", "b"}; }

ClassDifference find(const RunComparison &comparison, const std::string &name) {
  for (const ClassDifference &difference : comparison.classes()) {
    if (difference.name == name) {
      return difference;
    }
  }
  ADD_FAILURE() << "nothing was compared as " << name;
  return {};
}

TEST(RunDifferences, RoundingOfOneStepIsNone) {
  RunComparison comparison(parameters());
  TrainingRun got = runOf(1, 2), expected = runOf(1, 2);
  got.gradients["gradient/a"].values[0] += 1e-13;
  got.losses[0] *= 1 + 1e-14;
  comparison.compareStep(got, expected);
  for (const ClassDifference &difference : comparison.classes()) {
    EXPECT_EQ(difference.differing, 0U) << difference.name;
  }
  EXPECT_EQ(find(comparison, "gradients").compared, 2U);
  EXPECT_GT(find(comparison, "gradients").greatest, 0);
}

TEST(RunDifferences, NamesTheFirstAndItsStep) {
  RunComparison comparison(parameters());
  for (int64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(comparison.stepDiffers(), step > 2);
    TrainingRun got = runOf(step, step + 1);
    if (step >= 2) { // As if a moment were not updated from there on.
      got.weights["adam_m/b"].values[0] *= 0.9;
    }
    comparison.compareStep(got, runOf(step, step + 1));
  }
  ClassDifference states = find(comparison, "optimizer states");
  EXPECT_EQ(states.first, "adam_m/b");
  EXPECT_EQ(states.step, 2);
  EXPECT_EQ(states.differing, 2U);
  EXPECT_EQ(states.compared, 8U);
  EXPECT_NEAR(states.greatest, 0.1, 1e-12);
  EXPECT_EQ(find(comparison, "weights").differing, 0U);
}

TEST(RunDifferences, WhatIsMissingOrNoNumberDiffers) {
  RunComparison comparison(parameters());
  TrainingRun got = runOf(0, 1);
  got.losses.clear();
  got.norms[0] = std::nan("");
  got.weights.erase("b");
  got.gradients["gradient/b"].values.push_back(0);
  comparison.compareStep(got, runOf(0, 1));
  for (const char *name : {"loss", "gradient norm", "weights", "gradients"}) {
    EXPECT_EQ(find(comparison, name).differing, 1U) << name;
    EXPECT_EQ(find(comparison, name).greatest, std::numeric_limits<double>::infinity()) << name;
  }
}

TEST(RunDifferences, AStepThatIsNotFiniteDiffersInThat) {
  RunComparison comparison(parameters());
  TrainingRun got;
  got.firstStep = 2;
  got.notFinite = "error: step 2: loss is nan";
  comparison.compareStep(got, runOf(2, 3));
  ASSERT_EQ(comparison.classes().size(), 1U);
  ClassDifference loss = find(comparison, "loss");
  EXPECT_EQ(loss.first, "loss or gradient norm");
  EXPECT_EQ(loss.step, 2);
  EXPECT_TRUE(comparison.stepDiffers());

  RunComparison evaluation(parameters());
  got = runOf(3, 4);
  got.gradients.clear();
  got.notFinite = "error: validation step 4: the loss is not finite";
  evaluation.compareStep(got, runOf(3, 4));
  EXPECT_EQ(find(evaluation, "validation loss").step, 3);
  EXPECT_FALSE(evaluation.stepDiffers());
}

TEST(RunDifferences, WeightsThatAreNotSavedDiffer) {
  TrainingRun got = runOf(2, 3);
  got.weights.clear();
  got.notFinite = "error: after 3 steps 'a' has inf at [0], expected finite numbers";
  RunComparison step(parameters());
  step.compareStep(got, runOf(2, 3));
  EXPECT_EQ(find(step, "weights").first, "weights or optimizer states");
  EXPECT_EQ(find(step, "weights").step, 2);
  EXPECT_EQ(find(step, "gradients").compared, 2U);
  EXPECT_EQ(find(step, "gradients").differing, 0U);
  EXPECT_TRUE(step.stepDiffers());

  RunComparison resumed(parameters());
  resumed.compareResumed(got, runOf(2, 3));
  EXPECT_EQ(find(resumed, "steps in one run").first, "weights or optimizer states");
  EXPECT_EQ(find(resumed, "steps in one run").step, 2);
}

TEST(RunDifferences, OfRunsThatAreNotFiniteTheFirstStepThatDiffersCounts) {
  TrainingRun ended = runOf(0, 2);
  ended.gradients.clear();
  ended.notFinite = "error: step 2: loss is nan";
  RunComparison other(parameters());
  other.compareResumed(ended, runOf(1, 3));
  ClassDifference steps = find(other, "steps in one run");
  EXPECT_EQ(steps.first, "loss or gradient norm");
  EXPECT_EQ(steps.step, 2);

  RunComparison before(parameters());
  ended.losses[1] *= 2;
  before.compareResumed(ended, runOf(1, 3));
  EXPECT_EQ(find(before, "steps in one run").first, "loss");
  EXPECT_EQ(find(before, "steps in one run").step, 1);
}

TEST(RunDifferences, ATensorOfNothingButRoundingIsMeasuredAgainstAll) {
  RunComparison comparison(parameters());
  TrainingRun got = runOf(0, 1), expected = runOf(0, 1);
  got.gradients["gradient/b"].values = {2e-17};
  expected.gradients["gradient/b"].values = {-1e-17};
  comparison.compareStep(got, expected);
  EXPECT_EQ(find(comparison, "gradients").differing, 0U);
}

TEST(RunDifferences, AResumedRunHasTheSameBits) {
  RunComparison same(parameters());
  same.compareResumed(runOf(0, 3), runOf(1, 3));
  ClassDifference steps = find(same, "steps in one run");
  EXPECT_EQ(steps.differing, 0U);
  EXPECT_EQ(steps.compared, 2U + 2U + 2U + 4U + 1U);

  RunComparison other(parameters());
  TrainingRun unbroken = runOf(0, 3);
  unbroken.norms[2] = std::nextafter(unbroken.norms[2], 3.0);
  other.compareResumed(unbroken, runOf(1, 3));
  steps = find(other, "steps in one run");
  EXPECT_EQ(steps.differing, 1U);
  EXPECT_EQ(steps.first, "gradient norm");
  EXPECT_FALSE(other.stepDiffers());
  EXPECT_EQ(steps.step, 2);
}

} // namespace
