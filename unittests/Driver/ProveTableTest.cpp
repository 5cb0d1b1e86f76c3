//===- ProveTableTest.cpp - mistakes in instruction tables are found ------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Meaning/ProveTable.h"

#include "ProveFunctions.h"

#include "weft/Description/Pins.h"
#include "weft/Driver/Compilation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

#include "gtest/gtest.h"

#include <random>
#include <set>

using namespace weft;

namespace {

constexpr char kModel[] = R"(version: 1 name: "small" layers: 2 hidden: 128 heads: 2 ffn: 256
norm: LAYER_NORM activation: GELU_TANH positions: LEARNED maximum_length: 8 vocabulary: 32)";

constexpr char kMachine[] = R"(version: 1 name: "four" devices_per_node: 4 device { name: "core"
peak_flops { precision: F32 flops: 1e10 } peak_flops { precision: BF16 flops: 1e10 }
memory_bandwidth_bytes_per_second: 1e10 memory_bytes: 1000000000 cores: 3 }
links { name: "wire" scope: NODE latency_seconds: 1e-6 bandwidth_bytes_per_second: 1e9 })";

/// A compiled table, and the modules that its proof needs.
class ProveTable : public testing::TestWithParam<std::tuple<TargetKind, const char *>> {
protected:
  void SetUp() override {
    auto [target, precision] = GetParam();
    std::string recipe = R"(version: 1 sequence_length: 8 global_batch_sequences: 4 adamw {}
        clip_norm: 1 schedule { peak_learning_rate: 0.001 decay: COSINE } steps: 3 precision: )";
    descriptions = Descriptions{
        *desc::parseModel(kModel), std::nullopt, *desc::parseMachine(kMachine),
        *desc::parseRecipe(recipe + precision), *desc::applyPins({"dp=2,tp=2,sp=true,zero=1"})};
    std::string text;
    options.target = target;
    options.stopAfter = Phase::Partition;
    {
      Compilation until(options, *descriptions);
      ASSERT_TRUE(succeeded(until.begin()) && succeeded(until.runPhases()));
      llvm::raw_string_ostream(text) << until.getModule();
    }
    options.stopAfter = Phase::Schedule;
    compilation = std::make_unique<Compilation>(options, *descriptions);
    ASSERT_TRUE(succeeded(compilation->begin()) && succeeded(compilation->runPhases()));
    local = mlir::parseSourceString<mlir::ModuleOp>(text, compilation->getModule().getContext());
    ASSERT_TRUE(local);
    program = compilation->getPrograms().front();
  }

  bool holds(const rt::Program &own) {
    mlir::ScopedDiagnosticHandler handler(local->getContext(), [&](mlir::Diagnostic &diagnostic) {
      message = diagnostic.str();
      return mlir::success();
    });
    return succeeded(proveTable(*local, compilation->getModule(), own));
  }

  using Work = std::pair<rt::Opcode, uint32_t>;

  /// For each buffer, what writes it in a step. Buffers that one kernel writes may have one value,
  /// computed twice.
  std::vector<std::set<Work>> writersOf() const {
    std::vector<std::set<Work>> writers(program.buffers.size());
    for (const rt::Instruction &instruction : program.stepBody()) {
      for (const rt::Operand &operand : instruction.operands) {
        if (operand.access != rt::Access::Read) {
          writers[operand.buffer].insert({instruction.opcode, instruction.target});
        }
      }
    }
    return writers;
  }

  CompileOptions options;
  std::optional<Descriptions> descriptions;
  std::unique_ptr<Compilation> compilation;
  mlir::OwningOpRef<mlir::ModuleOp> local;
  rt::Program program;
  std::string message;
};

TEST_P(ProveTable, AcceptsWhatTheCompilerMade) { EXPECT_TRUE(holds(program)) << message; }

TEST_P(ProveTable, ProvesWhatTheCompilerMadeFunctionByFunction) {
  EXPECT_TRUE(meaning::proveFunctions(*local, compilation->getModule(), program));
}

TEST_P(ProveTable, FindsKernelsThatComputeSomethingElse) {
  std::vector<mlir::Operation *> sums;
  compilation->getModule().walk([&](mlir::arith::AddFOp sum) { sums.push_back(sum); });
  ASSERT_FALSE(sums.empty());
  for (mlir::Operation *sum : sums) {
    mlir::OpBuilder builder(sum);
    auto difference =
        mlir::arith::SubFOp::create(builder, sum->getLoc(), sum->getOperand(0), sum->getOperand(1));
    sum->getResult(0).replaceAllUsesWith(difference);
    EXPECT_FALSE(meaning::proveFunctions(*local, compilation->getModule(), program));
    EXPECT_FALSE(holds(program));
    difference.getResult().replaceAllUsesWith(sum->getResult(0));
    difference->erase();
  }
  EXPECT_TRUE(holds(program)) << message;
}

TEST_P(ProveTable, FindsCallsWithOtherArguments) {
  size_t found = 0;
  compilation->getModule().walk([&](CallOp call) {
    for (size_t place = 1; place < call->getNumOperands(); ++place) {
      mlir::Value own = call->getOperand(place), other = call->getOperand(place - 1);
      if (own == other || own.getType() != other.getType()) {
        continue;
      }
      call->setOperand(place, other);
      EXPECT_FALSE(meaning::proveFunctions(*local, compilation->getModule(), program));
      call->setOperand(place, own);
      ++found;
    }
  });
  EXPECT_GT(found, 0U);
  EXPECT_TRUE(holds(program)) << message;
}

TEST_P(ProveTable, FindsEachInstructionThatIsLeftOut) {
  for (size_t number = 0; number < program.stepBody().size(); ++number) {
    rt::Program own = program;
    own.stepBody().erase(own.stepBody().begin() + ptrdiff_t(number));
    if (program.stepBody()[number].opcode == rt::Opcode::Agree) {
      EXPECT_TRUE(holds(own)) << message; // It computes nothing; the proof of order finds it.
      continue;
    }
    EXPECT_FALSE(holds(own)) << program.labels[program.stepBody()[number].label];
    EXPECT_NE(message.find("prove-meaning: "), std::string::npos) << message;
  }
}

TEST_P(ProveTable, NamesTheInstructionAtFault) {
  auto attention = llvm::find_if(program.stepBody(), [&](const rt::Instruction &instruction) {
    return instruction.opcode == rt::Opcode::Kernel &&
           program.kernels[instruction.target].kind == "attention";
  });
  ASSERT_NE(attention, program.stepBody().end());
  std::swap(attention->operands[1].buffer, attention->operands[2].buffer); // Keys and values.
  EXPECT_FALSE(holds(program));
  EXPECT_NE(message.find("the first instruction that computes something else is " +
                         program.labels[attention->label]),
            std::string::npos)
      << message;
}

TEST_P(ProveTable, FindsKernelsAndValuesThatAreNotTheModules) {
  rt::Program own = program;
  own.kernels[program.stepBody()[0].target].name = "kernel_of_another";
  EXPECT_FALSE(holds(own));
  EXPECT_NE(message.find("runs a kernel that the module does not have: kernel_of_another"),
            std::string::npos)
      << message;
  own = program;
  own.observations[0].name = "something else";
  EXPECT_FALSE(holds(own));
  own = program;
  own.parameters[0].name = "another.weight";
  EXPECT_FALSE(holds(own));
  EXPECT_NE(message.find("in another layout or role than the module after Partition"),
            std::string::npos)
      << message;
}

TEST_P(ProveTable, FindsEachOperandThatIsAnother) {
  std::mt19937_64 random(1); // NOLINT(bugprone-random-generator-seed): the same in each run.
  std::vector<std::set<Work>> writers = writersOf();
  size_t found = 0;
  for (size_t number = 0; number < program.stepBody().size(); ++number) {
    for (size_t operand = 0; operand < program.stepBody()[number].operands.size(); ++operand) {
      // Another size or type is not the proof's to find: checkWellFormed looks at them.
      uint32_t before = program.stepBody()[number].operands[operand].buffer;
      std::vector<uint32_t> others;
      for (uint32_t other = 0; other < program.buffers.size(); ++other) {
        const rt::Buffer &buffer = program.buffers[before], &own = program.buffers[other];
        bool isAlike = llvm::any_of(
            writers[before], [&](const Work &work) { return writers[other].contains(work); });
        if (other != before && !isAlike && buffer.kind != rt::BufferClass::Workspace &&
            own.bytes == buffer.bytes && own.type == buffer.type) {
          others.push_back(other);
        }
      }
      if (others.empty()) {
        continue;
      }
      rt::Program own = program;
      own.stepBody()[number].operands[operand].buffer = others[random() % others.size()];
      EXPECT_FALSE(holds(own)) << program.labels[program.stepBody()[number].label] << " "
                               << operand;
      ++found;
    }
  }
  EXPECT_GT(found, program.stepBody().size());
}

TEST_P(ProveTable, FindsEachNumberThatIsAnother) {
  for (size_t body = 0; body < program.bodies.size(); ++body) {
    const std::vector<rt::Instruction> &list = program.bodies[body].instructions;
    for (size_t number = 0; number < list.size(); ++number) {
      for (size_t place = 0; place < list[number].immediates.size(); ++place) {
        rt::Program own = program;
        ++own.bodies[body].instructions[number].immediates[place].value;
        EXPECT_FALSE(holds(own)) << program.labels[list[number].label];
      }
    }
  }
}

TEST_P(ProveTable, FindsCollectivesOfAnotherKind) {
  ASSERT_FALSE(program.collectives.empty());
  for (size_t number = 0; number < program.collectives.size(); ++number) {
    rt::Program own = program;
    rt::Collective &collective = own.collectives[number];
    if (collective.axes.size() == 1) {
      collective.axes[0] = 1 - collective.axes[0];
    } else {
      collective.axes.pop_back();
    }
    EXPECT_FALSE(holds(own)) << number;
    if (rt::isReduction(collective.kind)) {
      own = program;
      own.collectives[number].reduction = collective.reduction == rt::ReductionKind::Sum
                                              ? rt::ReductionKind::Max
                                              : rt::ReductionKind::Sum;
      EXPECT_FALSE(holds(own)) << number;
    }
  }
}

TEST_P(ProveTable, FindsMatmulsOfOtherMatrices) {
  for (size_t number = 0; number < program.matmuls.size(); ++number) {
    const rt::Matmul &matmul = program.matmuls[number];
    auto refuses = [&](auto change) {
      rt::Program own = program;
      change(own.matmuls[number]);
      EXPECT_FALSE(holds(own)) << number;
    };
    // Of one matrix that is stored by rows, another stored by columns.
    refuses([](rt::Matmul &own) { own.transposeA = !own.transposeA; });
    refuses([](rt::Matmul &own) { own.transposeB = !own.transposeB; });
    refuses([](rt::Matmul &own) { own.k /= 2; });
    refuses([](rt::Matmul &own) { own.lda *= 2; });
    refuses([](rt::Matmul &own) { own.ldb *= 2; });
    if (matmul.epilogue.activation != rt::Epilogue::Activation::None) {
      refuses([](rt::Matmul &own) { own.epilogue.activation = rt::Epilogue::Activation::None; });
    }
  }
}

/// The step in two actions, the second of which needs what lies in the first one's frame.
TEST_P(ProveTable, FollowsFrames) {
  std::vector<rt::Instruction> second = program.stepBody();
  size_t half = second.size() / 2;
  program.stepBody().resize(half);
  second.erase(second.begin(), second.begin() + ptrdiff_t(half));
  program.bodies.push_back({"second", second});
  program.step = {{program.step[0].body, 0, {{0, 1}}},
                  {uint32_t(program.bodies.size() - 1), 0, {{0, 1}}}};
  program.frameSets = {{64, {0, 64}}};
  for (rt::Buffer &buffer : program.buffers) {
    buffer.frameSet = buffer.persistent ? std::nullopt : std::optional<uint32_t>(0);
  }
  EXPECT_TRUE(meaning::proveFunctions(*local, compilation->getModule(), program));
  EXPECT_TRUE(holds(program)) << message;
  program.step[1].frames[0].frame = 0;
  EXPECT_FALSE(meaning::proveFunctions(*local, compilation->getModule(), program));
  EXPECT_FALSE(holds(program));
}

TEST_P(ProveTable, FindsLayoutsThatAreOthers) {
  for (size_t number = 0; number < program.parameters.size(); ++number) {
    rt::Program own = program;
    std::vector<std::vector<uint32_t>> &axes = own.parameters[number].layout.dimAxes;
    axes[0] = axes[0].empty() ? std::vector<uint32_t>{0} : std::vector<uint32_t>();
    EXPECT_FALSE(holds(own)) << own.parameters[number].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, ProveTable,
                         testing::Values(std::tuple(TargetKind::Host, "F64"),
                                         std::tuple(TargetKind::Host, "F32"),
                                         std::tuple(TargetKind::Cuda, "BF16")));

} // namespace
