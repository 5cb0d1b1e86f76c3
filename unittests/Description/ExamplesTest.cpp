//===- ExamplesTest.cpp - the examples and machines of the repository are valid ===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "weft/Description/Pins.h"
#include "weft/Description/Validate.h"

#include <filesystem>

using namespace weft::desc;
using namespace weft::desc::test;

static const std::string source = WEFT_SOURCE_DIR;

TEST(Examples, AreValidOnEveryMachine) {
  int pairs = 0;
  for (const auto &file : std::filesystem::directory_iterator(source + "/machines")) {
    Result<MachineSpec> machine = loadMachine(file.path());
    ASSERT_TRUE(bool(machine)) << errors(machine);
    for (const auto &folder : std::filesystem::directory_iterator(source + "/examples")) {
      std::string modelPath = folder.path() / "model.textproto";
      if (!std::filesystem::exists(modelPath)) {
        continue; // The folder of an example of another kind.
      }
      Result<ModelSpec> model = loadModel(modelPath);
      Result<RecipeSpec> recipe = loadRecipe(folder.path() / "recipe.textproto");
      ASSERT_TRUE(model && recipe) << errors(model) << errors(recipe);
      EXPECT_EQ(str(validateTogether(*model, *recipe, *machine)), "");
      ++pairs;
    }
  }
  EXPECT_GE(pairs, 4);
}

TEST(Examples, HaveTheParametersThatTheirReadMeStates) {
  auto parameters = [](const std::string &name) {
    return parameterCount(*loadModel(source + "/examples/" + name + "/model.textproto"));
  };
  EXPECT_EQ(parameters("gpt2-tiny"), 842'496);
  EXPECT_EQ(parameters("llama-tiny"), 803'968);
  EXPECT_EQ(parameters("mixtral-tiny"), 2'430'080);
  EXPECT_EQ(parameters("deepseek-tiny"), 1'666'560);
  EXPECT_EQ(parameters("gpt2-124m"), 124'439'808); // As published for GPT-2 small.
  EXPECT_EQ(parameters("llama-160m"), 162'417'408);
  // As published.
  EXPECT_EQ(parameters("llama3-8b"), 8'030'261'248);
  EXPECT_EQ(parameters("llama3-70b"), 70'553'706'496);
  EXPECT_EQ(parameters("mixtral-8x7b"), 46'702'792'704);
}

TEST(Examples, CanBeSplitAsTheirReadMeStates) {
  auto split = [](const std::string &name, const std::string &pins) {
    std::string folder = source + "/examples/" + name;
    PlanSpec plan = *applyPins({pins});
    plan.mayPad = false;
    return str(validatePlan(*loadModel(folder + "/model.textproto"),
                            *loadRecipe(folder + "/recipe.textproto"),
                            *loadMachine(source + "/machines/laptop.textproto"), plan));
  };
  EXPECT_EQ(split("gpt2-tiny", "dp=2,tp=4"), "");
  EXPECT_EQ(split("llama-tiny", "dp=4,tp=2"), "");
  EXPECT_NE(split("llama-tiny", "tp=4"), "");
  EXPECT_EQ(split("deepseek-tiny", "dp=2,ep=2,tp=2"), "");
  EXPECT_EQ(split("gpt2-124m", "dp=8"), "");
  EXPECT_NE(split("gpt2-124m", "tp=2"), "");
  EXPECT_EQ(split("llama-160m", "dp=2,tp=4"), "");
  EXPECT_EQ(split("mixtral-tiny", "dp=4,tp=2"), "");
}

TEST(Examples, HavePlansThatFit) {
  std::string folder = source + "/examples/mixtral-tiny/";
  Result<PlanSpec> plan = loadPlan(folder + "plan.textproto");
  ASSERT_TRUE(bool(plan)) << errors(plan);
  EXPECT_EQ(plan->ranks(), 4);
  EXPECT_EQ(str(validatePlan(*loadModel(folder + "model.textproto"),
                             *loadRecipe(folder + "recipe.textproto"),
                             *loadMachine(source + "/machines/laptop.textproto"), *plan)),
            "");
}
