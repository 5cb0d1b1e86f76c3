//===- PinsTest.cpp - short forms of strategies ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Pins.h"

#include "Helpers.h"

using namespace weft::desc;
using namespace weft::desc::test;

static std::string pinErrors(const std::vector<std::string> &pins) {
  return errors(applyPins(pins));
}

TEST(Pins, WriteAPlan) {
  Result<PlanSpec> plan = applyPins({"tp=4", "dp=2"});
  ASSERT_TRUE(bool(plan));
  EXPECT_EQ(printPlan(*plan), R"(version: 1
mesh {
  axis { name: "dp" size: 2 }
  axis { name: "tp" size: 4 }
}
sharding { value: "*" dimension: "batch" axes: ["dp"] }
sharding { value: "*" dimension: "kv_heads" axes: ["tp"] }
sharding { value: "*" dimension: "ffn" axes: ["tp"] }
sharding { value: "*" dimension: "vocab" axes: ["tp"] }
)");
  EXPECT_TRUE(*parsePlan(printPlan(*plan)) == *plan);
  EXPECT_TRUE(*applyPins({"dp=2,tp=4"}) == *plan);
}

TEST(Pins, SizeOneLeavesNoTrace) {
  EXPECT_TRUE(*applyPins({}) == PlanSpec());
  EXPECT_TRUE(*applyPins({"dp=1,tp=1"}) == PlanSpec());
  EXPECT_TRUE(*applyPins({"dp=1", "tp=2"}) == *applyPins({"tp=2"}));
}

TEST(Pins, AccumulationIsNoAxis) {
  Result<PlanSpec> plan = applyPins({"accumulation=8"});
  ASSERT_TRUE(bool(plan));
  EXPECT_EQ(printPlan(*plan), "version: 1\naccumulation: 8\n");
  EXPECT_TRUE(*parsePlan(printPlan(*plan)) == *plan);
  EXPECT_TRUE(*applyPins({"accumulation=1"}) == PlanSpec());
  EXPECT_FALSE(*plan == PlanSpec());
  EXPECT_EQ(pinErrors({"accumulation=0"}),
            "pin_r3: --pin: accumulation: expected a number from 1 to 1048576, got '0'\n");
}

TEST(Pins, RecomputeWritesActivations) {
  auto planOf = [](const char *pin) { return printPlan(*applyPins({pin})); };
  EXPECT_EQ(planOf("recompute=full"),
            "version: 1\nactivation { value: \"*\" first_layer: 0 saving: RECOMPUTED }\n");
  EXPECT_EQ(planOf("recompute=attention"),
            "version: 1\n"
            "activation { value: \"attention*\" first_layer: 0 saving: RECOMPUTED }\n"
            "activation { value: \"attention.output*\" first_layer: 0 saving: KEPT }\n"
            "activation { value: \"attention.residual*\" first_layer: 0 saving: KEPT }\n");
  EXPECT_EQ(planOf("recompute=none"), "version: 1\nactivation { value: \"*\" saving: KEPT }\n");
  EXPECT_EQ(pinErrors({"recompute=some"}),
            "pin_r3: --pin: recompute: expected none, attention, full, got 'some'\n");
  EXPECT_EQ(pinErrors({"recompute=full,recompute=none"}),
            "pin_r2: --pin: recompute: expected at most once, got full and none\n");
}

TEST(Pins, Stages) {
  auto planOf = [](const std::string &pins) {
    Result<PlanSpec> plan = applyPins({pins});
    return plan ? printPlan(*plan) : "illegal";
  };
  EXPECT_EQ(planOf("pp=4"), "version: 1\npipeline { stages: 4 schedule: ONE_F_ONE_B }\n");
  EXPECT_EQ(planOf("pp=2,schedule=gpipe"), "version: 1\npipeline { stages: 2 schedule: GPIPE }\n");
  EXPECT_EQ(planOf("pp=2,schedule=zbh1"), "version: 1\npipeline { stages: 2 schedule: ZB_H1 }\n");
  EXPECT_EQ(applyPins({"pp=3,schedule=zbh1"})->pipeline.chunksWithParts(),
            (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(planOf("pp=2,schedule=zbv"),
            "version: 1\npipeline { stages: 2 chunks: 2 schedule: ZB_V }\n");
  EXPECT_EQ(planOf("pp=2,schedule=zbv,chunks=2"), planOf("pp=2,schedule=zbv"));
  EXPECT_EQ(pinErrors({"pp=2,schedule=zbv,chunks=3"}),
            "pin_r7: --pin: chunks: expected 2 with schedule=zbv, got 3\n");
  EXPECT_EQ(pinErrors({"pp=2,schedule=zbh1,chunks=2"}),
            "pin_r7: --pin: chunks: expected 1 with schedule=zbh1, got 2\n");
  EXPECT_EQ(planOf("pp=2,gather=run"),
            "version: 1\npipeline { stages: 2 schedule: ONE_F_ONE_B gather: RUN }\n");
  EXPECT_EQ(planOf("pp=2,gather=micro-batch"),
            "version: 1\npipeline { stages: 2 schedule: ONE_F_ONE_B gather: MICRO_BATCH }\n");
  EXPECT_EQ(planOf("pp=2,gather=step"), planOf("pp=2"));
  EXPECT_EQ(planOf("pp=1"), "version: 1\n");
  EXPECT_EQ(applyPins({"pp=4,tp=2"})->ranks(), 8);
  EXPECT_EQ(pinErrors({"pp=1025"}),
            "pin_r3: --pin: pp: expected a number from 1 to 1024, got '1025'\n");
  EXPECT_EQ(pinErrors({"pp=2,schedule=zb"}),
            "pin_r3: --pin: schedule: expected 1f1b, gpipe, zbh1, zbv, got 'zb'\n");
  EXPECT_EQ(pinErrors({"pp=2,gather=use"}),
            "pin_r3: --pin: gather: expected step, run, micro-batch, got 'use'\n");
  EXPECT_EQ(pinErrors({"gather=run"}),
            "pin_r5: --pin: gather: expected pp of at least 2 as well, got none\n");
  EXPECT_EQ(pinErrors({"schedule=gpipe"}),
            "pin_r5: --pin: schedule: expected pp of at least 2 as well, got none\n");
  EXPECT_EQ(pinErrors({"dp=524288,pp=4"}),
            "pin_r4: --pin: expected at most 1048576 ranks in all, got at least 2097152\n");
}

TEST(Pins, WithoutDataParallelTheBatchIsWhole) {
  Result<PlanSpec> plan = applyPins({"tp=2"});
  ASSERT_TRUE(bool(plan));
  EXPECT_EQ(axesFor(plan->shardings, "tokens", "batch"), std::vector<std::string>{});
}

TEST(Pins, R1Names) {
  EXPECT_EQ(pinErrors({"tq=2"}), "pin_r1: --pin: unknown name 'tq', did you mean 'tp'?\n");
  EXPECT_EQ(pinErrors({"zero3=2"}), "pin_r1: --pin: unknown name 'zero3', did you mean 'zero'?\n");
  EXPECT_EQ(pinErrors({"dp"}), "pin_r1: --pin: expected name=value as in dp=2, got 'dp'\n");
  EXPECT_EQ(pinErrors({""}), "pin_r1: --pin: expected name=value as in dp=2, got ''\n");
  EXPECT_EQ(pinErrors({"dp=2,"}), "pin_r1: --pin: expected name=value as in dp=2, got ''\n");
  EXPECT_EQ(pinErrors({"=2"}),
            "pin_r1: --pin: unknown name ''; names are dp, fsdp, ep, tp, cp, sp, zero, "
            "accumulation, recompute, pp, schedule, chunks, gather\n");
}

TEST(Pins, R2Repeated) {
  EXPECT_EQ(pinErrors({"dp=2,dp=4"}), "pin_r2: --pin: dp: expected at most once, got 2 and 4\n");
  EXPECT_EQ(pinErrors({"dp=1", "dp=1"}), "pin_r2: --pin: dp: expected at most once, got 1 and 1\n");
}

TEST(Pins, R3Sizes) {
  for (std::string size : {"", "0", "-2", "two", "2x", "2.0", " 2", "+2", "0x2", "1048577",
                           "99999999999999999999", "-99999999999999999999"}) {
    EXPECT_EQ(pinErrors({"tp=" + size}),
              "pin_r3: --pin: tp: expected a number from 1 to 1048576, got '" + size + "'\n");
  }
}

TEST(Pins, R4Ranks) {
  EXPECT_EQ(pinErrors({"dp=1048576,tp=2"}),
            "pin_r4: --pin: expected at most 1048576 ranks in all, got at least 2097152\n");
}

TEST(Pins, R3Switches) {
  EXPECT_EQ(pinErrors({"tp=2,sp=1"}), "pin_r3: --pin: sp: expected true or false, got '1'\n");
  EXPECT_EQ(pinErrors({"dp=2,zero=4"}),
            "pin_r3: --pin: zero: expected a number from 0 to 3, got '4'\n");
}

TEST(Pins, R3Modes) {
  const std::string range = "expected a number from 1 to 1048576, then nothing or :ring, :gather, "
                            ":all-to-all, got ";
  for (std::string text : {"2:", "2:rings", ":ring", "2:ring:ring", "0:ring"}) {
    EXPECT_EQ(pinErrors({"cp=" + text}), "pin_r3: --pin: cp: " + range + "'" + text + "'\n");
  }
  EXPECT_EQ(pinErrors({"tp=2:ring"}),
            "pin_r3: --pin: tp: expected a number from 1 to 1048576, got '2:ring'\n");
}

TEST(Pins, Context) {
  using Axes = std::vector<std::string>;
  PlanSpec ring = *applyPins({"cp=2:ring"}), gather = *applyPins({"cp=2:gather"});
  EXPECT_EQ(axesFor(ring.shardings, "attention", "keys"), Axes{"cp"});
  EXPECT_EQ(axesFor(gather.shardings, "attention", "keys"), Axes{});
  EXPECT_EQ(axesFor(gather.shardings, "attention", "sequence"), Axes{"cp"});
  EXPECT_EQ(axesFor(applyPins({"cp=2"})->shardings, "attention", "keys"), std::nullopt);
  PlanSpec heads = *applyPins({"cp=2:all-to-all,tp=4,sp=true"});
  EXPECT_EQ(heads.mesh[0].name, "cp");
  EXPECT_EQ(axesFor(heads.shardings, "attention", "sequence"), Axes{});
  EXPECT_EQ(axesFor(heads.shardings, "attention", "kv_heads"), (Axes{"tp", "cp"}));
  EXPECT_EQ(axesFor(heads.shardings, "attention.query", "kv_heads"), Axes{"tp"});
  EXPECT_EQ(axesFor(heads.shardings, "mlp_norm", "sequence"), (Axes{"cp", "tp"}));
}

TEST(Pins, Experts) {
  using Axes = std::vector<std::string>;
  PlanSpec plan = *applyPins({"ep=2,dp=4"});
  EXPECT_EQ(axesFor(plan.shardings, "tokens", "batch"), (Axes{"dp", "ep"}));
  EXPECT_EQ(axesFor(plan.shardings, "experts.up", "experts"), Axes{"ep"});
  EXPECT_EQ(axesFor(plan.shardings, "layers.3.experts.up.weight", "experts"), Axes{"ep"});
  EXPECT_EQ(axesFor(plan.shardings, "layers.3.router.weight", "experts"), std::nullopt);
}

TEST(Pins, ShardedData) {
  using Axes = std::vector<std::string>;
  PlanSpec hybrid = *applyPins({"fsdp=4,dp=2"});
  EXPECT_EQ(hybrid.mesh[0].name, "dp"); // Groups are of neighbours.
  EXPECT_EQ(axesFor(hybrid.shardings, "tokens", "batch"), (Axes{"dp", "fsdp"}));
  EXPECT_EQ(axesFor(hybrid.homes, "layers.0.mlp.up.weight", "hidden"), Axes{"fsdp"});
  EXPECT_EQ(axesFor(hybrid.homes, "adam_m/layers.0.mlp.up.weight", "hidden"), Axes{"fsdp"});
  EXPECT_TRUE(*applyPins({"dp=2,fsdp=4,zero=3"}) == hybrid);
  PlanSpec states = *applyPins({"dp=2,fsdp=4,zero=1"});
  EXPECT_EQ(axesFor(states.homes, "layers.0.mlp.up.weight", "hidden"), Axes{});
  EXPECT_EQ(axesFor(states.homes, "adam_m/layers.0.mlp.up.weight", "hidden"), Axes{"fsdp"});
  EXPECT_TRUE(*applyPins({"dp=2,fsdp=1"}) == *applyPins({"dp=2"}));
}

TEST(Pins, R5WhatTheyNeed) {
  EXPECT_EQ(pinErrors({"tp=1,sp=true"}),
            "pin_r5: --pin: sp: expected tp of at least 2 as well, got none\n");
  EXPECT_EQ(pinErrors({"zero=1,tp=2"}),
            "pin_r5: --pin: zero: expected dp or fsdp or cp of at least 2 as well, got none\n");
  // What asks for nothing needs nothing.
  EXPECT_EQ(pinErrors({"zero=0", "sp=false"}), "");
}

TEST(Pins, R6BesideMesh) {
  Result<PlanSpec> plan = applyPins(
      {"accumulation=4,recompute=full,pp=2,schedule=gpipe,chunks=3,gather=run"}, "a=2,b=4");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->accumulation, 4);
  EXPECT_EQ(plan->activations.size(), 1u);
  EXPECT_EQ(plan->ranks(), 16);
  EXPECT_EQ(plan->pipeline.schedule, PipelineSchedule::GPipe);
  EXPECT_EQ(plan->pipeline.chunks, 3);
  EXPECT_EQ(plan->pipeline.gather, GatherPeriod::Run);
  EXPECT_TRUE(plan->shardings.empty());
  EXPECT_NE(errors(applyPins({"zero=0"}, "dp=2"))
                .find("pin_r6: --pin: zero: expected no pins but accumulation, recompute, pp, "),
            std::string::npos);
  EXPECT_NE(errors(applyPins({}, "dp=1")).find("plan_r3"), std::string::npos);
}

TEST(Pins, SequenceParallel) {
  Result<PlanSpec> plan = applyPins({"tp=2,sp=true"});
  ASSERT_TRUE(bool(plan));
  EXPECT_EQ(axesFor(plan->shardings, "mlp_norm", "sequence"), std::vector<std::string>{"tp"});
  EXPECT_EQ(axesFor(plan->shardings, "attention.residual", "sequence"),
            std::vector<std::string>{"tp"});
  EXPECT_EQ(axesFor(plan->shardings, "attention", "sequence"), std::nullopt);
  plan = applyPins({"tp=2,sp=false"});
  EXPECT_EQ(axesFor(plan->shardings, "mlp_norm", "sequence"), std::vector<std::string>{});
  EXPECT_EQ(axesFor(plan->shardings, "mlp_norm", "hidden"), std::vector<std::string>{});
}

TEST(Pins, StatesAndParametersAtHome) {
  using Axes = std::vector<std::string>;
  const std::vector<std::pair<Axes, Axes>> homes = {
      {{}, {}}, {{}, {"dp"}}, {{}, {"dp"}}, {{"dp"}, {"dp"}}};
  for (int stage = 0; stage < 4; ++stage) {
    Result<PlanSpec> plan = applyPins({"dp=2,zero=" + std::to_string(stage)});
    ASSERT_TRUE(bool(plan));
    EXPECT_EQ(axesFor(plan->homes, "head.weight", "hidden"), homes[stage].first) << stage;
    EXPECT_EQ(axesFor(plan->homes, "adam_m/head.weight", "hidden"), homes[stage].second) << stage;
    EXPECT_EQ(axesFor(plan->homes, "master/head.weight", "hidden"), homes[stage].second) << stage;
    Axes sums = stage >= 2 ? Axes{"dp"} : Axes{};
    EXPECT_EQ(axesFor(plan->homes, "gradient/head.weight", "hidden"), sums) << stage;
    EXPECT_EQ(axesFor(plan->homes, "adam_m/head.weight", "vocab"), Axes{}) << stage;
    EXPECT_TRUE(*parsePlan(printPlan(*plan)) == *plan) << stage;
  }
}

TEST(Pins, AllErrorsAreListed) {
  EXPECT_EQ(applyPins({"dp=0,tp=x", "qq=2"}).diagnostics().size(), 3u);
}
