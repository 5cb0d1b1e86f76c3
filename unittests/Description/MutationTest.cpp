//===- MutationTest.cpp - no text brings the readers down -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Mutation.h"
#include "Helpers.h"
#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Pins.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"
#include "weft/Description/Validate.h"

#include <algorithm>

using namespace weft::desc;
using namespace weft::desc::test;

static std::string mutate(const std::string &text, std::mt19937_64 &random) {
  static const std::string words[] = {
      "-",    "9223372036854775807", "1e400", "nan", "{", "}",   "[", "]", "\"", ":", "0", "\xff",
      "true", "version: 1",          "\n",    "#",   "'", "mesh"};
  return weft::test::mutate(text, words, random);
}

/// Every failure has a message, and names a place within the text.
template <typename Spec> static void check(const Result<Spec> &result, const std::string &text) {
  int lines = 1 + int(std::count(text.begin(), text.end(), '\n'));
  EXPECT_EQ(bool(result), result.diagnostics().empty());
  for (const Diagnostic &diagnostic : result.diagnostics()) {
    EXPECT_FALSE(diagnostic.message.empty()) << text;
    EXPECT_LE(diagnostic.location.line, lines) << text;
    EXPECT_EQ(diagnostic.location.line > 0, diagnostic.location.column > 0) << text;
    EXPECT_EQ(diagnostic.str().find('\n'), std::string::npos) << text;
  }
}

TEST(Mutation, NoTextBringsTheReadersDown) {
  std::mt19937_64 random(1);
  const ModelSpec model = *parseModel(modelText);
  const RecipeSpec recipe = *parseRecipe(recipeText);
  const MachineSpec machine = *parseMachine(machineText);
  int parsed = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = mutate(i % 2 ? modelText : rotaryModelText + "rotary { theta: 2 }", random);
    check(parseModel(text), text);
    text = mutate(recipeText, random);
    check(parseRecipe(text), text);
    text = mutate(machineText, random);
    check(parseMachine(text), text);
    text = mutate(planText, random);
    Result<PlanSpec> plan = parsePlan(text);
    check(plan, text);
    if (plan) {
      ++parsed;
      EXPECT_TRUE(*parsePlan(printPlan(*plan)) == *plan) << text;
      validatePlan(model, recipe, machine, *plan);
    }
    text = mutate("dp=2,tp=4", random);
    check(applyPins({text}), text);
  }
  EXPECT_GT(parsed, 30); // Some must come through, or the test says little about what follows.
}
