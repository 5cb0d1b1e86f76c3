//===- ExpertsTest.cpp - rules and defaults of experts and routings -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Validate.h"

#include "Helpers.h"

using namespace weft::desc;
using namespace weft::desc::test;

/// The valid rotary model, with experts in its line 11.
static Result<ModelSpec> modelWith(const std::string &experts) {
  return parseModel(rotaryModelText + "experts { " + experts + " }", "m");
}

static std::string expertErrors(const std::string &experts) { return errors(modelWith(experts)); }

static std::string routingErrors(const std::string &routing) {
  return errors(parseRecipe(recipeText + "routing { " + routing + " }", "r"));
}

TEST(Experts, DefaultsAreFilledIn) {
  Result<ModelSpec> model = modelWith("experts: 8 experts_per_token: 2");
  ASSERT_TRUE(bool(model)) << errors(model);
  const ExpertsSpec &experts = *model->experts;
  EXPECT_EQ(experts.ffn, 64);
  EXPECT_EQ(experts.sharedFfn, 0);
  EXPECT_TRUE(experts.normalizes);
  EXPECT_EQ(experts.scale, 1.0);
  EXPECT_EQ(experts.groups, 1);
  EXPECT_EQ(experts.keptGroups, 1);
  EXPECT_EQ(experts.scoring, ScoringKind::Softmax);
  EXPECT_EQ(model->expertLayers(), 2);
  EXPECT_FALSE(modelWith("experts: 8 experts_per_token: 1")->experts->normalizes);
  EXPECT_FALSE(parseModel(rotaryModelText)->experts);
}

TEST(Experts, EveryFieldIsRead) {
  Result<ModelSpec> model = modelWith(
      "experts: 8 experts_per_token: 3 ffn: 16 shared_ffn: 24 shared_gate: true first_layer: 1 "
      "layer_period: 2 scoring: SIGMOID normalize: false scale: 2.5 groups: 4 kept_groups: 2");
  ASSERT_TRUE(bool(model)) << errors(model);
  ExpertsSpec expected{8, 3, 16, 24, true, 1, 2, ScoringKind::Sigmoid, false, 2.5, 4, 2};
  EXPECT_TRUE(*model->experts == expected);
  EXPECT_FALSE(model->hasExperts(0));
  EXPECT_TRUE(model->hasExperts(1));
  std::string printed = printModel(*model);
  Result<ModelSpec> again = parseModel(printed);
  ASSERT_TRUE(bool(again)) << printed;
  EXPECT_TRUE(*again == *model) << printed;
}

TEST(Experts, Parameters) {
  // One of two layers: 8 experts of three matrices, a shared MLP, its gate, and the router.
  ModelSpec model = *modelWith("experts: 8 experts_per_token: 2 ffn: 16 shared_ffn: 24 "
                               "shared_gate: true first_layer: 1");
  int64_t plain = parameterCount(*parseModel(rotaryModelText));
  int64_t mlp = 3 * 32 * 64, mixture = 3 * 32 * (8 * 16 + 24) + 8 * 32 + 32;
  EXPECT_EQ(parameterCount(model), plain - mlp + mixture);
}

TEST(Experts, R21Ranges) {
  EXPECT_EQ(expertErrors(""),
            "model_r21: m:11:1: experts.experts: missing required field\n"
            "model_r21: m:11:1: experts.experts_per_token: missing required field\n");
  EXPECT_EQ(expertErrors("experts: 1 experts_per_token: 1"),
            "model_r21: m:11:11: experts.experts: expected a number from 2 to 1024, got 1\n");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 0"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 ffn: 0"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 shared_ffn: 0"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 groups: 0"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 kept_groups: 0"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 scale: 0"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 first_layer: -1"), "");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 layer_period: 0"), "");
}

TEST(Experts, R22Groups) {
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 2 groups: 3"),
            "model_r22: m:11:43: experts.groups: expected a divisor of experts 8 that leaves at "
            "least 2 in a group, got 3\n");
  EXPECT_NE(expertErrors("experts: 8 experts_per_token: 2 groups: 8"), "");
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 2 groups: 2 kept_groups: 3"),
            "model_r22: m:11:53: experts.kept_groups: expected at most groups 2, got 3\n");
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 3 groups: 4 kept_groups: 1"),
            "model_r22: m:11:22: experts.experts_per_token: expected at most 2, the experts of "
            "kept_groups, got 3\n");
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 9"),
            "model_r22: m:11:22: experts.experts_per_token: expected at most 8, the experts, got "
            "9\n");
}

TEST(Experts, R23SomeLayerHasExperts) {
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 2 first_layer: 2"),
            "model_r23: m:11:43: experts.first_layer: expected less than layers 2, got 2\n");
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 2 layer_period: 3"),
            "model_r23: m:11:43: experts.layer_period: expected a multiple from 1 to layers 2, or "
            "no layer has experts; got 3\n");
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 2 layer_period: 2 first_layer: 1"), "");
}

TEST(Experts, R24SharedGate) {
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 2 shared_gate: true"),
            "model_r24: m:11:43: experts.shared_gate: has no effect without shared_ffn\n");
}

TEST(Experts, R25NoBiases) {
  EXPECT_EQ(errors(parseModel(rotaryModelText + "mlp_biases: true experts { experts: 8 "
                                                "experts_per_token: 2 }",
                              "m")),
            "model_r25: m:11:1: mlp_biases: expected false with experts, got true\n");
}

TEST(Experts, R26OneExpertIsNotNormalized) {
  EXPECT_EQ(expertErrors("experts: 8 experts_per_token: 1 normalize: true"),
            "model_r26: m:11:43: experts.normalize: expected false with experts_per_token 1, got "
            "true\n");
}

TEST(Routing, IsRead) {
  EXPECT_FALSE(parseRecipe(recipeText)->routing.hasLoss());
  Result<RecipeSpec> recipe =
      parseRecipe(recipeText + "routing { load_balance_loss: 0.5 load_balance_group: SEQUENCE "
                               "router_z_loss: 0.25 capacity_factor: 1.5 capacity_group: "
                               "GLOBAL_BATCH }");
  ASSERT_TRUE(bool(recipe)) << errors(recipe);
  EXPECT_EQ(recipe->routing.loadBalanceLoss, 0.5);
  EXPECT_EQ(recipe->routing.loadBalanceGroup, RoutingGroup::Sequence);
  EXPECT_EQ(recipe->routing.routerZLoss, 0.25);
  EXPECT_EQ(recipe->routing.capacityFactor, 1.5);
  EXPECT_EQ(recipe->routing.capacityGroup, RoutingGroup::GlobalBatch);
  EXPECT_EQ(recipe->routing.bufferFactor, std::nullopt);
  EXPECT_EQ(parseRecipe(recipeText + "routing { buffer_factor: 1.5 }")->routing.bufferFactor, 1.5);
}

TEST(Routing, R15Ranges) {
  EXPECT_EQ(routingErrors("load_balance_loss: -1 router_z_loss: 2 capacity_factor: 0"),
            "recipe_r15: r:7:11: routing.load_balance_loss: expected a number from 0 to 100, got "
            "-1\n"
            "recipe_r15: r:7:33: routing.router_z_loss: expected a number from 0 to 1, got 2\n"
            "recipe_r15: r:7:50: routing.capacity_factor: expected a number above 0 to 4096, got "
            "0\n");
  EXPECT_EQ(routingErrors("buffer_factor: 0"),
            "recipe_r15: r:7:11: routing.buffer_factor: expected a number above 0 to 4096, got "
            "0\n");
}

TEST(Routing, R16GroupsHaveAnEffect) {
  EXPECT_EQ(routingErrors("load_balance_group: SEQUENCE capacity_group: SEQUENCE"),
            "recipe_r16: r:7:11: routing.load_balance_group: has no effect without "
            "load_balance_loss\n"
            "recipe_r16: r:7:40: routing.capacity_group: has no effect without capacity_factor\n");
  EXPECT_EQ(routingErrors("capacity_factor: 2 buffer_factor: 3"),
            "recipe_r16: r:7:30: routing.buffer_factor: has no effect with capacity_factor\n");
}

TEST(Routing, TogetherR5NeedsExperts) {
  MachineSpec machine = *parseMachine(machineText, "h");
  RecipeSpec recipe = *parseRecipe(recipeText + "routing {}", "r");
  Diagnostics found = validateTogether(*parseModel(rotaryModelText), recipe, machine);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().rule, "together_r5");
  EXPECT_EQ(found.front().str(), "r:7:1: routing: has no effect, as model m has no experts");
  EXPECT_TRUE(
      validateTogether(*modelWith("experts: 8 experts_per_token: 2"), recipe, machine).empty());
}

TEST(Experts, PlansCutThem) {
  ModelSpec model = *modelWith("experts: 8 experts_per_token: 2 ffn: 12");
  RecipeSpec recipe = *parseRecipe(recipeText, "r");
  MachineSpec machine = *parseMachine(machineText, "h");
  auto problems = [&](const std::string &dimension, int size) {
    Result<PlanSpec> plan = parsePlan(
        "version: 1 padding: false mesh { axis { name: 'a' size: " + std::to_string(size) +
            " } } sharding { dimension: '" + dimension + "' axes: 'a' }",
        "p");
    std::string all;
    for (const Diagnostic &found : validatePlan(model, recipe, machine, *plan)) {
      all += found.rule + ": " + found.message + "\n";
    }
    return all;
  };
  EXPECT_EQ(problems("experts", 8), "");
  EXPECT_EQ(problems("ffn", 4), "");
  // That of plain MLPs could be cut so.
  EXPECT_EQ(problems("ffn", 8), "legal_r2: a=8 does not divide ffn=12, use one of 1, 2, 3, 4, 6\n");
  EXPECT_EQ(problems("experts", 3),
            "legal_r2: a=3 does not divide experts=8, use one of 1, 2, 4, 8\n");
}
