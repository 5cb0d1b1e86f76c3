//===- PlanTest.cpp - rules, text and hash of plans -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Plan.h"
#include "weft/Description/LayerKinds.h"

#include "Helpers.h"

using namespace weft::desc;
using namespace weft::desc::test;

static std::string changed(const std::string &from, const std::string &to) {
  return errors(parsePlan(with(planText, from, to), "p"));
}

TEST(Plan, IsRead) {
  Result<PlanSpec> plan = parsePlan(planText, "p");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  ASSERT_EQ(plan->mesh.size(), 2u);
  EXPECT_EQ(plan->mesh[1].name, "tp");
  EXPECT_EQ(plan->ranks(), 8);
  EXPECT_EQ(plan->axis("tp")->size, 4);
  EXPECT_EQ(plan->axis("pp"), nullptr);
  ASSERT_EQ(plan->shardings.size(), 3u);
  EXPECT_EQ(plan->shardings[2].value, "layers.*.mlp.*");
  EXPECT_EQ(plan->shardings[2].axes, (std::vector<std::string>{"dp", "tp"}));
  EXPECT_EQ(plan->shardings[2].location.line, 8);
  EXPECT_EQ(plan->mesh[0].location.line, 3);
}

TEST(Plan, EmptyPlanIsOneRank) {
  Result<PlanSpec> plan = parsePlan("version: 1");
  ASSERT_TRUE(bool(plan));
  EXPECT_EQ(plan->ranks(), 1);
  EXPECT_EQ(printPlan(*plan), "version: 1\n");
}

TEST(Plan, PrintsWhatItParsed) {
  Result<PlanSpec> plan = parsePlan(planText);
  EXPECT_EQ(printPlan(*plan), planText);
  EXPECT_TRUE(*parsePlan(printPlan(*plan)) == *plan);
  // Other spellings of the same plan have the same canonical text and hash.
  Result<PlanSpec> other = parsePlan(R"(# a comment
    version: 1 mesh { axis: [{ size: 2, name: 'dp' }, { name: "t" "p" size: 4 }] }
    sharding { dimension: "batch" axes: "dp" } sharding { axes: "tp" dimension: "kv_heads" }
    sharding { value: "layers.*.mlp.*" dimension: "ffn" axes: "dp" axes: "tp" })");
  ASSERT_TRUE(bool(other)) << errors(other);
  EXPECT_TRUE(*other == *plan);
  EXPECT_EQ(hashPlan(*other), hashPlan(*plan));
}

TEST(Plan, MayRefusePadding) {
  Result<PlanSpec> plan = parsePlan(std::string(planText) + "padding: false\n");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  EXPECT_FALSE(plan->mayPad);
  EXPECT_EQ(printPlan(*plan), std::string(planText) + "padding: false\n");
  EXPECT_FALSE(*plan == *parsePlan(planText));
  EXPECT_TRUE(*parsePlan(std::string(planText) + "padding: true") == *parsePlan(planText));
}

TEST(Plan, HashIsStable) {
  // FNV-1a of "version: 1\n" and of planText, computed by a separate script. A change here means
  // that plans of earlier versions get other names.
  EXPECT_EQ(hashPlan(PlanSpec()), "248c57ca18116db2");
  EXPECT_EQ(hashPlan(*parsePlan(planText)), "6e54f2637ff16adb");
  EXPECT_NE(hashPlan(*parsePlan(with(planText, "size: 4", "size: 2"))),
            hashPlan(*parsePlan(planText)));
}

TEST(Plan, Patterns) {
  EXPECT_TRUE(matchesPattern("*", ""));
  EXPECT_TRUE(matchesPattern("*", "head.weight"));
  EXPECT_TRUE(matchesPattern("layers.*.mlp.*", "layers.11.mlp.up.weight"));
  EXPECT_TRUE(matchesPattern("*a*b", "aabab"));
  EXPECT_TRUE(matchesPattern("a**", "a"));
  EXPECT_FALSE(matchesPattern("layers.*.bias", "layers.0.mlp.up.weight"));
  EXPECT_FALSE(matchesPattern("", "a"));
  EXPECT_FALSE(matchesPattern("a", ""));
  EXPECT_FALSE(matchesPattern("a*b", "a"));
  // Quadratic at worst, not exponential.
  EXPECT_FALSE(matchesPattern("*a*a*a*a*a*a*a*a*a*a*a*ab", std::string(20000, 'a')));
}

TEST(Plan, LastMatchingShardingHolds) {
  PlanSpec plan = *parsePlan(planText + "sharding { dimension: \"ffn\" axes: \"tp\" }");
  using Axes = std::vector<std::string>;
  EXPECT_EQ(axesFor(plan.shardings, "layers.0.mlp.up.weight", "ffn"), Axes{"tp"});
  plan.shardings.pop_back();
  EXPECT_EQ(axesFor(plan.shardings, "layers.0.mlp.up.weight", "ffn"), (Axes{"dp", "tp"}));
  EXPECT_EQ(axesFor(plan.shardings, "other", "ffn"), std::nullopt);
  EXPECT_EQ(axesFor(plan.shardings, "tokens", "batch"), Axes{"dp"});
}

TEST(Plan, StrongestMatchingShardingHolds) {
  std::string text = planText +
                     "sharding { value: \"*\" dimension: \"hidden\" axes: [\"tp\"] }\n"
                     "sharding { value: \"head.*\" dimension: \"hidden\" priority: 2 }\n";
  Result<PlanSpec> plan = parsePlan(text, "p");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  EXPECT_EQ(printPlan(*plan), text);
  using Axes = std::vector<std::string>;
  EXPECT_EQ(axesFor(plan->shardings, "head.weight", "hidden"), Axes{"tp"});
  PlanSpec other = *plan;
  std::swap(other.shardings.back().priority, other.shardings[other.shardings.size() - 2].priority);
  EXPECT_FALSE(other == *plan);
  EXPECT_NE(hashPlan(other), hashPlan(*plan));
  EXPECT_EQ(axesFor(other.shardings, "head.weight", "hidden"), Axes{});
  EXPECT_EQ(axesFor(other.shardings, "embed.tokens.weight", "hidden"), Axes{"tp"});
  EXPECT_EQ(describeEntry(plan->shardings.back()),
            "p:10:1: { value: \"head.*\" dimension: \"hidden\" priority: 2 }");
}

TEST(Plan, HomesArePrintedAndChecked) {
  std::string text = planText + "home { value: \"*/*\" dimension: \"hidden\" axes: [\"dp\"] }\n"
                                "home { value: \"head.*\" dimension: \"hidden\" }\n";
  Result<PlanSpec> plan = parsePlan(text, "p");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  EXPECT_EQ(printPlan(*plan), text);
  EXPECT_FALSE(*plan == *parsePlan(planText));
  EXPECT_EQ(axesFor(plan->homes, "head.weight", "hidden"), std::vector<std::string>{});
  EXPECT_EQ(errors(parsePlan(planText + "home { dimension: \"hiden\" axes: \"pp\" }", "p")),
            "plan_r6: p:9:8: home[0].dimension: unknown dimension 'hiden', did you mean 'hidden'?\n"
            "plan_r7: p:9:27: home[0].axes[0]: unknown axis 'pp', did you mean 'dp'?\n");
}

TEST(Plan, MeshAlone) {
  Result<PlanSpec> plan = parseMesh("dp=2,tp=04");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  EXPECT_EQ(printPlan(*plan), "version: 1\nmesh {\n  axis { name: \"dp\" size: 2 }\n"
                              "  axis { name: \"tp\" size: 4 }\n}\n");
  EXPECT_EQ(parseMesh("dp=2,tp=2x4")->parts().text(), "dp=2 tp=2x4");
  EXPECT_EQ(errors(parseMesh("tp=1048576x1048576x2")),
            "plan_r3: --mesh: mesh.axis[0].size: expected a number from 2 to 1048576, got "
            "2097152\n");
  for (std::string text : {"", "dp", "dp=", "dp=2,", "dp=-2", "dp=2x", "dp=x2", "dp=2xx2", "dp\"=2",
                           "dp=9999999999999999999"}) {
    size_t comma = text.rfind(',');
    std::string axis = comma == std::string::npos ? text : text.substr(comma + 1);
    EXPECT_EQ(errors(parseMesh(text)),
              "plan_r2: --mesh: expected name=size as in dp=2,tp=4, got '" + axis + "'\n");
  }
  EXPECT_NE(errors(parseMesh("2d=2")).find("expected a letter first"), std::string::npos);
  EXPECT_NE(errors(parseMesh("a=2,a=2")).find("expected a name of its own"), std::string::npos);
  EXPECT_NE(errors(parseMesh("a=1")).find("plan_r3"), std::string::npos);
}

TEST(Plan, R1Version) {
  EXPECT_EQ(changed("version: 1\n", ""),
            "plan_r1: p: version: missing required field, expected 'version: 1'\n");
}

TEST(Plan, R2AxisNames) {
  EXPECT_EQ(changed("name: \"dp\" size: 2", "size: 2"),
            "plan_r2: p:3:3: mesh.axis[0].name: missing required field\n"
            "plan_r7: p:6:42: sharding[0].axes[0]: unknown axis 'dp', did you mean 'tp'?\n"
            "plan_r7: p:8:53: sharding[2].axes[0]: unknown axis 'dp', did you mean 'tp'?\n");
  EXPECT_EQ(errors(parsePlan("version: 1 mesh { axis { name: '2d' size: 2 } }", "p")),
            "plan_r2: p:1:26: mesh.axis[0].name: expected a letter first, got '2d'\n");
  EXPECT_EQ(errors(parsePlan("version: 1 mesh { axis { name: 'a.b' size: 2 } }", "p")),
            "plan_r2: p:1:26: mesh.axis[0].name: expected 1 to 64 letters, digits or any of '_', "
            "got 'a.b'\n");
  EXPECT_EQ(errors(parsePlan("version: 1 mesh { axis { name: 'a' size: 2 }\n"
                             "axis { name: 'a' size: 2 } }",
                             "p")),
            "plan_r2: p:2:8: mesh.axis[1].name: expected a name of its own, got 'a' a second "
            "time\n");
}

TEST(Plan, R3AxisSizes) {
  EXPECT_EQ(changed("size: 2", "size: 1"),
            "plan_r3: p:3:21: mesh.axis[0].size: expected a number from 2 to 1048576, got 1\n");
  EXPECT_EQ(changed("size: 2", ""), "plan_r3: p:3:3: mesh.axis[0].size: missing required field\n");
}

TEST(Plan, R4MeshSize) {
  EXPECT_EQ(
      changed("size: 2", "size: 1048576"),
      "plan_r4: p:4:21: mesh.axis[1].size: expected at most 1048576 ranks in the mesh, got at "
      "least 4194304\n");
  // Many large axes do not overflow the product.
  std::string axes;
  for (char c = 'a'; c <= 'z'; ++c) {
    axes += std::string("axis { name: '") + c + "' size: 1048576 }";
  }
  EXPECT_EQ(parsePlan("version: 1 mesh {" + axes + "}").diagnostics().size(), 1u);
}

TEST(Plan, R5Values) {
  EXPECT_EQ(changed("layers.*.mlp.*", "layers[0]"),
            "plan_r5: p:8:12: sharding[2].value: expected 1 to 256 letters, digits or any of "
            "'._/-*', got 'layers[0]'\n");
}

TEST(Plan, R6Dimensions) {
  EXPECT_EQ(changed("dimension: \"kv_heads\"", "dimension: \"heads\""),
            "plan_r6: p:7:23: sharding[1].dimension: unknown dimension 'heads', did you mean "
            "'head'?\n");
  EXPECT_EQ(changed("dimension: \"kv_heads\"", "dimension: \"rows\""),
            "plan_r6: p:7:23: sharding[1].dimension: unknown dimension 'rows'; dimensions are "
            "batch, sequence, kv_heads, group, head, ffn, vocab, hidden, positions, "
            "experts, keys\n");
  // Of operations, what the rule calls by a number and what is pending; of variables, only the
  // number.
  for (const char *name : {"factor0", "factor12", "terms", "terms3", "d2"}) {
    EXPECT_EQ(changed("\"kv_heads\"", "\"" + std::string(name) + "\""), "");
    std::string home = planText + "home { dimension: \"" + name + "\" }";
    bool isOfHomes = std::string_view(name) == "d2" || std::string_view(name) == "terms";
    EXPECT_EQ(bool(parsePlan(home)), isOfHomes) << name;
  }
  for (const char *name : {"factor", "factor123", "terms-1", "d", "dx"}) {
    EXPECT_NE(changed("\"kv_heads\"", "\"" + std::string(name) + "\""), "") << name;
  }
  EXPECT_EQ(changed("dimension: \"kv_heads\"", ""),
            "plan_r6: p:7:1: sharding[1].dimension: missing required field\n");
}

TEST(Plan, R7Axes) {
  EXPECT_EQ(changed("[\"dp\", \"tp\"]", "[\"dp\", \"dp\"]"),
            "plan_r7: p:8:53: sharding[2].axes[1]: expected an axis at most once, got 'dp' "
            "again\n");
  // None: the dimension is whole.
  EXPECT_EQ(changed("axes: [\"tp\"]", "axes: []"), "");
  EXPECT_EQ(
      changed("axes: [\"tp\"]", "axes: \"pipeline\""),
      "plan_r7: p:7:45: sharding[1].axes[0]: unknown axis 'pipeline'; the mesh's axes are dp, "
      "tp\n");
  EXPECT_EQ(errors(parsePlan("version: 1 sharding { dimension: 'ffn' axes: 'tp' }", "p")),
            "plan_r7: p:1:40: sharding[0].axes[0]: unknown axis 'tp'; the mesh has no axes\n");
}

/// A plan with an axis "tp" of 12 and this list of axes for ffn, then `rest`.
static std::string splitPlan(const std::string &axes, const std::string &rest = "") {
  return "version: 1 mesh { axis { name: 'dp' size: 2 } axis { name: 'tp' size: 12 } }\n"
         "sharding { dimension: 'ffn' axes: [" +
         axes + "] }" + rest;
}

TEST(Plan, R7SubAxes) {
  EXPECT_EQ(errors(parsePlan(splitPlan("'tp', 'tp:(1)2'"), "p")),
            "plan_r7: p:2:29: sharding[0].axes[1]: expected an axis at most once, got 'tp:(1)2' "
            "again\n");
  EXPECT_EQ(errors(parsePlan(splitPlan("'tp:(1)4', 'tp:(2)2'"), "p")),
            "plan_r7: p:2:29: sharding[0].axes[1]: expected an axis at most once, got 'tp:(2)2' "
            "again\n");
  EXPECT_EQ(errors(parsePlan(splitPlan("'xp:(1)2'"), "p")),
            "plan_r7: p:2:29: sharding[0].axes[0]: unknown axis 'xp:(1)2', did you mean 'dp'?\n");
}

TEST(Plan, R11SubAxesOfTheMesh) {
  auto errorsOf = [](const std::string &parts) {
    return errors(parsePlan(
        "version: 1 mesh { axis { name: 'tp' size: 12 sub_axes: [" + parts + "] } }", "p"));
  };
  EXPECT_EQ(errorsOf("2, 3, 2"), "");
  EXPECT_EQ(errorsOf("12"), "");
  EXPECT_EQ(
      errorsOf("2, 5"),
      "plan_r11: p:1:46: mesh.axis[0].sub_axes[1]: 2 * 5 does not divide the axis's size 12\n");
  EXPECT_EQ(errorsOf("2, 3"),
            "plan_r11: p:1:46: mesh.axis[0].sub_axes: expected sizes whose product "
            "is the axis's size 12, got 6\n");
  EXPECT_EQ(errorsOf("12, 1"),
            "plan_r11: p:1:46: mesh.axis[0].sub_axes[1]: expected a size of at least 2, got 1\n");
  EXPECT_EQ(errorsOf("9223372036854775807"),
            "plan_r11: p:1:46: mesh.axis[0].sub_axes[0]: expected at most 1048576, got "
            "9223372036854775807\n");
}

TEST(Plan, R12SubAxesOfEntries) {
  EXPECT_EQ(
      errors(parsePlan(splitPlan("'tp:(1)5'"), "p")),
      "plan_r12: p:2:29: sharding[0].axes[0]: no sub-axis 'tp:(1)5': 1 * 5 does not divide the "
      "axis's size 12\n");
  EXPECT_EQ(errors(parsePlan(splitPlan("'tp:(2)1'"), "p")),
            "plan_r12: p:2:29: sharding[0].axes[0]: no sub-axis 'tp:(2)1': expected a size of at "
            "least 2, got 1\n");
  EXPECT_EQ(errors(parsePlan(
                splitPlan("'tp:(1)2'", "\nhome { dimension: 'ffn' axes: ['tp:(1)3'] }"), "p")),
            "plan_r12: p:3:25: home[0].axes[0]: no sub-axis 'tp:(1)3': the axis is also split into "
            "2 * 6, which 3 * 4 crosses\n");
}

TEST(Plan, SubAxesSplitTheMesh) {
  Result<PlanSpec> plan =
      parsePlan(splitPlan("'tp:(1)2', 'dp'", "home { dimension: 'ffn' axes: ['tp'] }"), "p");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  // The parts are axes of their own; only the text joins them.
  EXPECT_EQ(plan->parts().partNames(), (std::vector<std::string>{"dp", "tp:(1)2", "tp:(2)6"}));
  EXPECT_EQ(plan->ranks(), 24);
  EXPECT_EQ(plan->axis("tp:(2)6")->size, 6);
  EXPECT_EQ(plan->homes[0].axes, (std::vector<std::string>{"tp:(1)2", "tp:(2)6"}));
  EXPECT_EQ(printPlan(*plan), R"(version: 1
mesh {
  axis { name: "dp" size: 2 }
  axis { name: "tp" size: 12 sub_axes: [2, 6] }
}
sharding { value: "*" dimension: "ffn" axes: ["tp:(1)2", "dp"] }
home { value: "*" dimension: "ffn" axes: ["tp"] }
)");
  EXPECT_TRUE(*parsePlan(printPlan(*plan)) == *plan);
}

TEST(Plan, PartsFollowTheirSizes) {
  PlanSpec plan = *parsePlan(splitPlan("'tp:(2)6'"));
  plan.mesh[1].size = 3;
  plan = renameParts(plan);
  EXPECT_EQ(plan.parts().partNames(), (std::vector<std::string>{"dp", "tp:(1)3", "tp:(3)6"}));
  EXPECT_EQ(plan.shardings[0].axes, std::vector<std::string>{"tp:(3)6"});
}

TEST(Plan, R8Duplicates) {
  EXPECT_EQ(errors(parsePlan(planText + "sharding { dimension: 'batch' axes: 'tp' }", "p")),
            "plan_r8: p:9:12: sharding[3].dimension: expected one entry for a value, a dimension "
            "and layers, got a second one for value '*' and dimension 'batch'\n");
  const std::string some = planText + "sharding { dimension: 'batch' last_layer: 1 }\n";
  EXPECT_EQ(errors(parsePlan(some)), "");
  EXPECT_EQ(
      errors(parsePlan(some + "sharding { dimension: 'batch' axes: 'tp' last_layer: 1 }", "p")),
      "plan_r8: p:10:12: sharding[4].dimension: expected one entry for a value, a dimension "
      "and layers, got a second one for value '*' and dimension 'batch' with last_layer: 1\n");
}

TEST(Plan, R9Accumulation) {
  EXPECT_EQ(errors(parsePlan("version: 1\naccumulation: 0", "p")),
            "plan_r9: p:2:1: accumulation: expected a number from 1 to 1048576, got 0\n");
  EXPECT_EQ(parsePlan("version: 1")->accumulation, 1);
}

TEST(Plan, R10Priority) {
  std::string entry = planText + "home { dimension: \"hidden\" axes: \"dp\" priority: ";
  EXPECT_EQ(errors(parsePlan(entry + "-1 }", "p")),
            "plan_r10: p:9:39: home[0].priority: expected a number from 0 to 1000, got -1\n");
  EXPECT_EQ(errors(parsePlan(entry + "1001 }", "p")),
            "plan_r10: p:9:39: home[0].priority: expected a number from 0 to 1000, got 1001\n");
}

TEST(Plan, R13Activations) {
  const std::string text = R"(version: 1
activation { value: "*" saving: RECOMPUTED }
activation { value: "mlp.up/contract/1" first_layer: 2 last_layer: 4 saving: KEPT }
)";
  Result<PlanSpec> plan = parsePlan(text);
  ASSERT_TRUE(bool(plan));
  EXPECT_EQ(printPlan(*plan), text);
  EXPECT_FALSE(*plan == PlanSpec());
  const ActivationSpec &all = plan->activations[0], &some = plan->activations[1];
  EXPECT_TRUE(all.layers.has(0) && all.layers.has(std::nullopt));
  EXPECT_TRUE(some.layers.has(2) && some.layers.has(4));
  EXPECT_FALSE(some.layers.has(1) || some.layers.has(5) || some.layers.has(std::nullopt));

  auto errorsOf = [](const std::string &fields) {
    return errors(parsePlan("version: 1\nactivation { " + fields + " }", "p"));
  };
  EXPECT_EQ(errorsOf("value: \"*\""),
            "plan_r13: p:2:1: activation[0].saving: missing required field\n");
  EXPECT_EQ(errorsOf("value: \"a b\" saving: KEPT").substr(0, 35),
            "plan_r5: p:2:14: activation[0].valu");
  EXPECT_EQ(
      errorsOf("first_layer: -1 saving: KEPT"),
      "plan_r13: p:2:14: activation[0].first_layer: expected a number from 0 to 1023, got -1\n");
  EXPECT_EQ(
      errorsOf("first_layer: 3 last_layer: 2 saving: KEPT"),
      "plan_r13: p:2:29: activation[0].last_layer: expected at least first_layer, 3, got 2\n");
}

TEST(Plan, R13LayersOfShardings) {
  const std::string text = planText +
                           R"(sharding { value: "*" dimension: "batch" axes: ["dp"] first_layer: 2 }
sharding { value: "*" dimension: "ffn" first_layer: 2 last_layer: 4 priority: 3 }
home { value: "*" dimension: "hidden" axes: ["tp"] last_layer: 4 }
)";
  Result<PlanSpec> plan = parsePlan(text, "p");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  EXPECT_EQ(printPlan(*plan), text);
  PlanSpec other = *plan;
  other.homes[0].layers.last = 5;
  EXPECT_FALSE(other == *plan);
  EXPECT_NE(hashPlan(other), hashPlan(*plan));
  EXPECT_EQ(layerBorders(*plan), (std::vector<int64_t>{2, 5}));
  EXPECT_TRUE(layerBorders(PlanSpec()).empty());
  EXPECT_EQ(layerKinds(PlanSpec()), (std::vector<LayerKind>{{{0, std::nullopt}}}));

  for (const std::string field : {"sharding", "home"}) {
    auto errorsOf = [&](const std::string &fields) {
      return errors(
          parsePlan("version: 1\n" + field + " { dimension: 'ffn' " + fields + " }", "p"));
    };
    const std::string entry = field + "[0].", column = field == "home" ? "25" : "29";
    EXPECT_EQ(errorsOf("first_layer: 1024"),
              "plan_r13: p:2:" + column + ": " + entry +
                  "first_layer: expected a number from 0 to 1023, got 1024\n");
    EXPECT_NE(errorsOf("first_layer: 3 last_layer: 2")
                  .find(entry + "last_layer: expected at least first_layer, 3, got 2\n"),
              std::string::npos);
  }
}

TEST(Plan, LayersOfTheSameEntriesAreOfAKind) {
  // Layers 0 to 3 and 8 have one kind; entries that say the same may stand at several places.
  const std::vector<ShardingSpec> some = {{"*", "ffn", {"b"}, {}, 0, {4, 5}},
                                          {"*", "ffn", {"b"}, {}, 0, {6, 7}},
                                          {"*", "ffn", {"b"}, {}, 0, {9, 10}},
                                          {"*", "ffn", {"c"}, {}, 0, {11, std::nullopt}}};
  PlanSpec plan;
  plan.shardings = some;
  std::vector<LayerKind> kinds = layerKinds(plan);
  ASSERT_EQ(kinds.size(), 3u);
  EXPECT_EQ(kinds[0], (LayerKind{{0, 3}, {8, 8}}));
  EXPECT_EQ(kinds[1], (LayerKind{{4, 7}, {9, 10}}));
  EXPECT_EQ(kinds[2], (LayerKind{{11, std::nullopt}}));
  EXPECT_EQ(kindOf(kinds, 8), 0u);
  EXPECT_EQ(kindOf(kinds, 9), 1u);
  EXPECT_EQ(kindOf(kinds, 1000), 2u);
  EXPECT_EQ(kindsFrom(firstLayersOf(kinds, 11)), kinds);
  EXPECT_EQ(firstLayersOf(kinds, 10), (std::vector<std::vector<int64_t>>{{0, 8}, {4, 9}}));
  // An entry for all layers between two others holds for those of the first.
  plan.shardings.insert(plan.shardings.begin() + 2, {"*", "ffn", {"d"}, {}});
  EXPECT_EQ(layerKinds(plan).size(), 4u);
  plan.homes = {{"*", "ffn", {"b"}, {}, 0, {std::nullopt, 0}}};
  EXPECT_EQ(layerKinds(plan)[0], (LayerKind{{0, 0}}));
  for (auto [range, words] :
       {std::pair(LayerRange{4, 4}, "layer 4"), std::pair(LayerRange{4, 7}, "layers 4 to 7"),
        std::pair(LayerRange{4, std::nullopt}, "layers from 4"),
        std::pair(LayerRange{std::nullopt, 7}, "layers to 7")}) {
    EXPECT_EQ(wordsOf(range), words);
  }
}

TEST(Plan, EntriesForLayersHoldForVariablesOfThem) {
  EXPECT_EQ(layerOfName("layers.12.mlp.up.weight"), 12);
  EXPECT_EQ(layerOfName("adam_m/layers.0.mlp.up.weight"), 0);
  EXPECT_EQ(layerOfName("gradient/layers.3.mlp.up.weight/stage_2"), 3);
  for (const char *name : {"", "/", "layers", "layers.", "layers.1", "layers.x.up", "layers.-1.up",
                           "head.weight", "my_layers.1.up", "layers.99999999999999999999.up"}) {
    EXPECT_EQ(layerOfName(name), std::nullopt) << name;
  }
  using Axes = std::vector<std::string>;
  std::vector<ShardingSpec> entries = {{"*", "ffn", {"a"}, {}},
                                       {"*", "ffn", {"b"}, {}, 0, {2, std::nullopt}}};
  EXPECT_EQ(axesFor(entries, "layers.1.mlp.up.weight", "ffn"), Axes{"a"});
  EXPECT_EQ(axesFor(entries, "layers.2.mlp.up.weight", "ffn"), Axes{"b"});
  EXPECT_EQ(axesFor(entries, "adam_m/layers.2.mlp.up.weight", "ffn"), Axes{"b"});
  EXPECT_EQ(axesFor(entries, "head.weight", "ffn"), Axes{"a"});
}

TEST(Plan, R14Stages) {
  for (const char *pipeline :
       {"{ stages: 4 schedule: ONE_F_ONE_B }", "{ layers: [2, 1, 1] schedule: GPIPE }",
        "{ stages: 2 chunks: 3 schedule: GPIPE }", "{ stages: 4 schedule: ZB_H1 }",
        "{ layers: [2, 1, 1, 1] chunks: 2 schedule: ONE_F_ONE_B }",
        "{ stages: 2\n  order: \"0F0,0F1,0B0,0B1\"\n  order: \"1F0,1B0,1F1,1B1\"\n}",
        "{ layers: [1, 2, 1]\n  order: \"0F0,2F0,2B0,0B0,0F1,2F1,2B1,0B1\"\n"
        "  order: \"1F0,1B0,1F1,1B1\"\n}"}) {
    std::string text = std::string("version: 1\naccumulation: 2\npipeline ") + pipeline + "\n";
    Result<PlanSpec> plan = parsePlan(text, "p");
    ASSERT_TRUE(bool(plan));
    EXPECT_EQ(printPlan(*plan), text);
    EXPECT_FALSE(*plan == PlanSpec());
  }
  Result<PlanSpec> plan = parsePlan("version: 1\npipeline { layers: [2, 1, 1] }\n"
                                    "mesh { axis { name: 'dp' size: 2 } }");
  EXPECT_EQ(plan->pipeline.stages, 3);
  EXPECT_EQ(plan->ranks(), 6);

  auto errorsOf = [](const std::string &fields) {
    return errors(parsePlan("version: 1\npipeline { " + fields + " }", "p"));
  };
  EXPECT_EQ(errorsOf(""),
            "plan_r14: p:2:1: pipeline.stages: expected either stages or layers, got neither\n");
  EXPECT_EQ(errorsOf("stages: 2 layers: [1, 1]"),
            "plan_r14: p:2:22: pipeline.layers: expected either stages or layers, got both\n");
  EXPECT_EQ(errorsOf("stages: 1"),
            "plan_r14: p:2:12: pipeline.stages: expected a number from 2 to 1024, got 1\n");
  EXPECT_EQ(errorsOf("layers: 4"),
            "plan_r14: p:2:12: pipeline.layers: expected 2 to 1024 stages, got 1\n");
  EXPECT_EQ(errorsOf("layers: 4 layers: 0 layers: 4"),
            "plan_r14: p:2:22: pipeline.layers[1]: expected a number from 1 to 1023, got 0\n");
  EXPECT_EQ(errorsOf("layers: 0 layers: -1"),
            "plan_r14: p:2:22: pipeline.layers[1]: expected a number from 0 to 1023, got -1\n");
  EXPECT_EQ(errorsOf("layers: [0, 4, 0]"), "");
}

TEST(Plan, R15Chunks) {
  auto pipelineOf = [](const std::string &fields) {
    return parsePlan("version: 1\npipeline { " + fields + " }", "p");
  };
  const PipelineSpec three = pipelineOf("stages: 2 chunks: 3")->pipeline;
  EXPECT_EQ(three.stagesOfChunks(), (std::vector<int64_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(three.layersOfChunks(8), (std::vector<int64_t>{2, 2, 1, 1, 1, 1}));
  EXPECT_EQ(three.scheduleText(), "1f1b");
  EXPECT_EQ(pipelineOf("layers: [1, 1, 1, 1] chunks: 2")->pipeline.stages, 2);

  EXPECT_EQ(errors(pipelineOf("stages: 2 chunks: 0")),
            "plan_r15: p:2:22: pipeline.chunks: expected a number from 1 to 512, got 0\n");
  EXPECT_EQ(errors(pipelineOf("layers: [1, 1, 1] chunks: 2")),
            "plan_r15: p:2:12: pipeline.layers: expected numbers for 2 chunks of each of two "
            "stages or more, got 3\n");
  EXPECT_EQ(errors(pipelineOf("layers: [1, 1] chunks: 2")),
            "plan_r15: p:2:12: pipeline.layers: expected numbers for 2 chunks of each of two "
            "stages or more, got 2\n");
  EXPECT_EQ(
      errors(pipelineOf("stages: 513 chunks: 2")),
      "plan_r15: p:2:24: pipeline.chunks: expected at most 1024 chunks in all, got 2 for each "
      "of 513 stages\n");
}

TEST(Plan, R15SchedulesOfOneChunk) {
  EXPECT_EQ(errors(parsePlan("version: 1\npipeline { stages: 2 chunks: 2 schedule: ZB_H1 }", "p")),
            "plan_r15: p:2:22: pipeline.chunks: expected 1 for each stage with ZB_H1, got 2\n");
  EXPECT_EQ(errors(parsePlan("version: 1\npipeline { stages: 2 schedule: ZB_V }", "p")),
            "plan_r15: p:2:1: pipeline.chunks: expected 2 for each stage with ZB_V, got 1\n");
  auto plan = parsePlan("version: 1\npipeline { stages: 3 chunks: 2 schedule: ZB_V }", "p");
  EXPECT_EQ(plan->pipeline.stagesOfChunks(), (std::vector<int64_t>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(plan->pipeline.chunksWithParts(), (std::vector<int64_t>{1, 2, 3, 4, 5}));
}

TEST(Plan, R16Order) {
  auto pipelineOf = [](const std::string &fields) {
    return parsePlan("version: 1 accumulation: 2\npipeline { " + fields + " }", "p");
  };
  const std::string first = "order: '0F0 0F1 0B0 0B1' ", second = "order: '1F0 1B0 1F1 1B1' ";
  const PipelineSpec two = pipelineOf(first + second)->pipeline;
  EXPECT_EQ(two.stages, 2);
  EXPECT_EQ(two.stagesOfChunks(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(two.scheduleText(), "0F0,0F1,0B0,0B1;1F0,1B0,1F1,1B1");
  // Chunks lie where the order has them.
  EXPECT_EQ(
      pipelineOf("order: '0F0 2F0 2B0 0B0 0F1 2F1 2B1 0B1' " + second)->pipeline.stagesOfChunks(),
      (std::vector<int64_t>{0, 1, 0}));

  EXPECT_EQ(pipelineOf("order: '0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD 0REDUCE_GRAD' " + second)
                ->pipeline.scheduleText(),
            "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD,0REDUCE_GRAD;1F0,1B0,1F1,1B1");
  EXPECT_EQ(errors(pipelineOf(first + "order: '1UNSHARD 1F0 1RESHARD 1B0 1F1 1B1'")),
            "plan_r16: p:2:37: pipeline.order[1]: backward of micro-batch 0 in chunk 1 comes after "
            "RESHARD of the chunk, and no UNSHARD stands between\n");
  EXPECT_EQ(errors(pipelineOf(first + second + "gather: RUN")),
            "plan_r16: p:2:62: pipeline.gather: has no effect as order says which chunk does what "
            "when\n");
  EXPECT_EQ(errors(pipelineOf(first + second + "schedule: GPIPE chunks: 2")),
            "plan_r16: p:2:62: pipeline.schedule: has no effect as order says which chunk does "
            "what when\n"
            "plan_r16: p:2:78: pipeline.chunks: has no effect as order says which chunk does what "
            "when\n");
  EXPECT_EQ(errors(pipelineOf(first + "order: '1F0 1X0'")),
            "plan_r16: p:2:37: pipeline.order[1]: expected actions such as 0F3 or 0B3, forward or "
            "backward of micro-batch 3 in chunk 0, 0I3 or 0W3, its gradients of inputs or weights, "
            "or 0UNSHARD, 0RESHARD or 0REDUCE_GRAD, got '1X0'\n");
  EXPECT_EQ(
      errors(pipelineOf(first + "order: '1F0 1B0 1F1'")),
      "plan_r16: p:2:37: pipeline.order[1]: backward of micro-batch 1 in chunk 1 is missing\n");
  EXPECT_EQ(errors(pipelineOf(first + "order: '1F0 1B0 1F2 1B2'")),
            "plan_r16: p:2:37: pipeline.order[1]: expected actions on the plan's accumulation of "
            "2, counted from 0, got forward of micro-batch 2 in chunk 1\n");
  EXPECT_EQ(errors(pipelineOf("order: '0B0 0F0 0F1 0B1' " + second)),
            "plan_r16: p:2:12: pipeline.order[0]: backward of micro-batch 0 in chunk 0 waits for "
            "backward of micro-batch 0 in chunk 1, which never begins\n");
  EXPECT_EQ(errors(pipelineOf("stages: 3 " + first + second)),
            "plan_r16: p:2:22: pipeline.order: expected the actions of all 3 stages, got those of "
            "2\n");
  EXPECT_EQ(errors(pipelineOf(first)),
            "plan_r16: p:2:12: pipeline.order: expected the actions of two or more stages, got "
            "those of 1\n");
  EXPECT_EQ(errors(pipelineOf("layers: [1, 1, 1] " + first + second)),
            "plan_r16: p:2:12: pipeline.layers: expected a number for each of the 2 chunks of "
            "order, got 3\n");
}

TEST(Plan, NearestNameHasThePatternAsAPart) {
  EXPECT_EQ(nearestName("mlp.upp", {"mlp.down", "mlp.up", "attention"}), "mlp.up");
  EXPECT_EQ(nearestName("*.wieght", {"a.bias", "a.weight", ""}), "a.weight");
  EXPECT_EQ(nearestName("x", {}), "");
}
