//===- MutationTest.cpp - no text brings the readers down -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"
#include "weft/Description/Machine.h"
#include "weft/Description/Model.h"
#include "weft/Description/Pins.h"
#include "weft/Description/Plan.h"
#include "weft/Description/Recipe.h"
#include "weft/Description/Validate.h"

#include <algorithm>
#include <random>

using namespace weft::desc;
using namespace weft::desc::test;

/// Changes a text in a few places: bytes flipped, words of the format put in, pieces left out,
/// repeated or moved. The generator alone decides, so a failure can be repeated.
static std::string mutate(std::string text, std::mt19937_64 &random) {
  static const std::string words[] = {
      "-",    "9223372036854775807", "1e400", "nan", "{", "}",   "[", "]", "\"", ":", "0", "\xff",
      "true", "version: 1",          "\n",    "#",   "'", "mesh"};
  auto below = [&](size_t n) { return size_t(random() % std::max<size_t>(n, 1)); };
  for (size_t i = 0, changes = 1 + below(4); i < changes; ++i) {
    size_t at = below(text.size());
    size_t length = std::min(below(24), text.size() - at);
    switch (below(5)) {
    case 0:
      if (!text.empty()) {
        text[at] = char(random());
      }
      break;
    case 1:
      text.insert(at, words[below(std::size(words))]);
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(below(text.size()), text.substr(at, length));
      break;
    case 4:
      text.replace(at, length, words[below(std::size(words))]);
      break;
    }
  }
  return text;
}

/// Every failure says something, and names a place that is in the text.
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
