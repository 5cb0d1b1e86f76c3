//===- ReviewPlanTest.cpp - tests of a plan's errors ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/ReviewPlan.h"

#include "weft/Description/Pins.h"

#include <gtest/gtest.h>

#include <functional>

using namespace weft;
using namespace weft::planner;

namespace {

constexpr const char *modelText = R"(version: 1
name: "m"
layers: 2
hidden: 64
heads: 8
kv_heads: 8
ffn: 256
norm: RMS_NORM
activation: SWIGLU
positions: ROTARY
maximum_length: 128
vocabulary: 256
)";

constexpr const char *recipeText = R"(version: 1
sequence_length: 128
global_batch_sequences: 24
adamw {}
schedule { peak_learning_rate: 1e-3 }
steps: 10
)";

constexpr const char *machineText = R"(version: 1
name: "host"
nodes: 4
devices_per_node: 4
device {
  name: "core"
  peak_flops { precision: F32 flops: 1e9 }
  memory_bytes: 1048576
  memory_bandwidth_bytes_per_second: 1e9
}
links { name: "bus" scope: NODE latency_seconds: 0 bandwidth_bytes_per_second: 1e9 }
links { name: "net" scope: CLUSTER latency_seconds: 0 bandwidth_bytes_per_second: 1e8 }
)";

constexpr const char *planText = R"(version: 1
mesh {
  axis { name: "a" size: 4 }
  axis { name: "b" size: 4 }
}
sharding { dimension: "batch" axes: ["a"] }
sharding { dimension: "kv_heads" axes: ["b"] }
sharding { dimension: "ffn" axes: ["b"] }
padding: false
)";

/// A plan that nothing speaks against; a case changes some of it.
struct Scene {
  desc::ModelSpec model = *desc::parseModel(modelText, "m");
  desc::RecipeSpec recipe = *desc::parseRecipe(recipeText, "r");
  desc::MachineSpec machine = *desc::parseMachine(machineText, "h");
  desc::PlanSpec plan = *desc::parsePlan(planText, "p");
  PlanRequest request;

  PlanReview review() const { return reviewPlan(model, recipe, machine, plan, request); }
};

std::string lines(const desc::Diagnostics &diagnostics) {
  std::string all;
  for (const desc::Diagnostic &diagnostic : diagnostics) {
    all += diagnostic.rule + ": " + diagnostic.str() + "\n";
  }
  return all;
}

/// A way to violate one rule, and what is then said, all of it.
struct Case {
  const char *rule;
  std::function<void(Scene &)> violate;
  const char *errors;
  const char *warnings = "";
};

const Case cases[] = {
    {"together_r1", [](Scene &scene) { scene.model.maximumLength = 64; },
     "together_r1: r:2:1: sequence_length: expected at most maximum_length 64 of model m, got "
     "128\n"},
    {"together_r2", [](Scene &scene) { scene.machine.device.peakFlopsF32.reset(); },
     "together_r2: r: precision: expected a precision that machine host gives peak_flops for, got "
     "F32\n"},
    {"legal_r1",
     [](Scene &scene) { scene.plan.shardings.push_back({"*", "positions", {"a"}, {}}); },
     "legal_r1: the model has no dimension 'positions', only batch, sequence, keys, kv_heads, "
     "group, "
     "head, ffn, vocab, hidden\n"},
    {"legal_r1", [](Scene &scene) { scene.plan.shardings.push_back({"*", "experts", {"b"}, {}}); },
     "legal_r1: the model has no dimension 'experts', only batch, sequence, keys, kv_heads, group, "
     "head, ffn, vocab, hidden\n"},
    {"legal_r2", [](Scene &scene) { scene.model.ffn = 250; },
     "legal_r2: p:8:1: axes: b=4 does not divide ffn=250, use one of 1, 2, 5, 10\n"},
    {"legal_r3", [](Scene &scene) { scene.machine.nodes = 2; },
     "legal_r3: p:3:3: mesh: a=4 * b=4 need 16 devices, machine host has 8\n"},
    {"legal_r4", [](Scene &scene) { scene.request.ranks = 8; },
     "legal_r4: p:3:3: mesh: a=4 * b=4 are 16 ranks, expected 8, use a=2 or b=2\n"},
    {"legal_r5",
     [](Scene &scene) {
       scene.plan.mayPad = true;
       scene.model.kvHeads = 2;
     },
     "",
     "legal_r5: p:7:1: axes: b=4 does not divide kv_heads=2, which is padded to 4: ranks compute "
     "100 % "
     "more of each value with it, and 2 of 4 shards are padding alone\n"},
    {"legal_r6",
     [](Scene &scene) {
       scene.request.microBatch = 2;
       scene.request.accumulation = 2;
     },
     "legal_r6: p:3:3: mesh: a batch of 24 samples is not a=4 * micro-batch 2 * accumulation 2, "
     "use an "
     "accumulation of 3\n"},
    {"legal_r7", [](Scene &scene) { scene.machine.device.memoryBytes = 100000; },
     "legal_r7: p:3:3: mesh: parameters and optimizer states need at least 0.000123 GB on each of "
     "16 "
     "ranks, device core has 0.0001 GB, use at least 20 ranks\n"},
    // A sum of 24 / 4 * 128 * 64 elements, four for a layer.
    {"legal_r8", [](Scene &scene) { std::swap(scene.plan.mesh[0], scene.plan.mesh[1]); }, "",
     "legal_r8: p:7:1: axes: sums over b=4 cross 4 nodes, 8 times in a step, which "
     "takes "
     "about "
     "0.0236 s; within a node 0.00236 s, where the last axes of the mesh are\n"},
};

TEST(ReviewPlan, NothingSpeaksAgainstAGoodPlan) {
  Scene scene;
  scene.request = {.ranks = 16, .microBatch = 2, .accumulation = 3};
  EXPECT_EQ(lines(scene.review().errors), "");
  EXPECT_EQ(lines(scene.review().warnings), "");
}

TEST(ReviewPlan, SaysEachRuleAlone) {
  for (const Case &one : cases) {
    Scene scene;
    one.violate(scene);
    EXPECT_EQ(lines(scene.review().errors), one.errors) << one.rule;
    EXPECT_EQ(lines(scene.review().warnings), one.warnings) << one.rule;
  }
}

TEST(ReviewPlan, SaysAllRulesAtOnce) {
  Scene scene;
  for (const Case &one : cases) {
    // With padding legal_r2 is no rule, and too many ranks are on no node.
    if (std::string(one.rule) != "legal_r3" && std::string(one.rule) != "legal_r5") {
      one.violate(scene);
    }
  }
  PlanReview review = scene.review();
  for (const Case &one : cases) {
    if (std::string(one.rule) != "legal_r3" && std::string(one.rule) != "legal_r5") {
      std::string all = lines(review.errors) + lines(review.warnings);
      EXPECT_NE(all.find(one.rule), all.npos) << one.rule << " is not in\n" << all;
    }
  }
  scene.plan.mayPad = true;
  scene.machine.nodes = 2;
  scene.model.kvHeads = 2;
  std::string all = lines(scene.review().errors) + lines(scene.review().warnings);
  EXPECT_NE(all.find("legal_r3"), all.npos) << all;
  EXPECT_NE(all.find("legal_r5"), all.npos) << all;
  EXPECT_EQ(all.find("legal_r2"), all.npos) << all;
}

TEST(ReviewPlan, LegalR9SaysWhatPaddingCosts) {
  Scene scene;
  scene.plan.mayPad = true;
  scene.model.ffn = 250;
  EXPECT_EQ(lines(scene.review().errors), "");
  EXPECT_EQ(lines(scene.review().warnings),
            "legal_r9: p:8:1: axes: b=4 does not divide ffn=250, which is padded to 252: ranks "
            "compute 0.8 % more of each value with it\n");
  // For devices, rows of matmuls may need more.
  scene.request.alignsRows = true;
  EXPECT_EQ(lines(scene.review().warnings),
            "legal_r9: p:8:1: axes: b=4 does not divide ffn=250, which is padded to at least 252: "
            "ranks compute at least 0.8 % more of each value with it\n");
}

TEST(ReviewPlan, LegalR5CountsShardsOfPadding) {
  Scene scene;
  scene.plan.mayPad = true;
  scene.model.kvHeads = 5; // Shards of 2, 2, 1 and 0.
  EXPECT_EQ(lines(scene.review().errors), "");
  EXPECT_EQ(lines(scene.review().warnings),
            "legal_r5: p:7:1: axes: b=4 does not divide kv_heads=5, which is padded to 8: ranks "
            "compute 60 % more of each value with it, and 1 of 4 shards is padding alone\n");
}

TEST(ReviewPlan, HomesPadVariablesAlone) {
  Scene scene;
  scene.plan.mayPad = true;
  scene.model.kvHeads = 4;
  // An axis of a home may be larger than a dimension.
  scene.plan.homes.push_back({"*", "kv_heads", {"a", "b"}, {}});
  EXPECT_EQ(lines(scene.review().errors), "");
  EXPECT_EQ(lines(scene.review().warnings),
            "legal_r9: a=4 * b=4 does not divide kv_heads=4, which is padded to 16 between steps: "
            "ranks store 300 % more of each value with it\n");
}

TEST(ReviewPlan, PaddedBatchesHaveNoMicroBatches) {
  Scene scene;
  scene.request.microBatch = 1;
  scene.request.accumulation = 6;
  scene.plan.mayPad = true;
  scene.recipe.globalBatch = 22;
  EXPECT_EQ(lines(scene.review().errors),
            "legal_r6: p:3:3: mesh: a batch of 22 samples is no multiple of a=4, so it cannot be "
            "cut into micro-batches\n");
}

TEST(ReviewPlan, SuggestsOnlyLegalSizes) {
  Scene scene;
  scene.request.ranks = 12;
  // b=3 divides no heads.
  EXPECT_EQ(lines(scene.review().errors),
            "legal_r4: p:3:3: mesh: a=4 * b=4 are 16 ranks, expected 12, use a=3\n");
  scene.request.ranks = 11;
  EXPECT_EQ(lines(scene.review().errors),
            "legal_r4: p:3:3: mesh: a=4 * b=4 are 16 ranks, expected 11\n");
  scene.plan = {};
  EXPECT_EQ(lines(scene.review().errors), "legal_r4: plan: 1 rank, expected 11\n"
                                          "legal_r7: plan: parameters and optimizer states need at "
                                          "least 0.00197 GB on each of 1 rank, device core has "
                                          "0.00105 GB, use at least 2 ranks\n");
}

TEST(ReviewPlan, SaysWhatAMicroBatchDoesNotKnow) {
  const std::string begin = "legal_r10: p:10:1: accumulation: ";
  auto with = [](int64_t accumulation, const std::function<void(Scene &)> &change) {
    Scene scene;
    std::string text = std::string(planText) + "accumulation: " + std::to_string(accumulation);
    scene.plan = *desc::parsePlan(text, "p");
    change(scene);
    return lines(scene.review().errors);
  };
  auto nothing = [](Scene &) {};
  EXPECT_EQ(with(1, nothing) + with(3, nothing) + with(6, nothing), "");
  EXPECT_EQ(with(4, nothing), begin + "a batch of 24 samples does not divide into a=4 * 4 "
                                      "micro-batches, use 3 or 6\n");
  EXPECT_EQ(with(7, nothing), begin + "a batch of 24 samples does not divide into a=4 * 7 "
                                      "micro-batches, use 6\n");
  EXPECT_EQ(with(3,
                 [](Scene &scene) {
                   scene.plan.mayPad = true;
                   scene.recipe.globalBatch = 22;
                 }),
            begin + "a batch of 22 samples is no multiple of a=4, so it cannot be cut into "
                    "micro-batches\n");
  // Other values may be cut otherwise than inputs.
  EXPECT_EQ(with(3,
                 [](Scene &scene) {
                   scene.plan.mayPad = true;
                   scene.plan.shardings.push_back({"mlp*", "batch", {"a", "b"}, {"p", 11, 1}});
                 }),
            "legal_r10: p:11:1: axes: expected axes that divide the 8 samples of a micro-batch, "
            "got a=4 * b=4\n");
  std::string whole = " needs the whole batch, got micro-batches of 8 samples, use an "
                      "accumulation of 1";
  EXPECT_EQ(with(3, [](Scene &scene) { scene.recipe.routing.capacityFactor = 1; }), "");
  EXPECT_EQ(with(3,
                 [](Scene &scene) {
                   scene.recipe.routing.capacityFactor = 1;
                   scene.recipe.routing.capacityGroup = desc::RoutingGroup::GlobalBatch;
                 }),
            begin + "routing.capacity_group: GLOBAL_BATCH" + whole +
                " or a capacity_group of SEQUENCE\n");
  EXPECT_EQ(with(3, [](Scene &scene) { scene.recipe.routing.loadBalanceLoss = 0.1; }),
            begin + "routing.load_balance_group: GLOBAL_BATCH" + whole +
                " or a load_balance_group of SEQUENCE\n");
  EXPECT_EQ(with(3,
                 [](Scene &scene) {
                   scene.model.experts.emplace().selectionBias = true;
                   scene.recipe.routing.biasUpdateSpeed = 0.1;
                 }),
            begin + "routing.bias_update_speed" + whole + "\n");
  EXPECT_EQ(with(3, [](Scene &scene) { scene.recipe.fp8.emplace(); }),
            begin + "fp8 with one scale for each tensor" + whole + " or fp8.scaling: DELAYED\n");
  EXPECT_EQ(with(3, [](Scene &scene) { scene.recipe.fp8.emplace().history = 4; }), "");
  auto group = [](int64_t samples) {
    return [samples](Scene &scene) { scene.model.graph.emplace().batchNormGroup = samples; };
  };
  EXPECT_EQ(with(3, group(3)).find("legal_r10") != std::string::npos, true);
  EXPECT_EQ(with(3, group(4)).find("legal_r10"), std::string::npos);
}

TEST(ReviewPlan, SuggestsTheNearestMicroBatches) {
  Scene scene;
  auto with = [&](int64_t microBatch, int64_t accumulation) {
    scene.request.microBatch = microBatch;
    scene.request.accumulation = accumulation;
    return lines(scene.review().errors);
  };
  EXPECT_EQ(with(6, 1) + with(1, 6) + with(3, 2), "");
  const std::string begin =
      "legal_r6: p:3:3: mesh: a batch of 24 samples is not a=4 * micro-batch ";
  EXPECT_EQ(with(4, 2), begin + "4 * accumulation 2, use a micro-batch of 3 with an accumulation "
                                "of 2 or a micro-batch of 6 with an accumulation of 1\n");
  EXPECT_EQ(with(0, 6), begin + "0 * accumulation 6, use a micro-batch of 1 with an accumulation "
                                "of 6\n");
  EXPECT_EQ(with(100, 1), begin + "100 * accumulation 1, use a micro-batch of 6 with an "
                                  "accumulation of 1\n");
  scene.plan = {};
  scene.machine.device.memoryBytes = 1 << 30;
  EXPECT_EQ(with(24, 2),
            "legal_r6: plan: a batch of 24 samples is not micro-batch 24 * accumulation 2, "
            "use an accumulation of 1\n");
}

TEST(ReviewPlan, CountsTheOptimizersStates) {
  Scene scene;
  // Parameters over 16 ranks, and as much for each state.
  auto fits = [&](int64_t bytes) {
    scene.machine.device.memoryBytes = bytes;
    return lines(scene.review().errors).empty();
  };
  int64_t each = desc::parameterCount(scene.model) * 4 / 16;
  EXPECT_TRUE(fits(3 * each));
  EXPECT_FALSE(fits(3 * each - 1));
  scene.recipe.optimizer = desc::SgdSpec{};
  EXPECT_TRUE(fits(each));
  EXPECT_FALSE(fits(each - 1));
  scene.recipe.optimizer = desc::SgdSpec{.momentum = 0.9};
  EXPECT_TRUE(fits(2 * each));
  EXPECT_FALSE(fits(2 * each - 1));
}

TEST(ReviewPlan, WarnsOfPeaksOfTwoSources) {
  Scene scene;
  scene.recipe.fp8.emplace();
  desc::DeviceSpec &device = scene.machine.device;
  device.measured.matmuls = {{.precision = desc::Precision::BF16, .flops = 7e8}};
  device.peakFlopsBF16 = 7e8;
  device.peakFlopsF8 = 1.96e9;
  EXPECT_EQ(lines(scene.review().warnings),
            "together_r10: machine host has 2.8 times the peak_flops for F8 that it has for BF16, "
            "but measured matmuls for BF16 only: FP8 matmuls are predicted to be as many times "
            "faster, expected peaks of one source, or measured matmuls for F8\n");
  device.peakFlopsF8 = 1.4e9;
  EXPECT_EQ(lines(scene.review().warnings), "");
  device.peakFlopsF8 = 1.96e9;
  device.measured.matmuls.push_back({.precision = desc::Precision::F8, .flops = 1.96e9});
  EXPECT_EQ(lines(scene.review().warnings), "");
  device.measured.matmuls.clear();
  EXPECT_EQ(lines(scene.review().warnings), "");
}

TEST(ReviewPlan, WarnsOfAnAxisThatMakesNoStages) {
  Scene scene;
  auto warningsWith = [&](const std::string &name) {
    scene.plan =
        *desc::parsePlan("version: 1 mesh { axis { name: '" + name + "' size: 8 } }\n", "p");
    return lines(scene.review().warnings);
  };
  EXPECT_EQ(
      warningsWith("pp"),
      "legal_r12: p:1:19: mesh: axis pp=8 makes no pipeline stages: it is an axis like any other, "
      "and each of its ranks computes all layers; for stages leave it out of the mesh, and use "
      "--pin pp=8, or pipeline { stages: 8 } in a plan\n");
  EXPECT_EQ(warningsWith("p"), "");
}

TEST(ReviewPlan, Legal16Stages) {
  auto with = [](const std::string &pipeline) {
    Scene scene;
    scene.plan = *desc::parsePlan("version: 1\naccumulation: 2\n" + pipeline, "p");
    return lines(scene.review().errors);
  };
  EXPECT_EQ(with("pipeline { stages: 2 }"), "");
  EXPECT_EQ(with("pipeline { layers: [1, 1] schedule: GPIPE }"), "");
  EXPECT_EQ(with("pipeline { stages: 3 }"),
            "legal_r16: p:3:1: pipeline: expected at most as many stages as the model's 2 layers, "
            "got 3\n");
  EXPECT_EQ(with("pipeline { stages: 2 chunks: 2 }"),
            "legal_r16: p:3:1: pipeline: expected at most as many chunks of stages as the model's "
            "2 layers, got 4\n");
  EXPECT_EQ(with("pipeline { layers: [2, 1] }"),
            "legal_r16: p:3:1: pipeline.layers: expected stages of together the model's 2 layers, "
            "got 3\n");
  Scene whole;
  whole.plan = *desc::applyPins({"pp=2"});
  EXPECT_EQ(lines(whole.review().errors),
            "legal_r16: --pin: pp: expected at least 2 micro-batches for stages, got 1, use an "
            "accumulation of 2 or more; with M, 2 stages are idle for 1 parts of every M + 1\n");
  Scene graph;
  graph.plan = *desc::applyPins({"pp=2,accumulation=2"});
  graph.model.graph.emplace();
  EXPECT_NE(
      lines(graph.review().errors).find("pp: a graph has no layers that stages could be cut at"),
      std::string::npos);
}

TEST(ReviewPlan, StagesHaveRanksOfTheirOwn) {
  Scene scene;
  ASSERT_EQ(scene.machine.devices(), 16);
  scene.plan = *desc::applyPins({"pp=2,dp=16,accumulation=2"});
  EXPECT_NE(lines(scene.review().errors)
                .find("legal_r3: --pin: 2 stages * dp=16 need 32 devices, machine"),
            std::string::npos)
      << lines(scene.review().errors);
  scene.plan = *desc::applyPins({"pp=20,accumulation=2"});
  EXPECT_NE(lines(scene.review().errors).find("legal_r3: --pin: 20 stages need 20 devices"),
            std::string::npos)
      << lines(scene.review().errors);
}

TEST(ReviewPlan, WarnsOfIdleDevices) {
  Scene scene;
  ASSERT_EQ(scene.machine.devices(), 16);
  auto warningsOf = [&](int64_t ranks) {
    scene.plan = *desc::parsePlan(
        "version: 1 mesh { axis { name: 'b' size: " + std::to_string(ranks) + " } }\n", "p");
    return lines(scene.review().warnings);
  };
  EXPECT_EQ(warningsOf(15),
            "legal_r13: p:1:19: mesh: b=15 uses 15 of the 16 devices of machine host: "
            "1 is idle\n");
  EXPECT_EQ(warningsOf(9), "legal_r13: p:1:19: mesh: b=9 uses 9 of the 16 devices of machine host: "
                           "7 are idle\n");
  EXPECT_EQ(warningsOf(16), "");
  EXPECT_EQ(warningsOf(8), "");
  scene.plan = {};
  EXPECT_EQ(lines(scene.review().warnings), "");
}

TEST(ReviewPlan, WarnsOfGroupsThatFitNoNode) {
  Scene scene;
  scene.plan = *desc::parsePlan("version: 1 mesh { axis { name: 'b' size: 8 } }\n"
                                "sharding { dimension: 'kv_heads' axes: ['b'] }",
                                "p");
  EXPECT_EQ(lines(scene.review().errors), "");
  EXPECT_EQ(lines(scene.review().warnings),
            "legal_r8: p:2:1: axes: sums over b=8 cross 2 nodes, 4 times in a step, which "
            "takes about 0.00786 s; at most 4 ranks are on one node\n");
  // A batch across nodes is nothing unusual.
  scene.plan.shardings[0].dimension = "batch";
  EXPECT_EQ(lines(scene.review().warnings), "");
}

TEST(ReviewPlan, Legal15LayersOfEntries) {
  auto with = [](const std::string &entry) {
    Scene scene;
    scene.plan = *desc::parsePlan(std::string(planText) + entry, "p");
    return lines(scene.review().errors);
  };
  EXPECT_EQ(with("activation { first_layer: 1 last_layer: 1 saving: RECOMPUTED }"), "");
  EXPECT_EQ(with("activation { last_layer: 2 saving: RECOMPUTED }"),
            "legal_r15: p:10:1: last_layer: expected a layer from 0 to 1, got 2\n");
  EXPECT_EQ(with("activation { first_layer: 5 saving: RECOMPUTED }"),
            "legal_r15: p:10:1: first_layer: expected a layer from 0 to 1, got 5\n");
  EXPECT_EQ(with("sharding { dimension: 'ffn' last_layer: 1 }"), "");
  EXPECT_EQ(with("sharding { dimension: 'ffn' last_layer: 2 }"),
            "legal_r15: p:10:1: last_layer: expected a layer from 0 to 1, got 2\n");
  EXPECT_EQ(with("home { dimension: 'ffn' first_layer: 2 }"),
            "legal_r15: p:10:1: first_layer: expected a layer from 0 to 1, got 2\n");
  Scene graph;
  graph.plan.activations = desc::applyPins({"recompute=full"})->activations;
  graph.model.graph.emplace();
  EXPECT_NE(lines(graph.review().errors)
                .find("recompute: a graph has no layers: use entries of a plan with values alone"),
            std::string::npos);
}

} // namespace
