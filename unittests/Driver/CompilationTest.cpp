//===- CompilationTest.cpp - descriptions to a program, without the tool --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Driver/Compilation.h"

#include "weft/Description/Pins.h"

#include "gtest/gtest.h"

using namespace weft;

namespace {

constexpr char kModel[] = R"(version: 1 name: "small" layers: 2 hidden: 128 heads: 2 ffn: 256
norm: LAYER_NORM activation: GELU_TANH positions: LEARNED maximum_length: 8 vocabulary: 32)";

constexpr char kRecipe[] = R"(version: 1 sequence_length: 8 global_batch_sequences: 4 adamw {}
clip_norm: 1 schedule { peak_learning_rate: 0.001 decay: CONSTANT } steps: 3 precision: F32)";

/// A machine of two devices with so many bytes each.
std::string machineWith(const std::string &bytes) {
  return "version: 1 name: \"two\" devices_per_node: 2 device { name: \"core\" peak_flops { "
         "precision: F32 flops: 1e10 } memory_bandwidth_bytes_per_second: 1e10 memory_bytes: " +
         bytes +
         " cores: 3 } links { name: \"wire\" scope: NODE latency_seconds: 1e-6 "
         "bandwidth_bytes_per_second: 1e9 }";
}

Descriptions describe(const std::string &bytes = "1000000000") {
  return {*desc::parseModel(kModel), std::nullopt, *desc::parseMachine(machineWith(bytes)),
          *desc::parseRecipe(kRecipe), *desc::applyPins({"dp=2"})};
}

CompileOptions untilSchedule() {
  CompileOptions options;
  options.stopAfter = Phase::Schedule;
  return options;
}

TEST(Compilation, MakesAProgramThatSaysWhatItIsFor) {
  CompileOptions options = untilSchedule();
  Descriptions descriptions = describe();
  Compilation compilation(options, descriptions);
  ASSERT_TRUE(succeeded(compilation.begin()));
  ASSERT_TRUE(succeeded(compilation.runPhases()));
  const rt::Program &program = compilation.getPrograms().front();
  EXPECT_EQ(program.modelName, "small");
  EXPECT_EQ(program.rankCount(), 2);
  EXPECT_EQ(program.globalBatch, 4);
  EXPECT_EQ(program.sequenceLength, 8);
  EXPECT_EQ(program.vocabulary, 32);
  EXPECT_EQ(program.defaultSteps, 3);
  EXPECT_EQ(program.peakFlopsPerRank, 1e10);
  EXPECT_EQ(program.memoryBandwidthPerRank, 1e10);
  EXPECT_EQ(program.threadsPerRank, 3);
  EXPECT_EQ(program.planHash, desc::hashPlan(compilation.getPlanFacts().plan));
  EXPECT_TRUE(compilation.fits());
}

TEST(Compilation, ReturnsWhatTheSearchHasFound) {
  CompileOptions options = untilSchedule();
  Descriptions descriptions = describe();
  Compilation compilation(options, descriptions);
  ValueQuestion question;
  question.name = "layers.1.mlp.up.weight";
  compilation.ask(question);
  ASSERT_TRUE(succeeded(compilation.begin()));
  ASSERT_TRUE(succeeded(compilation.runPhases()));
  const PlanFacts &facts = compilation.getPlanFacts();
  EXPECT_TRUE(facts.search.fits);
  EXPECT_GT(facts.search.decisions, 0u);
  EXPECT_NEAR(facts.search.seconds, facts.price.seconds, 1e-6 * facts.price.seconds);
  EXPECT_NEAR(facts.search.bytes, facts.price.bytes(), 1e-6 * facts.price.bytes());
  EXPECT_NE(facts.answer.value.find("mlp.up.weight"), std::string::npos);
  EXPECT_FALSE(facts.answer.why.empty());
}

TEST(Compilation, AnswersWithNamesWhereNoneFits) {
  CompileOptions options = untilSchedule();
  Descriptions descriptions = describe();
  Compilation compilation(options, descriptions);
  ValueQuestion question;
  question.name = "no such value";
  compilation.ask(question);
  ASSERT_TRUE(succeeded(compilation.begin()));
  EXPECT_TRUE(failed(compilation.runPhases()));
  EXPECT_FALSE(compilation.getPlanFacts().answer.names.empty());
  EXPECT_FALSE(compilation.getPlanFacts().answer.isAmbiguous);
}

TEST(Compilation, RefusesAProgramThatDoesNotFit) {
  CompileOptions options = untilSchedule();
  Descriptions descriptions = describe("1048576");
  Compilation compilation(options, descriptions);
  ASSERT_TRUE(succeeded(compilation.begin()));
  testing::internal::CaptureStderr();
  EXPECT_TRUE(failed(compilation.runPhases()));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("the program needs"), std::string::npos);
}

TEST(FindConditions, AreThoseOfTheRequestWhereEverythingFits) {
  llvm::FailureOr<PlanConditions> found = findConditions(CompileOptions(), describe());
  ASSERT_TRUE(succeeded(found));
  EXPECT_EQ(found->reserve, 0);
  EXPECT_EQ(found->accumulation, 1);
}

} // namespace
