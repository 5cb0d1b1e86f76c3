//===- StagesTest.cpp - the programs of a pipeline's stages ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Flatten.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Pipeline/Schedule/ShareKernels.h"
#include "weft/Schedule/Proof.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "weft-rt/Expansion.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace weft;

namespace {

/// A step of two stages. Its micro-batches are appended to @step.
constexpr const char *kBegin = R"(
#mesh = #weft.mesh<"dp" = 2>
#vector = #weft.sharding<#mesh, [{}]>
#scalar = #weft.sharding<#mesh, []>
#k = affine_map<(d) -> (d)>
#none = affine_map<() -> ()>
module attributes {weft.mesh = #mesh} {
  weft.variable parameter @w0 ["k"] decay {weft.stage = 0 : i64} : tensor<4xf64, #vector>
  weft.variable parameter @w1 ["k"] decay {weft.stage = 1 : i64} : tensor<4xf64, #vector>
  func.func private @forward_0(%m: index) -> tensor<4xf64>
      attributes {weft.micro_batch, weft.stage = 0 : i64} {
    %0 = weft.read @w0 : tensor<4xf64>
    %1 = weft.contract "k,k->k"(%0, %0) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    return %1 : tensor<4xf64>
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
    %1 = weft.contract "k,k->k"(%0, %0) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %2 = weft.map ins(%sum, %x : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %1, %2 : tensor<4xf64>, tensor<4xf64>
  }
  func.func private @backward_0(%m: index, %sum: tensor<4xf64>, %d: tensor<4xf64>)
      -> tensor<4xf64> attributes {weft.micro_batch, weft.stage = 0 : i64} {
    %0 = weft.map ins(%sum, %d : tensor<4xf64>, tensor<4xf64>) maps [#k, #k] -> tensor<4xf64> {
    ^bb0(%a: f64, %b: f64):
      %c = arith.addf %a, %b : f64
      weft.yield %c : f64
    }
    return %0 : tensor<4xf64>
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
    weft.assign @w0, %eN {weft.stage = 0 : i64} : tensor<4xf64>
    weft.assign @w1, %gN {weft.stage = 1 : i64} : tensor<4xf64>
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

class StagesTest : public testing::Test {
protected:
  StagesTest() {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
    registerScalarOpModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The programs of both stages. Without a schedule their order is that of micro-batches.
  rt::Programs compile(int64_t microBatches, const std::string &schedule) {
    std::string text = kBegin;
    for (int64_t number = 0; number < microBatches; ++number) {
      text += replaced(replaced(kMicroBatch, "M", number), "N", number + 1);
    }
    text += replaced(kEnd, "N", microBatches);
    rt::Programs programs;
    for (int64_t stage = 0; stage < 2; ++stage) {
      OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
      if (!module || failed(take(*module, stage, schedule))) {
        ADD_FAILURE() << "stage " << stage << " cannot be compiled";
        return {};
      }
      FailureOr<rt::Program> program = flatten(*module, {});
      if (failed(program)) {
        ADD_FAILURE() << "stage " << stage << " has no table";
        return {};
      }
      programs.push_back(std::move(*program));
    }
    shareKernels(programs);
    return programs;
  }

  MLIRContext context;

private:
  LogicalResult take(ModuleOp module, int64_t stage, const std::string &schedule) {
    PassManager manager(&context);
    manager.addPass(createObserveInStagesPass());
    if (!schedule.empty()) {
      OrderStagesPassOptions order;
      order.name = schedule;
      manager.addPass(createOrderStagesPass(order));
    }
    TakeStagePassOptions taken;
    taken.stage = stage;
    manager.addPass(createTakeStagePass(taken));
    buildSchedulePipeline(manager);
    return manager.run(module);
  }
};

/// "> 1" sends, "< 2" receives, by the transfers' numbers.
std::string transfersOf(const rt::Program &program) {
  std::string text;
  for (const rt::Instruction &instruction : rt::Expansion(program, program.step)) {
    if (instruction.opcode == rt::Opcode::Collective &&
        program.collectives[instruction.target].kind == rt::CollectiveKind::Transfer) {
      bool sends = instruction.operands.front().access == rt::Access::Read;
      text +=
          (sends ? " >" : " <") + std::to_string(program.collectives[instruction.target].number);
    }
  }
  return text;
}

std::string refusalOf(const rt::Programs &programs) {
  std::string text;
  for (const std::string &message : schedule::prove(programs).diagnostics) {
    text += message + "\n";
  }
  return text;
}

TEST_F(StagesTest, AreProvenTogether) {
  for (const char *schedule : {"1f1b", "gpipe", ""}) {
    for (int64_t microBatches : {2, 5}) {
      EXPECT_EQ(refusalOf(compile(microBatches, schedule)), "") << schedule;
    }
  }
}

TEST_F(StagesTest, ShareOneTableOfKernels) {
  rt::Programs programs = compile(2, "1f1b");
  ASSERT_EQ(programs.size(), 2u);
  std::vector<std::string> names[2];
  for (const rt::Program &program : programs) {
    for (const rt::Instruction &instruction : rt::Expansion(program, program.step)) {
      if (instruction.opcode == rt::Opcode::Kernel) {
        names[program.rankClass].push_back(program.kernels[instruction.target].name);
      }
    }
  }
  for (size_t stage : {0, 1}) {
    EXPECT_FALSE(names[stage].empty());
    for (const std::string &name : names[stage]) {
      EXPECT_TRUE(StringRef(name).ends_with("_stage_" + std::to_string(stage))) << name;
    }
  }
}

TEST_F(StagesTest, SendAndReceiveInTheOrderOfTheSchedule) {
  rt::Programs one = compile(3, "1f1b");
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(transfersOf(one[0]), " >1 >1 <2 <2 >1 <2 <3");
  EXPECT_EQ(transfersOf(one[1]), " <1 <1 >2 >2 <1 >2 >3");
  rt::Programs all = compile(3, "gpipe");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(transfersOf(all[0]), " >1 >1 >1 <2 <2 <2 <3");
}

/// What is sent when it is made and received when it is needed waits in a circle.
TEST_F(StagesTest, OrdersOfTheirOwnDeadlock) {
  rt::Programs mixed = {compile(3, "1f1b")[0], compile(3, "gpipe")[1]};
  EXPECT_NE(refusalOf(mixed).find("deadlock: rank 0 at step instruction"), std::string::npos)
      << refusalOf(mixed);
}

} // namespace
