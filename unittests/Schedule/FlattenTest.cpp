//===- FlattenTest.cpp - from a module to a proven program ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/Flatten.h"
#include "weft/Dialect/Weft/IR/ScalarOps.h"
#include "weft/Pipeline/Schedule/BuildProgram.h"
#include "weft/Pipeline/Schedule/Passes.h"
#include "weft/Schedule/Proof.h"

#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace weft;

namespace {

/// A module on which Schedule has run, and the compiler's messages.
class FlattenTest : public testing::Test {
protected:
  FlattenTest() {
    DialectRegistry registry;
    registry.insert<WeftDialect, func::FuncDialect, arith::ArithDialect, math::MathDialect>();
    registerScalarOpModels(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      for (Diagnostic &note : diagnostic.getNotes()) {
        messages += "note: " + note.str() + "\n";
      }
      return success();
    });
  }

  /// The program of a module with a mesh of two ranks, "dp"; nothing if there are errors.
  FailureOr<rt::Program> compile(StringRef body, bool runPasses = true) {
    std::string text = "#mesh = #weft.mesh<\"dp\" = 2>\n"
                       "#whole = #weft.sharding<#mesh, [{}, {}]>\n"
                       "#vector = #weft.sharding<#mesh, [{}]>\n"
                       "#scalar = #weft.sharding<#mesh, []>\n"
                       "#rows = #weft.sharding<#mesh, [{\"dp\"}, {}]>\n"
                       "module attributes {weft.mesh = #mesh} {\n" +
                       body.str() + "}\n";
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      return failure();
    }
    PassManager manager(&context);
    buildSchedulePipeline(manager);
    if (runPasses && failed(manager.run(*module))) {
      return failure();
    }
    ProgramInfo info;
    info.modelName = "test";
    info.globalBatch = 4;
    info.sequenceLength = 8;
    FailureOr<rt::Program> program = flatten(*module, info);
    rt::Programs programs;
    if (succeeded(program)) {
      programs.push_back(std::move(*program));
    }
    if (programs.empty() || failed(certifyPrograms(*module, programs))) {
      return failure();
    }
    return programs.front();
  }

  /// The lines of a program's text that follow `section`.
  static std::string sectionOf(const rt::Program &program, const std::string &section) {
    std::string text = toText(program);
    size_t begin = text.find(section + ":\n") + section.size() + 2;
    size_t end = text.find(":\n", begin);
    return text.substr(begin, end == std::string::npos ? end : text.rfind('\n', end) + 1 - begin);
  }

  MLIRContext context;
  std::string messages;
  OwningOpRef<ModuleOp> module;
};

constexpr char kTraining[] = R"mlir(
  weft.variable parameter @w ["out", "in"] : tensor<4x4xf32, #whole>
  weft.variable optimizer @"momentum/w" ["out", "in"] : tensor<4x4xf32, #whole>
  weft.variable parameter @x ["batch", "in"] : tensor<4x4xf32, #rows>
  func.func @init() {
    %two = weft.fill constant 2.0 : tensor<2x4xf32>
    weft.assign @x, %two : tensor<2x4xf32>
    %one = weft.fill constant 1.0 : tensor<4x4xf32>
    %zero = weft.fill constant 0.0 : tensor<4x4xf32>
    weft.assign @w, %one : tensor<4x4xf32>
    weft.assign @"momentum/w", %zero : tensor<4x4xf32>
    return
  }
  func.func private @layer(%n: index, %x: tensor<2x4xf32>, %w: tensor<4x4xf32>)
      -> tensor<2x4xf32> {
    %y = weft.contract "bk,nk->bn"(%x, %w) : (tensor<2x4xf32>, tensor<4x4xf32>)
        -> tensor<2x4xf32> loc("query")
    %z = weft.map ins(%y : tensor<2x4xf32>) maps [affine_map<(i, j) -> (i, j)>]
        -> tensor<2x4xf32> {
    ^bb0(%a: f32):
      %b = math.tanh %a : f32
      weft.yield %b : f32
    }
    return %z : tensor<2x4xf32>
  }
  func.func private @update(%w: tensor<4x4xf32>, %m: tensor<4x4xf32>, %g: tensor<4x4xf32>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>) {
    %0:2 = weft.map ins(%w, %m, %g : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
        maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
              affine_map<(i, j) -> (i, j)>] -> tensor<4x4xf32>, tensor<4x4xf32> {
    ^bb0(%a: f32, %b: f32, %c: f32):
      %d = arith.addf %b, %c : f32
      %e = arith.subf %a, %d : f32
      weft.yield %e, %d : f32, f32
    }
    return %0#0, %0#1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func @step() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %w = weft.read @w : tensor<4x4xf32>
    %m = weft.read @"momentum/w" : tensor<4x4xf32>
    %x = weft.read @x : tensor<2x4xf32>
    %a = weft.call @layer(%c0, %x, %w) label "layers.0"
        : (index, tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %b = weft.call @layer(%c1, %a, %w) label "layers.1"
        : (index, tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %g = weft.contract "bn,bk->nk"(%b, %x) : (tensor<2x4xf32>, tensor<2x4xf32>)
        -> tensor<4x4xf32>
    %h = weft.all_reduce sum %g over ["dp"] of #mesh : tensor<4x4xf32> -> tensor<4x4xf32>
    weft.observe "gradient/w", %h layout tensor<4x4xf32, #whole> : tensor<4x4xf32>
    %u:2 = weft.call @update(%w, %m, %h) label "update"
        : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>)
        -> (tensor<4x4xf32>, tensor<4x4xf32>)
    weft.assign @w, %u#0 : tensor<4x4xf32>
    weft.assign @"momentum/w", %u#1 : tensor<4x4xf32>
    return
  }
)mlir";

/// A reshape is no instruction: what reads its result reads the input's buffer.
TEST_F(FlattenTest, ReshapesShareTheirBuffer) {
  FailureOr<rt::Program> program = compile(R"mlir(
  weft.variable parameter @x ["rows", "columns"] : tensor<4x6xf32, #whole>
  weft.variable parameter @y ["all"] : tensor<24xf32, #vector>
  func.func @init() {
    %x = weft.fill constant 2.0 : tensor<4x6xf32>
    %y = weft.reshape %x [[0, 1]] : tensor<4x6xf32> -> tensor<24xf32>
    weft.assign @y, %y : tensor<24xf32>
    %one = weft.fill constant 1.0 : tensor<4x6xf32>
    weft.assign @x, %one : tensor<4x6xf32>
    return
  }
  func.func @step() {
    %x = weft.read @x : tensor<4x6xf32>
    %y = weft.reshape %x [[0, 1]] : tensor<4x6xf32> -> tensor<24xf32>
    %z = weft.map ins(%y : tensor<24xf32>) maps [affine_map<(i) -> (i)>] -> tensor<24xf32> {
    ^bb0(%a: f32):
      %b = math.tanh %a : f32
      weft.yield %b : f32
    }
    %w = weft.reshape %z [[0, 1]] : tensor<24xf32> -> tensor<4x6xf32>
    weft.assign @x, %w : tensor<4x6xf32>
    weft.observe "gradient/y", %z layout tensor<24xf32, #vector> : tensor<24xf32>
    return
  }
)mlir");
  ASSERT_TRUE(succeeded(program)) << messages;
  EXPECT_EQ(program->initBody().size(), 2u) << toText(*program);
  // The map works in place, on the buffer of @x.
  ASSERT_EQ(program->stepBody().size(), 2u) << toText(*program);
  EXPECT_EQ(program->stepBody()[0].operands.size(), 1u);
  EXPECT_EQ(program->stepBody()[0].operands[0].buffer, program->parameters[0].buffer);
  EXPECT_EQ(program->stepBody()[0].operands[0].access, rt::Access::ReadWrite);
  EXPECT_EQ(program->buffers.size(), 2u);
}

TEST_F(FlattenTest, WritesATrainingStep) {
  FailureOr<rt::Program> program = compile(kTraining);
  ASSERT_TRUE(succeeded(program)) << messages;
  // Initial values go right where the variables lie.
  EXPECT_EQ(sectionOf(*program, "init"), "  0: kernel @kernel_fill_0 -> %2  \"init (fill)\"\n"
                                         "  1: kernel @kernel_fill_1 -> %0  \"init (fill)\"\n"
                                         "  2: kernel @kernel_fill_2 -> %1  \"init (fill)\"\n");
  // Maps, the all-reduce and the update work in place.
  EXPECT_EQ(sectionOf(*program, "step"),
            "  0: matmul f32 2x4x4 B^T ld 4/4/4 %2 %0 -> %3  \"layers.0/query (contract)\"\n"
            "  1: kernel @kernel_map_0 %3 -> %3  \"layers.0 (map)\"\n"
            "  2: matmul f32 2x4x4 B^T ld 4/4/4 %3 %0 -> %4  \"layers.1/query (contract)\"\n"
            "  3: kernel @kernel_map_0 %4 -> %4  \"layers.1 (map)\"\n"
            "  4: matmul f32 4x4x2 A^T ld 4/4/4 %4 %2 -> %5  \"step (contract)\"\n"
            "  5: all-reduce sum f32 [4, 4] over {dp} %5 -> %5  \"step (all_reduce)\"\n"
            "  6: observe 'gradient/w' f32 [4, 4] %5  \"step (observe)\"\n"
            "  7: kernel @kernel_map_1 %0 %1 %5 -> %0 %1  \"update (map)\"\n");
  EXPECT_EQ(program->buffers[5].kind, rt::BufferClass::Gradient);
  EXPECT_EQ(program->buffers[4].kind, rt::BufferClass::ParameterCopy); // The input is a parameter.
  EXPECT_EQ(program->buffers[1].kind, rt::BufferClass::Optimizer);
  EXPECT_EQ(program->buffers[2].bytes, 32u);
  EXPECT_EQ(program->parameters[1].layout.globalShape, (std::vector<int64_t>{4, 4}));
  EXPECT_EQ(program->parameters[1].layout.dimAxes, (std::vector<std::vector<uint32_t>>{{0}, {}}));
  EXPECT_EQ(program->modelName, "test");
  EXPECT_TRUE(schedule::prove(*program).holds());
}

/// Costs are those of one rank's tensors, as the ops say.
TEST_F(FlattenTest, InstructionsKnowTheirCost) {
  FailureOr<rt::Program> program = compile(kTraining);
  ASSERT_TRUE(succeeded(program)) << messages;
  auto expectCost = [&](size_t index, double flops, double bytes) {
    EXPECT_EQ(program->stepBody()[index].cost.flops, flops) << "instruction " << index;
    EXPECT_EQ(program->stepBody()[index].cost.bytes, bytes) << "instruction " << index;
    EXPECT_EQ(program->stepBody()[index].cost.seconds, 0) << "instruction " << index;
  };
  expectCost(0, 2 * 2 * 4 * 4, 4 * (8 + 16 + 8));
  expectCost(5, 0, 4 * (16 + 16)); // All-reduce: reads all of it, writes all of it.
  expectCost(6, 0, 0);             // Observe.
  expectCost(7, 2 * 16, 4 * 5 * 16);
  EXPECT_EQ(rt::classOf(*program, program->stepBody()[0]), "matmul");
  EXPECT_EQ(rt::classOf(*program, program->stepBody()[1]), "map");
  EXPECT_EQ(rt::classOf(*program, program->stepBody()[5]), "all-reduce");
  EXPECT_EQ(rt::classOf(*program, program->stepBody()[7]), "optimizer");
  EXPECT_EQ(program->kernels[program->stepBody()[1].target].detail, "tanh");
  EXPECT_EQ(program->kernels[program->stepBody()[7].target].detail, "addf subf");
}

TEST_F(FlattenTest, SwapsVariablesThroughCopies) {
  FailureOr<rt::Program> program = compile(R"mlir(
  weft.variable parameter @a ["in"] : tensor<4xf32, #vector>
  weft.variable parameter @b ["in"] : tensor<4xf32, #vector>
  func.func @init() {
    %0 = weft.fill constant 1.0 : tensor<4xf32>
    weft.assign @a, %0 : tensor<4xf32>
    weft.assign @b, %0 : tensor<4xf32>
    return
  }
  func.func @step() {
    %a = weft.read @a : tensor<4xf32>
    %b = weft.read @b : tensor<4xf32>
    weft.assign @a, %b : tensor<4xf32>
    weft.assign @b, %a : tensor<4xf32>
    return
  }
)mlir");
  ASSERT_TRUE(succeeded(program)) << messages;
  EXPECT_EQ(sectionOf(*program, "init"), "  0: kernel @kernel_fill_0 -> %0  \"init (fill)\"\n"
                                         "  1: kernel @kernel_map_0 %0 -> %1  \"init (map)\"\n");
  EXPECT_EQ(sectionOf(*program, "step"), "  0: kernel @kernel_map_0 %0 -> %2  \"step (map)\"\n"
                                         "  1: kernel @kernel_map_0 %1 -> %3  \"step (map)\"\n"
                                         "  2: kernel @kernel_map_0 %3 -> %0  \"step (map)\"\n"
                                         "  3: kernel @kernel_map_0 %2 -> %1  \"step (map)\"\n");
}

TEST_F(FlattenTest, PassesNumbersAndNamesOfNestedCalls) {
  FailureOr<rt::Program> program = compile(R"mlir(
  weft.variable parameter @a ["in", "out"] : tensor<4x2xf32, #rows>
  weft.variable input @seed [] : tensor<i64, #scalar>
  func.func private @inner(%n: index, %seed: tensor<i64>) -> tensor<2x2xf32> {
    %p = weft.axis_index "dp" of #mesh
    %c2 = arith.constant 2 : index
    %o = arith.muli %p, %c2 : index
    %c0 = arith.constant 0 : index
    %0 = weft.fill normal 1.0 seed(%seed : tensor<i64>) stream(%n) offsets(%o, %c0)
        of [4, 2] : tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
  func.func private @outer(%n: index, %seed: tensor<i64>) -> tensor<2x2xf32> {
    %0 = weft.call @inner(%n, %seed) label "inner" : (index, tensor<i64>) -> tensor<2x2xf32>
    return %0 : tensor<2x2xf32>
  }
  func.func @init() {
    %seed = weft.read @seed : tensor<i64>
    %c7 = arith.constant 7 : index
    %0 = weft.call @outer(%c7, %seed) label "outer" : (index, tensor<i64>) -> tensor<2x2xf32>
    weft.assign @a, %0 : tensor<2x2xf32>
    return
  }
  func.func @step() {
    return
  }
)mlir");
  ASSERT_TRUE(succeeded(program)) << messages;
  // The bits of the deviation, 1.0, are between the stream and the offset.
  EXPECT_EQ(sectionOf(*program, "init"), "  0: kernel @kernel_fill_0 %1 -> %0 "
                                         "[7, 4607182418800017408, 0]  \"outer/inner (fill)\"\n");
}

TEST_F(FlattenTest, KeepsAnAllReducedOperandThatIsStillNeeded) {
  FailureOr<rt::Program> program = compile(R"mlir(
  weft.variable parameter @x ["batch", "in"] : tensor<4x4xf32, #rows>
  func.func @init() {
    %0 = weft.fill constant 1.0 : tensor<2x4xf32>
    weft.assign @x, %0 : tensor<2x4xf32>
    return
  }
  func.func @step() {
    %x = weft.read @x : tensor<2x4xf32>
    %0 = weft.all_reduce max %x over ["dp"] of #mesh : tensor<2x4xf32> -> tensor<2x4xf32>
    %1 = weft.all_gather %0 dim 0 over ["dp"] of #mesh : tensor<2x4xf32> -> tensor<4x4xf32>
    %2 = weft.reduce_scatter sum %1 dim 0 over ["dp"] of #mesh
        : tensor<4x4xf32> -> tensor<2x4xf32>
    %3 = weft.all_to_all %2 split 1 concat 0 over ["dp"] of #mesh
        : tensor<2x4xf32> -> tensor<4x2xf32>
    %4 = weft.contract "bk,bk->"(%3, %3) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<f32>
    weft.observe "loss", %4 layout tensor<f32, #scalar> : tensor<f32>
    return
  }
)mlir");
  ASSERT_TRUE(succeeded(program)) << messages;
  EXPECT_EQ(sectionOf(*program, "step"),
            "  0: all-reduce max f32 [2, 4] over {dp} %0 -> %1  \"step (all_reduce)\"\n"
            "  1: all-gather f32 [2, 4] over {dp} dim 0 %1 -> %2  \"step (all_gather)\"\n"
            "  2: reduce-scatter sum f32 [4, 4] over {dp} dim 0 %2 -> %3  "
            "\"step (reduce_scatter)\"\n"
            "  3: all-to-all f32 [2, 4] over {dp} dim 1 to 0 %3 -> %4  \"step (all_to_all)\"\n"
            "  4: kernel @kernel_contract_0 %4 -> %5  \"step (contract)\"\n"
            "  5: observe 'loss' f32 [] %5  \"step (observe)\"\n"
            "  6: agree  \"step (agree)\"\n");
}

/// A module whose step is `step` and has a variable @x of 4x4 cut by rows.
std::string withStep(const std::string &step) {
  return "weft.variable parameter @x [\"batch\", \"in\"] : tensor<4x4xf32, #rows>\n"
         "func.func @init() { return }\nfunc.func @step() {\n"
         "%x = weft.read @x : tensor<2x4xf32>\n" +
         step + "return\n}\n";
}

TEST_F(FlattenTest, RefusesWhatIsNoInstruction) {
  struct Case {
    std::string step, message;
  };
  const Case cases[] = {
      {"%0 = weft.contract \"bk->k\"(%x) : (tensor<2x4xf32>) -> tensor<4xf32>\n",
       "does not become an instruction; run verify-schedule first"},
      {"%0 = weft.all_reduce logsumexp %x over [\"dp\"] of #mesh : tensor<2x4xf32> -> "
       "tensor<2x4xf32>\n",
       "reduces by logsumexp, expected sum or max after partition"},
      {"%0 = weft.all_reduce sum %x over [\"tp\"] of <\"tp\" = 2> : tensor<2x4xf32> -> "
       "tensor<2x4xf32>\n",
       "expected the module's"},
      {"weft.observe \"a\", %x : tensor<2x4xf32>\n", "has no layout after partition"},
      {"weft.observe \"a\", %x layout tensor<4x4xf32> : tensor<2x4xf32>\n",
       "expected a layout with a sharding"},
      {"weft.observe \"a\", %x layout tensor<4x4xf32, #rows> : tensor<2x4xf32>\n"
       "weft.observe \"a\", %x layout tensor<4x4xf32, #rows> : tensor<2x4xf32>\n",
       "observes 'a' a second time"},
  };
  for (const Case &broken : cases) {
    messages.clear();
    EXPECT_TRUE(failed(compile(withStep(broken.step), false)));
    EXPECT_NE(messages.find(broken.message), std::string::npos) << broken.step << messages;
  }
}

TEST_F(FlattenTest, RefusesTiesThatSpoilAValue) {
  const char *kernel = R"mlir(
  func.func private @twice(%x: tensor<2x4xf32>) -> tensor<2x4xf32>
      attributes {weft.tied = array<i64: 0>} {
    return %x : tensor<2x4xf32>
  }
)mlir";
  std::string launch = "%0 = weft.launch @twice(%x) tied [0] : (tensor<2x4xf32>) -> "
                       "tensor<2x4xf32>\n";
  EXPECT_TRUE(failed(compile(withStep(launch) + kernel, false)));
  EXPECT_NE(messages.find("overwrites a value that another must replace"), std::string::npos)
      << messages;
  messages.clear();
  EXPECT_TRUE(
      failed(compile(withStep(launch + "weft.observe \"a\", %x layout tensor<4x4xf32, #rows> : "
                                       "tensor<2x4xf32>\n") +
                         kernel,
                     false)));
  EXPECT_NE(messages.find("is read after it was overwritten"), std::string::npos) << messages;
}

TEST_F(FlattenTest, RefusesNumbersThatAreNotKnown) {
  const char *kernel = R"mlir(
  func.func private @numbered(%n: index, %x: tensor<2x4xf32>) -> tensor<2x4xf32>
      attributes {weft.tied = array<i64: -1>} {
    return %x : tensor<2x4xf32>
  }
)mlir";
  std::string step = "%n = weft.axis_index \"dp\" of #mesh\n"
                     "%0 = weft.launch @numbered(%n, %x) tied [-1] : (index, tensor<2x4xf32>) -> "
                     "tensor<2x4xf32>\n";
  EXPECT_TRUE(failed(compile(withStep(step) + kernel, false)));
  EXPECT_NE(messages.find("has a number whose value is not known"), std::string::npos) << messages;
}

TEST_F(FlattenTest, RefusesModulesWithoutMesh) {
  module = parseSourceString<ModuleOp>("module {}", &context);
  EXPECT_TRUE(failed(flatten(*module, {})));
  EXPECT_EQ(messages, "expected a mesh in 'weft.mesh'\n");
}

TEST_F(FlattenTest, RefusesAssignmentsThatNeedACopy) {
  EXPECT_TRUE(failed(compile(R"mlir(
  weft.variable parameter @a ["in"] : tensor<4xf32, #vector>
  weft.variable parameter @b ["in"] : tensor<4xf32, #vector>
  func.func @init() { return }
  func.func @step() {
    %a = weft.read @a : tensor<4xf32>
    weft.assign @b, %a : tensor<4xf32>
    return
  }
)mlir",
                             false)));
  EXPECT_NE(messages.find("is not computed in its variable's place"), std::string::npos);
}

TEST_F(FlattenTest, RefusesWhatCannotBeProven) {
  // Nothing initializes the parameter.
  EXPECT_TRUE(failed(compile(R"mlir(
  weft.variable parameter @a ["in"] : tensor<4xf32, #vector>
  func.func @init() { return }
  func.func @step() { return }
)mlir")));
  EXPECT_NE(messages.find("the program cannot be proven\nnote: init does not write 'a'"),
            std::string::npos)
      << messages;
}

TEST_F(FlattenTest, OnlyMicroBatchesBecomeActionsOfOneBody) {
  // Four layers with one weight look like micro-batches.
  std::string text = R"mlir(
    weft.variable parameter @a ["hidden"] : tensor<4xf32, #vector>
    func.func @init() {
      %0 = weft.fill constant 1.0 : tensor<4xf32>
      weft.assign @a, %0 : tensor<4xf32>
      return
    }
    func.func private @layer(%n: index, %x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
      %0 = weft.map ins(%x, %w : tensor<4xf32>, tensor<4xf32>)
          maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> tensor<4xf32> {
      ^bb0(%a: f32, %b: f32):
        %1 = arith.addf %a, %b : f32
        weft.yield %1 : f32
      }
      return %0 : tensor<4xf32>
    }
    func.func @step() {
      %w = weft.read @a : tensor<4xf32>
      %x = weft.fill constant 2.0 : tensor<4xf32>
)mlir";
  std::string value = "%x", type = "tensor<4xf32>";
  for (int call = 0; call < 4; ++call) {
    std::string number = std::to_string(call), next = "%y" + number;
    text += "%c" + number + " = arith.constant " + number + " : index\n" + next +
            " = weft.call @layer(%c" + number + ", " + value + ", %w) label \"layers." + number +
            "\" : (index, " + type + ", " + type + ") -> " + type + "\n";
    value = next;
  }
  text += "weft.assign @a, " + value + " : " + type + "\nreturn\n}\n";
  FailureOr<rt::Program> program = compile(text);
  ASSERT_TRUE(succeeded(program)) << messages;
  EXPECT_EQ(program->bodies.size(), 2);
  EXPECT_NE(toText(*program).find("layers.2 (map)"), std::string::npos);
}

} // namespace
