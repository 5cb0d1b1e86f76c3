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

TEST(Pins, R1Names) {
  EXPECT_EQ(pinErrors({"tq=2"}), "pin_r1: --pin: unknown name 'tq', did you mean 'tp'?\n");
  EXPECT_EQ(pinErrors({"zero3=2"}), "pin_r1: --pin: unknown name 'zero3'; names are dp, tp\n");
  EXPECT_EQ(pinErrors({"dp"}), "pin_r1: --pin: expected name=size as in dp=2, got 'dp'\n");
  EXPECT_EQ(pinErrors({""}), "pin_r1: --pin: expected name=size as in dp=2, got ''\n");
  EXPECT_EQ(pinErrors({"dp=2,"}), "pin_r1: --pin: expected name=size as in dp=2, got ''\n");
  EXPECT_EQ(pinErrors({"=2"}), "pin_r1: --pin: unknown name ''; names are dp, tp\n");
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
            "pin_r4: --pin: expected at most 1048576 ranks in all, got 2097152\n");
}

TEST(Pins, AllErrorsAreListed) {
  EXPECT_EQ(applyPins({"dp=0,tp=x", "pp=2"}).diagnostics().size(), 3u);
}
