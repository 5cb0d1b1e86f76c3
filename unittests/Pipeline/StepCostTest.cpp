//===- StepCostTest.cpp - the operations of a step, by hand ---------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/StepCost.h"

#include "weft/Description/Plan.h"
#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/FunctionCosts.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/InitAll.h"
#include "weft/Pipeline/BatchSize.h"
#include "weft/Pipeline/Import/Import.h"
#include "weft/Pipeline/Pipeline.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

MLIRContext &context() {
  static MLIRContext *context = [] {
    DialectRegistry registry;
    registerAllWeft(registry);
    auto *made = new MLIRContext(registry);
    made->loadAllAvailableDialects();
    return made;
  }();
  return *context;
}

/// Returns a training step; the two texts are the parts that differ between tests. Activations are
/// kept and recomputed as the plan says, by default as without one.
OwningOpRef<ModuleOp> makeStep(const std::string &model, const std::string &recipe,
                               const desc::PlanSpec &plan = {}) {
  auto read = desc::parseModel("version: 1 name: 'm' vocabulary: 256 " + model);
  auto trained = desc::parseRecipe("version: 1 adamw {} steps: 10 seed: 1 schedule { "
                                   "peak_learning_rate: 1e-3 warmup_steps: 1 } " +
                                   recipe);
  if (!read || !trained) {
    ADD_FAILURE() << desc::str(read.diagnostics()) << desc::str(trained.diagnostics());
    return {};
  }
  OwningOpRef<ModuleOp> module = importModel(context(), *read, *trained);
  PassManager manager(&context());
  PipelineOptions options;
  options.writtenPlan = &plan;
  buildPhase(manager, Phase::Differentiate, options);
  EXPECT_TRUE(succeeded(manager.run(*module)));
  return module;
}

/// Returns the operations of the model in a step on `batch` samples.
double flopsOf(const std::string &model, const std::string &recipe, int64_t batch) {
  OwningOpRef<ModuleOp> module =
      makeStep(model, recipe + " global_batch_sequences: " + std::to_string(batch));
  return module ? countStepFlops(*module, batch) : 0;
}

const std::string kLlama = "layers: 2 hidden: 64 heads: 4 kv_heads: 2 ffn: 96 norm: RMS_NORM "
                           "activation: SWIGLU positions: ROTARY maximum_length: 64 ";

// Elements of matrices: a layer's queries and output 64 x 64 each, keys and values 64 x 32 each,
// and three of 64 x 96; after two layers the head of 256 x 64. Embeddings, norms, clipping and the
// optimizer multiply none.
constexpr double kElements = 2 * (2 * 4096 + 2 * 2048 + 3 * 6144) + 16384;
static_assert(kElements == 77824);

TEST(StepCost, OfALlamaIsSixForEachElementAndTokenAndAttention) {
  // In each layer of each of 8 sequences: forward 2 matmuls of 32 x 32 by 64, of which causality
  // needs half, and backward 4, as that of the scores is computed again.
  double attention = 2.0 * 8 * (2 + 4) * (2 * 32 * 32 * 64) / 2;
  EXPECT_EQ(attention, 6'291'456);
  EXPECT_EQ(6 * kElements * (8 * 32), 119'537'664);
  EXPECT_EQ(flopsOf(kLlama, "sequence_length: 32 clip_norm: 1 ", 8), 119'537'664 + 6'291'456);
}

TEST(StepCost, GrowsWithTheBatch) {
  EXPECT_EQ(flopsOf(kLlama, "sequence_length: 32 ", 24), 3 * (119'537'664 + 6'291'456));
}

TEST(StepCost, OfLongerSequencesHasAttentionOfTheSquare) {
  EXPECT_EQ(flopsOf(kLlama, "sequence_length: 64 ", 4), 119'537'664 + 2 * 6'291'456);
}

TEST(StepCost, IsNotOfWhatIsComputedAgain) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    func.func @layer(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>) -> tensor<?x16xf32> {
      %0 = weft.contract "bk,nk->bn" (%x, %w)
          : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
      return %0 : tensor<?x16xf32>
    }
    func.func @step(%x: tensor<?x8xf32>, %w: tensor<16x8xf32>) {
      %0 = weft.call @layer(%x, %w) label ""
          : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
      %1 = weft.call @layer(%x, %w) label ""
          : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
      %2 = weft.contract "bk,nk->bn" (%x, %w) {weft.recomputed}
          : (tensor<?x8xf32>, tensor<16x8xf32>) -> tensor<?x16xf32>
      return
    })",
                                                             &context());
  ASSERT_TRUE(module);
  EXPECT_EQ(countStepFlops(*module, 4), 2 * (2 * 4 * 8 * 16));
}

/// All operations of a step on 8 samples, and those of ops that are copies.
struct Executed {
  double all = 0, copies = 0;
};

Executed executedWith(const std::string &model, const std::vector<desc::ActivationSpec> &entries) {
  desc::PlanSpec plan;
  plan.activations = entries;
  OwningOpRef<ModuleOp> module =
      makeStep(model, "sequence_length: 32 global_batch_sequences: 8 ", plan);
  if (!module) {
    return {};
  }
  substituteBatch(*module, 8);
  auto step = module->lookupSymbol<func::FuncOp>("step");
  auto sum = [&](bool ofCopies) {
    return FunctionCosts(*module,
                         [&](Operation *op) {
                           bool counts = isa<ShardableOpInterface>(op) &&
                                         (!ofCopies || op->hasAttr(kRecomputedAttrName));
                           return counts ? costOf(op).flops.constant : 0;
                         })
        .of(step);
  };
  return {sum(false), sum(true)};
}

TEST(StepCost, RecomputationAddsTheOperationsOfItsCopies) {
  const std::string gpt = "layers: 2 hidden: 64 heads: 4 ffn: 96 norm: LAYER_NORM activation: GELU "
                          "positions: LEARNED maximum_length: 64 ";
  desc::ActivationSpec kept;
  for (const std::string &model : {kLlama, gpt}) {
    Executed without = executedWith(model, {kept});
    EXPECT_EQ(without.copies, 0);
    for (const char *value : {"*", "attention*", "mlp*"}) {
      desc::ActivationSpec recomputed;
      recomputed.value = value;
      recomputed.layers.first = 1;
      recomputed.saving = desc::Saving::Recomputed;
      Executed with = executedWith(model, {kept, recomputed});
      EXPECT_GT(with.copies, 0) << value;
      EXPECT_EQ(with.all, without.all + with.copies) << value;
    }
  }
}

} // namespace
