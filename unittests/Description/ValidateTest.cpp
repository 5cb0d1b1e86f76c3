//===- ValidateTest.cpp - rules between descriptions ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Validate.h"

#include "Helpers.h"
#include "weft/Description/Pins.h"

using namespace weft::desc;
using namespace weft::desc::test;

namespace {

class Validate : public testing::Test {
protected:
  std::string together() { return lines(validateTogether(model, recipe, machine)); }
  /// Returns the errors of a plan without padding, or with it.
  std::string problems(PlanSpec plan, bool mayPad = false) {
    plan.mayPad = mayPad;
    return lines(validatePlan(model, recipe, machine, plan));
  }
  std::string pins(const std::string &text) { return problems(*applyPins({text})); }
  std::string plan(const std::string &text) { return problems(*parsePlan(text, "p")); }
  static std::string lines(const Diagnostics &diagnostics) {
    std::string all;
    for (const Diagnostic &diagnostic : diagnostics) {
      all += diagnostic.rule + ": " + diagnostic.str() + "\n";
    }
    return all;
  }

  ModelSpec model = *parseModel(modelText, "m");
  RecipeSpec recipe = *parseRecipe(recipeText, "r");
  MachineSpec machine = *parseMachine(machineText, "h");
};

} // namespace

TEST_F(Validate, DimensionSizes) {
  EXPECT_EQ(dimensionSize(model, recipe, "batch"), 12);
  EXPECT_EQ(dimensionSize(model, recipe, "sequence"), 128);
  EXPECT_EQ(dimensionSize(model, recipe, "kv_heads"), 4);
  EXPECT_EQ(dimensionSize(model, recipe, "group"), 2);
  EXPECT_EQ(dimensionSize(model, recipe, "head"), 4);
  EXPECT_EQ(dimensionSize(model, recipe, "ffn"), 64);
  EXPECT_EQ(dimensionSize(model, recipe, "vocab"), 256);
  EXPECT_EQ(dimensionSize(model, recipe, "hidden"), 32);
  EXPECT_EQ(dimensionSize(model, recipe, "positions"), 128);
  EXPECT_EQ(dimensionSize(model, recipe, "rows"), std::nullopt);
  model.positions = PositionKind::Rotary;
  EXPECT_EQ(dimensionSize(model, recipe, "positions"), std::nullopt);
  for (std::string_view name : dimensionNames()) {
    bool isOptional = name == "positions" || name == "experts";
    EXPECT_TRUE(isOptional || dimensionSize(model, recipe, name)) << name;
  }
}

TEST_F(Validate, TogetherR1Length) {
  EXPECT_EQ(together(), "");
  recipe = *parseRecipe(with(recipeText, "128", "129"), "r");
  EXPECT_EQ(together(), "together_r1: r:2:1: sequence_length: expected at most maximum_length 128 "
                        "of model m, got 129\n");
  model.maximumLength = 0;
  EXPECT_EQ(together(), "");
}

TEST_F(Validate, TogetherR2Precision) {
  recipe.precision = Precision::F64;
  EXPECT_EQ(together(), "together_r2: r: precision: expected a precision that machine host gives "
                        "peak_flops for, got F64\n");
}

TEST_F(Validate, TogetherR3Sequences) {
  recipe.sequenceLength = 0;
  EXPECT_EQ(together(), "together_r3: r:2:1: sequence_length: missing, expected the length of the "
                        "sequences that model m is trained on\n");
  model.graph.emplace();
  model.maximumLength = 0;
  EXPECT_EQ(together(), "");
}

TEST_F(Validate, TogetherR4BatchNormGroups) {
  model.graph.emplace();
  model.graph->batchNormGroup = 3;
  EXPECT_EQ(together(), "");
  model.graph->batchNormGroup = 5;
  EXPECT_EQ(together(),
            "together_r4: graph.batch_norm_group: expected a divisor of the batch of 12 "
            "samples, got 5\n");
}

TEST_F(Validate, TogetherR6NoChunksOfAGraph) {
  recipe.lossChunks = 2;
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)), "");
  model.graph.emplace();
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)),
            "together_r6: r: loss_chunks: expected no more than 1, as model m is a graph, whose "
            "logits may be those of images, got 2\n");
}

TEST_F(Validate, TogetherR11ChunksAreOfOneLength) {
  recipe = *parseRecipe(with(recipeText, "steps: 100", "steps: 100 loss_chunks: 48"), "r");
  EXPECT_EQ(
      lines(validateTogether(model, recipe, machine)),
      "together_r11: r:6:12: loss_chunks: expected a divisor of sequence_length 128, got 48\n");
  recipe.sequenceLength = 96;
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)), "");
}

TEST_F(Validate, TogetherR7MuonNeedsMatrices) {
  recipe = *parseRecipe(with(recipeText, "adamw", "muon"), "r");
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)), "");
  model.graph.emplace();
  EXPECT_EQ(
      lines(validateTogether(model, recipe, machine)),
      "together_r7: r:4:1: muon: expected adamw or sgd, as model m is a graph, whose matrices "
      "muon does not know\n");
}

TEST_F(Validate, TogetherR9DocumentsEndWithATokenOfTheModel) {
  recipe = *parseRecipe(with(recipeText, "steps: 100", "steps: 100 documents { end: 255 }"), "r");
  EXPECT_EQ(recipe.documentEnd, 255);
  model.vocabulary = 256;
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)), "");
  model.vocabulary = 255;
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)),
            "together_r9: r:6:12: documents.end: expected a token of model m, 0 to 254, got 255\n");
  model.graph.emplace();
  EXPECT_EQ(lines(validateTogether(model, recipe, machine)),
            "together_r9: r:6:12: documents: has no effect, as model m is a graph, which defines "
            "its attention itself\n");
}

TEST_F(Validate, LegalPlans) {
  EXPECT_EQ(pins("dp=1"), "");
  EXPECT_EQ(pins("dp=2,tp=4"), "");
  EXPECT_EQ(pins("dp=6"), "");
  EXPECT_EQ(plan("version: 1"), "");
}

TEST_F(Validate, LegalR1DimensionExists) {
  model.positions = PositionKind::Rotary;
  EXPECT_EQ(plan("version: 1 mesh { axis { name: 'a' size: 2 } }\n"
                 "sharding { dimension: 'positions' axes: 'a' }"),
            "legal_r1: p:2:1: the model has no dimension 'positions', only batch, sequence, "
            "keys, kv_heads, group, head, ffn, vocab, hidden\n");
}

TEST_F(Validate, LegalR2Divisibility) {
  EXPECT_EQ(pins("tp=3"),
            "legal_r2: --pin: tp=3 does not divide kv_heads=4, use one of 1, 2, 4\n"
            "legal_r2: --pin: tp=3 does not divide ffn=64, use one of 1, 2, 4, 8\n"
            "legal_r2: --pin: tp=3 does not divide vocab=256, use one of 1, 2, 4, 8\n");
  EXPECT_EQ(pins("dp=8"), "legal_r2: --pin: dp=8 does not divide batch=12, use one of 1, 2, 3, 4, "
                          "6\n");
  EXPECT_EQ(plan("version: 1 mesh { axis { name: 'a' size: 2 } axis { name: 'b' size: 4 } }\n"
                 "sharding { dimension: 'kv_heads' axes: ['a', 'b'] }"),
            "legal_r2: p:2:1: a=2 * b=4 = 8 does not divide kv_heads=4, use one of 1, 2, 4\n");
}

TEST_F(Validate, LegalR2PaddingDivides) {
  auto padded = [&](const std::string &pin) { return problems(*applyPins({pin}), true); };
  EXPECT_EQ(padded("tp=3,cp=3"),
            "legal_r3: --pin: cp=3 * tp=3 need 9 devices, machine host has 8\n");
  EXPECT_EQ(padded("tp=3,sp=true"), "");
  EXPECT_EQ(padded("dp=5"), "");
  // Variables can be padded along any dimension, ops cannot.
  EXPECT_EQ(padded("dp=5,zero=1"), "");
  EXPECT_EQ(pins("dp=3,zero=1"),
            "legal_r2: --pin: dp=3 does not divide hidden=32, use one of 1, 2, 4, 8\n");
  PlanSpec hidden = *applyPins({"dp=5"});
  hidden.shardings.push_back({"*", "hidden", {"dp"}, {}});
  EXPECT_EQ(problems(hidden, true), "legal_r2: dp=5 does not divide hidden=32, use one of 1, 2, 4, "
                                    "8\n");
  model.experts.emplace();
  model.experts->count = 8;
  model.experts->ffn = 60;
  EXPECT_EQ(padded("tp=3"), "");
  EXPECT_EQ(padded("ep=5"), "");
  EXPECT_EQ(pins("ep=5"),
            "legal_r2: --pin: ep=5 does not divide batch=12, use one of 1, 2, 3, 4, 6\n"
            "legal_r2: --pin: ep=5 does not divide experts=8, use one of 1, 2, 4, 8\n");
}

TEST_F(Validate, LegalR2AxesOfHandMadePlans) {
  PlanSpec plan;
  plan.shardings.push_back({"*", "batch", {"dp"}, {}});
  EXPECT_EQ(lines(validatePlan(model, recipe, machine, plan)),
            "legal_r2: axis 'dp' is not an axis of the mesh, or too large\n");
}

TEST_F(Validate, LegalR14Parts) {
  machine.nodes = 64;
  auto parts = [&](const std::string &axes) {
    return lines(validatePlan(model, recipe, machine, *parseMesh(axes)));
  };
  EXPECT_EQ(parts("a=2,b=2,c=2,d=2,e=2"), "");
  EXPECT_EQ(parts("a=2,b=2,c=2,d=2x2x2"),
            "legal_r14: --mesh: expected at most 5 axes, where the parts of a split axis count as "
            "such, got 6\n");
}

TEST_F(Validate, LegalR3Devices) {
  EXPECT_EQ(pins("dp=4,tp=4"),
            "legal_r3: --pin: dp=4 * tp=4 need 16 devices, machine host has 8\n");
  EXPECT_EQ(pins("dp=12"), "legal_r3: --pin: dp=12 needs 12 devices, machine host has 8\n");
}

TEST_F(Validate, LongListsOfDivisorsEnd) {
  machine.nodes = 1024;
  model.vocabulary = 1 << 20;
  std::string text = pins("tp=3");
  EXPECT_NE(
      text.find("vocab=1048576, use one of 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, "
                "...\n"),
      text.npos)
      << text;
}
