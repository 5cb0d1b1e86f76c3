//===- SmallPipeline.cpp - a step of two pipeline stages -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SmallPipeline.h"

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Flatten.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/Schedule/ShareKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include "gtest/gtest.h"

using namespace mlir;

namespace weft::test {

namespace {

/// Of M micro-batches, which are appended to @step.
constexpr const char *kBegin = R"(
#mesh = #weft.mesh<"dp" = 2>
#whole = #weft.sharding<#mesh, [{}, {}, {}]>
#vector = #weft.sharding<#mesh, [{}]>
#scalar = #weft.sharding<#mesh, []>
#k = affine_map<(d) -> (d)>
#none = affine_map<() -> ()>
module attributes {weft.mesh = #mesh} {
  weft.variable input @images ["micro_batch", "batch", "k"] : tensor<Mx1x4xf64, #whole>
  weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64, #vector>
  weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64, #vector>
  func.func private @forward_0(%m: index) -> tensor<4xf64>
      attributes {weft.micro_batch, weft.stage = 0 : i64} {
    %0 = weft.read @w0 : tensor<4xf64>
    %1 = weft.read @images : tensor<Mx1x4xf64>
    %2 = weft.select %1[%m] : tensor<Mx1x4xf64> -> tensor<1x4xf64>
    %3 = weft.contract "bk,k->k"(%2, %0) : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<4xf64>
    return %3 : tensor<4xf64>
  }
  func.func private @forward_1(%m: index, %sum: tensor<f64>, %x: tensor<4xf64>) -> tensor<f64>
      attributes {weft.micro_batch, weft.stage = 1 : i64} {
    %0 = weft.read @w1 : tensor<4xf64>
    %1 = weft.contract "k,k->"(%0, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<f64>
    %2 = weft.map ins(%sum, %1 : tensor<f64>, tensor<f64>) maps [#none, #none] -> tensor<f64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %2 : tensor<f64>
  }
  func.func private @backward_1(%m: index, %sum: tensor<4xf64>, %x: tensor<4xf64>)
      -> (tensor<4xf64>, tensor<4xf64>) attributes {weft.micro_batch, weft.stage = 1 : i64} {
    %0 = weft.read @w1 : tensor<4xf64>
    %1 = weft.contract "k,k->k"(%0, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %2 = weft.map ins(%sum, %x : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %1, %2 : tensor<4xf64>, tensor<4xf64>
  }
  func.func private @backward_0(%m: index, %sum: tensor<4xf64>, %d: tensor<4xf64>)
      -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
    %0 = weft.read @images : tensor<Mx1x4xf64>
    %1 = weft.select %0[%m] : tensor<Mx1x4xf64> -> tensor<1x4xf64>
    %2 = weft.contract "bk,k->k"(%1, %d) : (tensor<1x4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %3 = weft.map ins(%sum, %2 : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %3 : tensor<4xf64>
  }
  func.func @init() {
    %0 = weft.fill constant 1.0 : tensor<4xf64>
    weft.assign @w0, %0 {weft.stage = 0 : i64} : tensor<4xf64>
    weft.assign @w1, %0 {weft.stage = 1 : i64} : tensor<4xf64>
    return
  }
  func.func @step() {
    %e0 = weft.fill constant 0.0 : tensor<4xf64>
    %g0 = weft.fill constant 0.0 : tensor<4xf64>
    %s0 = weft.fill constant 0.0 : tensor<f64>
)";

/// Micro-batch M, which gets sums M and makes sums M + 1.
constexpr const char *kMicroBatch = R"(
    %cM = arith.constant M : index
    %xM = weft.call @forward_0(%cM) label "M" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
    %tM = weft.transfer %xM from 0 to 1 : tensor<4xf64>
    %sN = weft.call @forward_1(%cM, %sM, %tM) label "M" {weft.stage = 1 : i64}
        : (index, tensor<f64>, tensor<4xf64>) -> tensor<f64>
    %dM, %gN = weft.call @backward_1(%cM, %gM, %tM) label "M" {weft.stage = 1 : i64}
        : (index, tensor<4xf64>, tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>)
    %uM = weft.transfer %dM from 1 to 0 : tensor<4xf64>
    %eN = weft.call @backward_0(%cM, %eM, %uM) label "M" {weft.stage = 0 : i64}
        : (index, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
)";

/// With the last sums, of N micro-batches.
constexpr const char *kEnd = R"(
    weft.observe "loss", %sN layout tensor<f64, #scalar> {weft.stage = 1 : i64} : tensor<f64>
    %top = weft.amax %gN {weft.stage = 1 : i64} : tensor<4xf64> -> tensor<f64>
    weft.observe "dropped/1", %top layout tensor<f64, #scalar> {weft.stage = 1 : i64} : tensor<f64>
    weft.observe "gradient/w1", %gN layout tensor<4xf64, #vector> {weft.stage = 1 : i64}
        : tensor<4xf64>
    weft.assign @w0, %eN {weft.stage = 0 : i64} : tensor<4xf64>
    weft.assign @w1, %gN {weft.stage = 1 : i64} : tensor<4xf64>
    return
  }
  func.func @evaluate() {
    %c0 = arith.constant 0 : index
    %x = weft.call @forward_0(%c0) label "" {weft.stage = 0 : i64} : (index) -> tensor<4xf64>
    %t = weft.transfer %x from 0 to 1 : tensor<4xf64>
    %0 = weft.fill constant 0.0 : tensor<f64>
    %s = weft.call @forward_1(%c0, %0, %t) label "" {weft.stage = 1 : i64}
        : (index, tensor<f64>, tensor<4xf64>) -> tensor<f64>
    weft.observe "validation_loss", %s layout tensor<f64, #scalar> {weft.stage = 1 : i64}
        : tensor<f64>
    return
  }
}
)";

std::string replaced(std::string text, const std::string &mark, int64_t number) {
  for (size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1)) {
    text.replace(at, mark.size(), std::to_string(number));
  }
  return text;
}

} // namespace

SmallPipeline::SmallPipeline() {
  DialectRegistry registry;
  registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
  registerScalarOpModels(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
}

std::string SmallPipeline::text(int64_t microBatches) {
  std::string text = replaced(kBegin, "M", microBatches);
  for (int64_t number = 0; number < microBatches; ++number) {
    text += replaced(replaced(kMicroBatch, "M", number), "N", number + 1);
  }
  return text + replaced(kEnd, "N", microBatches);
}

OwningOpRef<ModuleOp> SmallPipeline::parse(const std::string &text) {
  return parseSourceString<ModuleOp>(text, &context);
}

CompiledStages SmallPipeline::compile(const std::string &text, int64_t microBatches,
                                      const std::string &schedule, int64_t stageCount,
                                      int64_t samplesOfMicroBatch) {
  CompiledStages stages;
  for (int64_t stage = 0; stage < stageCount; ++stage) {
    OwningOpRef<ModuleOp> module = parse(text);
    if (!module || failed(take(*module, stage, schedule))) {
      ADD_FAILURE() << "stage " << stage << " cannot be compiled";
      return {};
    }
    stages.modules.push_back(std::move(module));
  }
  shareKernels(llvm::map_to_vector(stages.modules, [](auto &module) { return *module; }));
  for (auto [stage, module] : llvm::enumerate(stages.modules)) {
    ProgramInfo info;
    info.microBatches = microBatches;
    info.globalBatch = microBatches * samplesOfMicroBatch;
    FailureOr<rt::Program> program = flatten(*module, info);
    if (failed(program)) {
      ADD_FAILURE() << "stage " << stage << " has no table";
      return {};
    }
    stages.programs.push_back(std::move(*program));
  }
  return stages;
}

LogicalResult SmallPipeline::take(ModuleOp module, int64_t stage, const std::string &schedule) {
  PassManager manager(&context);
  manager.addNestedPass<func::FuncOp>(createPlaceAgreementsPass());
  manager.addPass(createObserveInStagesPass());
  if (!schedule.empty()) {
    OrderStagesPassOptions order;
    order.schedule = schedule;
    manager.addPass(createOrderStagesPass(order));
  }
  TakeStagePassOptions taken;
  taken.stage = stage;
  manager.addPass(createTakeStagePass(taken));
  buildSchedulePipeline(manager);
  return manager.run(module);
}

} // namespace weft::test
