//===- Descriptions.cpp - models, recipes, machines and plans as text -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text is read as each of the four. If it is valid as one, it is checked together with
// small descriptions of the other three.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "weft/Description/Pins.h"
#include "weft/Planner/ReviewPlan.h"

#include "tests/TemporaryFolder.h"

using namespace weft::desc;

namespace {

constexpr const char *kModel =
    "version: 1 name: 'm' layers: 2 hidden: 8 heads: 2 ffn: 16 norm: RMS_NORM activation: SWIGLU "
    "positions: ROTARY vocabulary: 32";
constexpr const char *kRecipe = "version: 1 sequence_length: 8 global_batch_sequences: 4 adamw {} "
                                "schedule { peak_learning_rate: 1e-2 } steps: 3 precision: F64";
constexpr const char *kMachine =
    "version: 1 name: 'm' nodes: 1 devices_per_node: 8 "
    "device { name: 'd' peak_flops { precision: F64 flops: 1e9 } memory_bytes: 1048576 "
    "memory_bandwidth_bytes_per_second: 1e9 } links { name: 'l' scope: NODE latency_seconds: 1e-6 "
    "bandwidth_bytes_per_second: 1e9 }";

template <typename Spec> Spec valid(const Result<Spec> &result) {
  require(bool(result), "a good description is accepted");
  return *result;
}

void check(const Diagnostics &diagnostics) {
  for (const Diagnostic &diagnostic : diagnostics) {
    require(!diagnostic.message.empty(), "what is refused is explained");
    require(diagnostic.str().find('\n') == std::string::npos, "in one line");
  }
}

template <typename Spec> void check(const Result<Spec> &result) {
  require(bool(result) == result.diagnostics().empty(), "either a result or a reason");
  check(result.diagnostics());
}

void checkTogether(const ModelSpec &model, const RecipeSpec &recipe, const MachineSpec &machine,
                   PlanSpec plan) {
  for (bool mayPad : {false, true}) {
    plan.mayPad = mayPad;
    weft::planner::PlanReview review =
        weft::planner::reviewPlan(model, recipe, machine, plan,
                                  {.ranks = machine.devices(), .microBatch = 3, .accumulation = 2});
    check(review.errors);
    check(review.warnings);
  }
}

void checkPlan(const PlanSpec &plan) {
  Result<PlanSpec> again = parsePlan(printPlan(plan));
  require(again && *again == plan, "a plan that is printed is the same when it is read");
}

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const weft::rt::TemporaryFolder folder;
  static const ModelSpec otherModel = valid(parseModel(kModel));
  static const RecipeSpec otherRecipe = valid(parseRecipe(kRecipe));
  static const MachineSpec otherMachine = valid(parseMachine(kMachine));
  static const PlanSpec otherPlan = valid(applyPins({"dp=2", "tp=2"}));
  std::string text(reinterpret_cast<const char *>(data), size);
  std::string path = folder.write("description", text);

  auto model = loadModel(path);
  auto recipe = loadRecipe(path);
  auto machine = loadMachine(path);
  auto plan = loadPlan(path);
  check(model);
  check(recipe);
  check(machine);
  check(plan);
  if (plan) {
    checkPlan(*plan);
  }
  checkTogether(model ? *model : otherModel, recipe ? *recipe : otherRecipe,
                machine ? *machine : otherMachine, plan ? *plan : otherPlan);
  check(applyPins({text}));
  return 0;
}
