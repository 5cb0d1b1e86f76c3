//===- StagesTest.cpp - the programs of a pipeline's stages ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Pipeline/Schedule/ShareKernels.h"

#include "SmallPipeline.h"

#include "weft/Description/StageOrder.h"
#include "weft/Schedule/Proof.h"

#include "weft-rt/Expansion.h"

#include "llvm/ADT/StringRef.h"

#include "gtest/gtest.h"

#include <tuple>

using namespace weft;

namespace {

rt::Programs compile(int64_t microBatches, const std::string &schedule) {
  test::SmallPipeline pipeline;
  rt::Programs programs =
      pipeline.compile(test::SmallPipeline::text(microBatches), microBatches, schedule).programs;
  shareKernelTable(programs);
  return programs;
}

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

TEST(StagesTest, AreProvenTogether) {
  for (const char *schedule : {"1f1b", "gpipe", ""}) {
    for (int64_t microBatches : {2, 5}) {
      EXPECT_EQ(refusalOf(compile(microBatches, schedule)), "") << schedule;
    }
  }
}

TEST(StagesTest, ShareOneTableOfKernels) {
  test::SmallPipeline pipeline;
  rt::Programs programs = pipeline.compile(test::SmallPipeline::text(2), 2, "1f1b").programs;
  ASSERT_EQ(programs.size(), 2u);
  auto namesOf = [](const rt::Program &program) {
    std::vector<std::string> names;
    for (const rt::Instruction &instruction : rt::Expansion(program, program.step)) {
      if (instruction.opcode == rt::Opcode::Kernel) {
        names.push_back(program.kernels[instruction.target].name);
      }
    }
    return names;
  };
  std::vector<std::string> before[2] = {namesOf(programs[0]), namesOf(programs[1])};
  const size_t kernels = programs[0].kernels.size() + programs[1].kernels.size();
  shareKernelTable(programs);
  for (size_t stage : {0, 1}) {
    EXPECT_EQ(namesOf(programs[stage]), before[stage]);
  }
  // Both fill with zeros and add vectors.
  EXPECT_LE(programs[0].kernels.size() + 2, kernels);
  std::set<std::string> names;
  for (const rt::Kernel &kernel : programs[0].kernels) {
    EXPECT_TRUE(names.insert(kernel.name).second) << kernel.name;
  }
}

TEST(StagesTest, DifferentKernelsOfOneNameAreRefused) {
  test::SmallPipeline pipeline;
  test::CompiledStages stages = pipeline.compile(test::SmallPipeline::text(2), 2, "1f1b");
  auto modules =
      llvm::map_to_vector(stages.modules, [](auto &module) -> mlir::ModuleOp { return *module; });
  EXPECT_TRUE(mlir::succeeded(verifySharedKernels(modules)));
  std::string name = stages.programs[0].kernels.front().name;
  for (const rt::Kernel &kernel : stages.programs[1].kernels) {
    if (kernel.name != name) { // Shared names are those of equal kernels.
      mlir::SymbolTable::setSymbolName(modules[1].lookupSymbol(kernel.name), name);
      break;
    }
  }
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&pipeline.context, [&](mlir::Diagnostic &diagnostic) {
    message = diagnostic.str();
    return mlir::success();
  });
  EXPECT_TRUE(mlir::failed(verifySharedKernels(modules)));
  EXPECT_EQ(message,
            "kernel '" + name + "' differs from that of an earlier stage; run share-kernels first");
}

TEST(StagesTest, SendAndReceiveInTheOrderOfTheSchedule) {
  rt::Programs one = compile(3, "1f1b");
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(transfersOf(one[0]), " >1 <2 >1 <2 >1 <2 <3 <4");
  EXPECT_EQ(transfersOf(one[1]), " <1 >2 <1 >2 <1 >2 >3 >4");
  rt::Programs all = compile(3, "gpipe");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(transfersOf(all[0]), " >1 >1 >1 <2 <2 <2 <3 <4");
}

struct TableSize {
  size_t instructions = 0, bodies = 0, buffers = 0;
  bool operator==(const TableSize &other) const = default;
};

TableSize sizeOf(const rt::Program &program) {
  TableSize size{0, program.bodies.size(), program.buffers.size()};
  for (const rt::Body &body : program.bodies) {
    size.instructions += body.instructions.size();
  }
  return size;
}

TEST(StagesTest, TablesDoNotGrowWithMicroBatches) {
  for (const char *schedule : {"1f1b", "gpipe"}) {
    rt::Programs few = compile(16, schedule), many = compile(64, schedule);
    ASSERT_EQ(few.size(), 2u);
    for (size_t stage : {0, 1}) {
      EXPECT_TRUE(sizeOf(few[stage]) == sizeOf(many[stage])) << schedule << rt::toText(many[stage]);
      EXPECT_LT(few[stage].step.size(), many[stage].step.size());
    }
  }
}

/// Lets stage 0 send a slice of its results, which stage 1 gathers.
std::string sliced(std::string text, int64_t microBatches) {
  for (int64_t number = 0; number < microBatches; ++number) {
    const std::string m = std::to_string(number);
    const std::string whole = "%t" + m + " = weft.transfer %x" + m + " from 0 to 1 : tensor<4xf64>";
    const std::string between =
        "%h" + m + " = weft.slice %x" + m +
        " dim 0 over [\"dp\"] of #mesh index %c0 : tensor<4xf64> -> tensor<2xf64>\n%r" + m +
        " = weft.transfer %h" + m + " from 0 to 1 : tensor<2xf64>\n%t" + m +
        " = weft.all_gather %r" + m +
        " dim 0 over [\"dp\"] of #mesh : tensor<2xf64> -> tensor<4xf64>";
    text.replace(text.find(whole), whole.size(), between);
  }
  return text;
}

/// Compiles a changed pipeline for 16 micro-batches and for 64: the tables must be proven, and have
/// one size. Returns the first programs.
rt::Programs compileChanged(std::string (*change)(std::string text, int64_t microBatches)) {
  std::vector<rt::Programs> made;
  for (int64_t microBatches : {16, 64}) {
    std::string text = change(test::SmallPipeline::text(microBatches), microBatches);
    test::SmallPipeline pipeline;
    made.push_back(pipeline.compile(text, microBatches, "1f1b").programs);
    shareKernelTable(made.back());
    EXPECT_EQ(refusalOf(made.back()), "");
  }
  for (size_t stage = 0; stage < made[0].size(); ++stage) {
    EXPECT_TRUE(sizeOf(made[0][stage]) == sizeOf(made[1][stage])) << rt::toText(made[1][stage]);
  }
  return made[0];
}

/// Ops between a transfer and a call repeat with them.
TEST(StagesTest, WhatStandsBetweenIsInBodiesToo) {
  const rt::Programs made = compileChanged(sliced);
  ASSERT_EQ(made.size(), 2u);
  auto hasBody = [](const rt::Program &program, std::string_view begin) {
    return std::ranges::any_of(program.bodies,
                               [&](const rt::Body &body) { return body.name.starts_with(begin); });
  };
  EXPECT_TRUE(hasBody(made[0], "forward_0 kernel_slice")) << rt::toText(made[0]);
  EXPECT_TRUE(hasBody(made[1], "receive_1 all_gather forward_1")) << rt::toText(made[1]);
}

void replace(std::string &text, const std::string &old, const std::string &by) {
  ASSERT_NE(text.find(old), std::string::npos) << old;
  text.replace(text.find(old), old.size(), by);
}

/// Lets backward of stage 0 read the sum over ranks of what its forward makes.
std::string reduced(std::string text, int64_t microBatches) {
  replace(text, "@backward_0(%m: index, ", "@backward_0(%m: index, %own: tensor<4xf64>, ");
  replace(
      text, "%3 = weft.map ins(%sum, %2 : tensor<4xf64>, tensor<4xf64>) maps [#k, #k]",
      "%4 = weft.contract \"k,k->k\"(%2, %own) : (tensor<4xf64>, tensor<4xf64>) -> "
      "tensor<4xf64>\n%3 = weft.map ins(%sum, %4 : tensor<4xf64>, tensor<4xf64>) maps [#k, #k]");
  for (int64_t number = 0; number < microBatches; ++number) {
    const std::string m = std::to_string(number), next = std::to_string(number + 1);
    replace(text,
            "(%c" + m + ", %e" + m + ", %u" + m + ") label \"" + m +
                "\" {weft.stage = 0 : i64}\n        : (index,",
            "(%c" + m + ", %a" + m + ", %e" + m + ", %u" + m + ") label \"" + m +
                "\" {weft.stage = 0 : i64}\n        : (index, tensor<4xf64>,");
    replace(text, "%e" + next + " = weft.call @backward_0",
            "%a" + m + " = weft.all_reduce sum %x" + m +
                " over [\"dp\"] of #mesh {weft.stage = 0 : i64} : tensor<4xf64> -> "
                "tensor<4xf64>\n%e" +
                next + " = weft.call @backward_0");
  }
  return text;
}

/// So do ops between two calls of a micro-batch.
TEST(StagesTest, WhatStandsBetweenCallsIsInBodiesToo) {
  EXPECT_EQ(compileChanged(reduced).size(), 2u);
}

/// The last stage keeps what it receives until backward.
TEST(StagesTest, MicroBatchesInFlightHaveFrames) {
  for (int64_t microBatches : {4, 7}) {
    rt::Program all = compile(microBatches, "gpipe")[1];
    EXPECT_TRUE(std::ranges::any_of(all.frameSets, [&](const rt::FrameSet &set) {
      return int64_t(set.offsets.size()) == microBatches;
    })) << rt::toText(all);
    // One micro-batch after another: its work is one body.
    rt::Program one = compile(microBatches, "1f1b")[1];
    EXPECT_EQ(one.frameSets.size(), 0u);
    EXPECT_EQ(one.bodies[one.step[1].body].name, "receive_1 forward_1 backward_1 send_2");
  }
}

TEST(StagesTest, OrdersOfTheirOwnDeadlock) {
  rt::Programs mixed = {compile(3, "1f1b")[0], compile(3, "gpipe")[1]};
  EXPECT_NE(refusalOf(mixed).find("deadlock: rank 0 at step instruction"), std::string::npos)
      << refusalOf(mixed);
}

/// A stage that receives what an action needs just before it, and sends what it made just after.
rt::Program makeEager(uint32_t stage, const desc::StageSchedule &schedule) {
  const auto stages = uint32_t(schedule.size());
  rt::Program program;
  program.rankClass = stage;
  program.rankClasses = stages;
  program.buffers = {{4, 0}, {4, 64}};
  program.arenaBytes = 128;
  program.kernels = {{"compute"}};
  program.labels = {"(transfer)"};
  auto transfer = [&](uint32_t from, uint32_t to) {
    rt::Instruction made = {
        rt::Opcode::Collective, uint32_t(program.collectives.size()), 0, {}, {}};
    made.operands = {from == stage ? rt::Operand{1, rt::Access::Read}
                                   : rt::Operand{0, rt::Access::Write}};
    program.collectives.push_back({.kind = rt::CollectiveKind::Transfer});
    program.collectives.back().classes = {from, to};
    program.collectives.back().number = 2 * std::min(from, to) + (from < to ? 1 : 2);
    return made;
  };
  for (auto [name, source, target] : {std::tuple("forward", stage - 1, stage + 1),
                                      std::tuple("backward", stage + 1, stage - 1)}) {
    rt::Body body = {name, {}};
    if (source < stages) {
      body.instructions.push_back(transfer(source, stage));
    }
    body.instructions.push_back({rt::Opcode::Kernel, 0, 0, {{1, rt::Access::Write}}, {}});
    if (target < stages) {
      body.instructions.push_back(transfer(stage, target));
    }
    program.bodies.push_back(std::move(body));
  }
  for (const desc::StageAction &action : schedule[stage]) {
    bool isBackward = action.kind == desc::StageAction::Kind::Backward;
    program.step.push_back({uint32_t(isBackward), action.microBatch});
    program.microBatches = std::max(program.microBatches, action.microBatch + 1);
  }
  program.globalBatch = program.microBatches;
  return program;
}

rt::Programs makeEager(const desc::StageSchedule &schedule) {
  rt::Programs programs;
  for (uint32_t stage = 0; stage < schedule.size(); ++stage) {
    programs.push_back(makeEager(stage, schedule));
  }
  return programs;
}

/// What is sent when it is made and received when it is needed waits in a circle under 1F1B: stage
/// 0 sends the next activation while stage 1 sends the first gradient.
TEST(StagesTest, SendWhenMadeAndReceiveWhenNeededDeadlocks) {
  EXPECT_EQ(refusalOf(makeEager(desc::makeOneForwardOneBackward(2, 1, 4))),
            "deadlock: rank 0 at step instruction 3 'micro-batch 1 (transfer)' issues transfer "
            "f32[] across classes 0 1 and waits for rank 1; rank 1 at step instruction 3 "
            "'micro-batch 0 (transfer)' issues transfer f32[] across classes 1 0 and waits for "
            "rank 0\n");
  for (int64_t stages : {4, 16}) {
    std::string text = refusalOf(makeEager(desc::makeOneForwardOneBackward(stages, 1, 32)));
    EXPECT_TRUE(text.starts_with("deadlock: ")) << text;
  }
  // Where all go forward first, each stage has sent all before it receives.
  EXPECT_EQ(refusalOf(makeEager(desc::makeGPipe(4, 1, 32))), "");
}

} // namespace
