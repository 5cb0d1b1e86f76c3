//===- ProveStagesTest.cpp - the tables of pipeline stages, proven together -===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Meaning/ProveTable.h"

#include "ProveFunctions.h"
#include "SmallPipeline.h"

#include "weft/Dialect/Weft/IR/AttributeNames.h"
#include "weft/Dialect/Weft/IR/Weft.h"
#include "weft/Pipeline/Schedule/Flatten.h"
#include "weft/Pipeline/Schedule/ShareKernels.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"

#include "gtest/gtest.h"

using namespace mlir;
using namespace weft;

namespace {

constexpr int64_t kMicroBatches = 3;

class ProveStages : public testing::Test {
protected:
  void SetUp() override {
    text = test::SmallPipeline::text(kMicroBatches);
    local = pipeline.parse(text);
    ASSERT_TRUE(local);
    compile(text);
  }

  void compile(const std::string &from, const std::string &schedule = "1f1b") {
    stages = pipeline.compile(from, kMicroBatches, schedule);
    ASSERT_EQ(stages.programs.size(), 2U);
  }

  /// Compiles the text with parts replaced.
  void compileWith(const std::vector<std::pair<std::string, std::string>> &replaced) {
    std::string other = text;
    for (const auto &[part, by] : replaced) {
      size_t at = other.find(part);
      ASSERT_NE(at, std::string::npos) << part;
      other.replace(at, part.size(), by);
    }
    compile(other);
  }

  /// Makes the table of a stage whose module has changed.
  void makeTable(size_t stage) {
    ProgramInfo info;
    info.globalBatch = info.microBatches = kMicroBatches;
    FailureOr<rt::Program> program = flatten(*stages.modules[stage], info);
    ASSERT_TRUE(succeeded(program));
    stages.programs[stage] = std::move(*program);
  }

  SmallVector<ModuleOp> modules() {
    return llvm::map_to_vector(stages.modules, [](auto &module) { return *module; });
  }

  bool holdsByFunctions(const rt::Programs &programs) {
    return meaning::proveFunctions(*local, modules(), programs);
  }
  bool holds(const rt::Programs &programs) {
    ScopedDiagnosticHandler handler(&pipeline.context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    message.clear();
    return succeeded(proveTable(*local, modules(), programs));
  }

  /// Both ways of the proof refuse the programs, with these words.
  void expectRefusal(const rt::Programs &programs, const std::string &words) {
    EXPECT_FALSE(holdsByFunctions(programs));
    expectError(programs, words);
  }
  void expectError(const rt::Programs &programs, const std::string &words) {
    EXPECT_FALSE(holds(programs));
    EXPECT_NE(message.find("prove-meaning: "), std::string::npos) << message;
    EXPECT_NE(message.find(words), std::string::npos) << message;
  }

  template <typename OpTy> SmallVector<OpTy> opsOf(size_t stage, const char *section = "step") {
    auto function = stages.modules[stage]->lookupSymbol<func::FuncOp>(section);
    return llvm::to_vector(function.getOps<OpTy>());
  }

  test::SmallPipeline pipeline;
  std::string text, message;
  OwningOpRef<ModuleOp> local;
  test::CompiledStages stages;
};

TEST_F(ProveStages, AcceptsWhatTheCompilerMakes) {
  for (const char *schedule : {"1f1b", "gpipe", ""}) {
    compile(text, schedule);
    EXPECT_TRUE(holdsByFunctions(stages.programs)) << schedule;
    EXPECT_TRUE(holds(stages.programs)) << schedule << message;
  }
}

TEST_F(ProveStages, AcceptsProgramsThatShareKernels) {
  shareKernelTable(stages.programs);
  EXPECT_TRUE(holdsByFunctions(stages.programs));
  EXPECT_TRUE(holds(stages.programs)) << message;
}

/// The walk by instructions looks into kernels; the way by functions goes by their names.
TEST_F(ProveStages, AcceptsInstructionByInstruction) {
  for (auto [stage, module] : llvm::enumerate(stages.modules)) {
    rt::Kernel &kernel = stages.programs[stage].kernels.front();
    auto function = module->lookupSymbol<func::FuncOp>(kernel.name);
    OpBuilder builder(function);
    kernel.name = "of_another_name";
    cast<func::FuncOp>(builder.clone(*function)).setSymName(kernel.name);
  }
  EXPECT_FALSE(holdsByFunctions(stages.programs));
  EXPECT_TRUE(holds(stages.programs)) << message;
}

TEST_F(ProveStages, FindsASwappedPairOfTransfers) {
  for (size_t stage : {0, 1}) {
    compile(text, "gpipe"); // No stage needs a value between both sends.
    SmallVector<SendOp> sends = opsOf<SendOp>(stage);
    ASSERT_GE(sends.size(), 2U);
    ASSERT_EQ(sends[0].getNumber(), sends[1].getNumber());
    Value first = sends[0].getInput();
    sends[0].getInputMutable().assign(sends[1].getInput());
    sends[1].getInputMutable().assign(first);
    sends[0]->moveBefore(sends[1]);
    makeTable(stage);
    expectRefusal(stages.programs, "the value of 'w0' after step in rank class 0 is not what the "
                                   "module after Partition says; the first instruction that "
                                   "computes something else is ");
    EXPECT_NE(message.find(" 0 (contract) of rank class 0"), std::string::npos) << message;
  }
}

TEST_F(ProveStages, FindsAnotherValueThatIsSent) {
  for (size_t stage : {0, 1}) {
    compile(text);
    SendOp send = opsOf<SendOp>(stage).front();
    OpBuilder builder(send);
    std::string name = "w" + std::to_string(stage);
    Value other = ReadOp::create(builder, send.getLoc(), send.getInput().getType(), name);
    send.getInputMutable().assign(other);
    makeTable(stage);
    expectRefusal(stages.programs, "of rank class " + std::to_string(1 - stage));
  }
}

TEST_F(ProveStages, FindsAVariableThatIsNotUpdated) {
  for (size_t stage : {0, 1}) {
    compile(text);
    opsOf<AssignOp>(stage).front().erase();
    makeTable(stage);
    std::string number = std::to_string(stage);
    expectRefusal(stages.programs, "the value of 'w" + number + "' after step in rank class " +
                                       number + " is not what the module after Partition says");
  }
}

TEST_F(ProveStages, FindsAnUpdateInAnotherStage) {
  const std::string inStage0 = " {weft.stage = 0 : i64}", inStage1 = " {weft.stage = 1 : i64}",
                    moved = "%z = weft.transfer %e3 from 0 to 1 : tensor<4xf64>\n    ",
                    start = "weft.assign @w0, %0";
  compileWith({{start, start + inStage1 + " : tensor<4xf64>\n    " + start},
               {"weft.assign @w0, %e3" + inStage0, moved + "weft.assign @w0, %z" + inStage1}});
  expectError(stages.programs, "rank classes 0 and 1 both have 'w0'");
  compileWith({{"weft.assign @w1, %g3", moved + "weft.assign @w1, %z"}});
  expectRefusal(stages.programs, "the value of 'w1' after step in rank class 1");
}

TEST_F(ProveStages, FindsAMicroBatchThatIsUsedTwice) {
  compileWith({{"%c1 = arith.constant 1", "%c1 = arith.constant 0"}});
  expectRefusal(stages.programs, "of rank class");
  compileWith({{"@forward_1(%c1, %s1, %t1)", "@forward_1(%c1, %s1, %t0)"}});
  expectRefusal(stages.programs, "of rank class 1");
}

TEST_F(ProveStages, FindsEachInstructionThatIsLeftOut) {
  for (size_t stage : {0, 1}) {
    const rt::Program &program = stages.programs[stage];
    for (size_t body = 0; body < program.bodies.size(); ++body) {
      for (size_t number = 0; number < program.bodies[body].instructions.size(); ++number) {
        rt::Programs own = stages.programs;
        std::vector<rt::Instruction> &list = own[stage].bodies[body].instructions;
        bool isSeenElsewhere = list[number].opcode == rt::Opcode::Observe &&
                               llvm::is_contained({"loss", "validation_loss"},
                                                  program.observations[list[number].target].name);
        bool hasNoValue = list[number].opcode == rt::Opcode::Agree; // The proof finds it.
        std::string label = program.labels[list[number].label];
        list.erase(list.begin() + ptrdiff_t(number));
        EXPECT_EQ(holds(own), isSeenElsewhere || hasNoValue) << stage << " " << label << message;
      }
    }
  }
}

TEST_F(ProveStages, FindsTransfersWithoutPartner) {
  auto without = [&](size_t stage) {
    rt::Programs own = stages.programs;
    for (rt::Body &body : own[stage].bodies) {
      auto isTransfer = [&](const rt::Instruction &instruction) {
        return instruction.opcode == rt::Opcode::Collective &&
               own[stage].collectives[instruction.target].number == 3;
      };
      llvm::erase_if(body.instructions, isTransfer);
    }
    return own;
  };
  expectRefusal(without(1), "of rank class 0 waits for transfer number 3 of rank class 1, which is "
                            "not sent");
  opsOf<ObserveOp>(0).front().erase(); // The loss, which is received as number 3.
  makeTable(0);
  expectRefusal(without(0),
                "in step, rank class 0 does not receive transfer number 3 of rank class 1");
}

TEST_F(ProveStages, FindsCollectivesOfAllClasses) {
  rt::Programs own = stages.programs;
  for (rt::Program &program : own) {
    for (rt::Collective &collective : program.collectives) {
      collective.kind = rt::CollectiveKind::AllReduce;
    }
  }
  expectRefusal(own, "is across rank classes, expected a transfer from or to its own");
}

TEST_F(ProveStages, FindsObservationsThatAreMissingOrOthers) {
  rt::Programs own = stages.programs;
  for (rt::Observation &observation : own[0].observations) {
    observation.name = observation.name == "dropped/1" ? "dropped/2" : observation.name;
  }
  expectRefusal(own, "step observes 'dropped/2', which the module after Partition does not");
  own = stages.programs;
  for (rt::Body &body : own[0].bodies) {
    llvm::erase_if(body.instructions, [&](const rt::Instruction &instruction) {
      return instruction.opcode == rt::Opcode::Observe &&
             own[0].observations[instruction.target].name == "dropped/1";
    });
  }
  expectRefusal(own, "step does not observe 'dropped/1'");
}

TEST_F(ProveStages, FindsProgramsOfOtherRanksAndVariables) {
  rt::Programs own = stages.programs;
  own[1].mesh[0].size = 4;
  expectError(own, "the program of rank class 1 is for another mesh");
  own = stages.programs;
  own[1].parameters.clear();
  expectError(own, "no program has 'w1'");
  own = stages.programs;
  own[0].inputs.push_back(own[0].parameters[0]);
  expectError(own, "the program has 'w0' in another layout or role");
  own = {stages.programs[1], stages.programs[0]};
  expectError(own, "expected the program of rank class 0, got that of 1");
}

} // namespace
