//===- StreamsTest.cpp - communication beside computation -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Schedule/Streams.h"
#include "SyntheticProgram.h"
#include "weft/Schedule/Lifetimes.h"
#include "weft/Schedule/Proof.h"
#include "weft/Schedule/Timeline.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

using namespace weft;
using namespace weft::schedule;

namespace {

std::string refusal(const rt::Program &program) {
  Proof proof = prove(program);
  return std::accumulate(proof.diagnostics.begin(), proof.diagnostics.end(), std::string(),
                         [](const std::string &a, const std::string &b) { return a + b + "\n"; });
}

/// A step put together by hand, on two ranks. Buffers are numbered as they are made, and hold four
/// floats.
class Step {
public:
  Step() {
    program.modelName = "by hand";
    program.mesh = {{"dp", 2}};
    program.labels = {"kernel", "collective", "observe"};
    program.kernels = {{"work"}};
    program.observations = {{"gradient/w", {rt::ElementType::F32, {4}, {{}}}}};
  }

  uint32_t buffer(uint64_t bytes = 16) {
    program.buffers.push_back({bytes, 0});
    return uint32_t(program.buffers.size() - 1);
  }
  /// A parameter of this many bytes, which init writes.
  uint32_t parameter(uint64_t bytes = 16) {
    uint32_t number = buffer(bytes);
    program.buffers[number].persistent = true;
    program.buffers[number].kind = rt::BufferClass::Parameter;
    program.parameters.push_back(
        {"p" + std::to_string(number), {rt::ElementType::F32, {int64_t(bytes / 4)}, {{}}}, number});
    program.initBody().push_back({rt::Opcode::Kernel, 0, 0, {{number, rt::Access::Write}}, {}});
    return number;
  }
  void kernel(double seconds, std::vector<uint32_t> from, std::vector<uint32_t> to) {
    std::vector<rt::Operand> operands;
    for (uint32_t number : from) {
      operands.push_back({number, rt::Access::Read});
    }
    for (uint32_t number : to) {
      operands.push_back({number, rt::Access::Write});
    }
    add({rt::Opcode::Kernel, 0, 0, std::move(operands), {}, {0, 0, seconds}});
  }
  void reduce(double seconds, uint32_t at) {
    collective(seconds, rt::CollectiveKind::AllReduce, at, at);
  }
  void gather(double seconds, uint32_t from, uint32_t to) {
    collective(seconds, rt::CollectiveKind::AllGather, from, to);
  }
  void observe(uint32_t number) {
    add({rt::Opcode::Observe, 0, 2, {{number, rt::Access::Read}}, {}, {}});
  }
  void agree(double seconds) { add({rt::Opcode::Agree, 0, 2, {}, {}, {0, 0, seconds}}); }

  /// Numbers of instructions as they were made, in their order now; those beside computation in
  /// brackets, with waits behind a '<'.
  std::string order(double leastGain = kLeastGain) {
    packArena(program);
    EXPECT_EQ(refusal(program), "");
    assignStreams(program, leastGain);
    EXPECT_EQ(refusal(program), "");
    std::string text;
    for (const rt::Instruction &instruction : program.stepBody()) {
      std::string name = std::to_string(int(instruction.cost.flops));
      text += (text.empty() ? "" : " ");
      text += instruction.stream == rt::Stream::Compute ? name : "[" + name + "]";
      for (uint32_t other : instruction.waits) {
        text += "<" + std::to_string(int(program.stepBody()[other].cost.flops));
      }
    }
    return text;
  }

  rt::Program program;

private:
  void add(rt::Instruction instruction) {
    instruction.cost.flops = double(program.stepBody().size());
    program.stepBody().push_back(std::move(instruction));
  }
  void collective(double seconds, rt::CollectiveKind kind, uint32_t from, uint32_t to) {
    auto elements = int64_t(program.buffers[from].bytes / 4);
    program.collectives.push_back(
        {kind, rt::ReductionKind::Sum, rt::ElementType::F32, {0}, {elements}});
    add({rt::Opcode::Collective,
         uint32_t(program.collectives.size() - 1),
         1,
         {{from, rt::Access::Read}, {to, rt::Access::Write}},
         {},
         {0, 0, seconds}});
  }
};

TEST(Timeline, OneStreamIsTheSum) {
  rt::Program program = test::makeProgram({});
  double sum = 0;
  for (rt::Instruction &instruction : program.stepBody()) {
    instruction.cost.seconds = 0.1 + double(&instruction - program.stepBody().data()) / 3;
    sum += instruction.cost.seconds;
  }
  EXPECT_EQ(predictSeconds(program.stepBody()), sum);
}

TEST(Timeline, StreamsRunBesideOneAnother) {
  Step step;
  uint32_t a = step.buffer(), b = step.buffer();
  step.kernel(1, {}, {a});
  step.reduce(2, a);
  step.kernel(5, {}, {b});
  step.kernel(1, {a, b}, {});
  std::vector<rt::Instruction> &section = step.program.stepBody();
  section[1].stream = rt::Stream::Communication;
  section[1].waits = {0};
  section[3].waits = {1};
  std::vector<TimeSpan> times = predictTimes(section);
  EXPECT_EQ(times[1].begin, 1);
  EXPECT_EQ(times[2].begin, 1);
  EXPECT_EQ(times[3].begin, 6);
  EXPECT_EQ(predictSeconds(section), 7);
  section[1].cost.seconds = 20;
  EXPECT_EQ(predictSeconds(section), 22);
}

TEST(Timeline, CollectivesShareTheLinks) {
  Step step;
  uint32_t a = step.buffer(), b = step.buffer();
  step.kernel(1, {}, {a, b});
  step.reduce(3, a);
  step.reduce(2, b);
  step.program.stepBody()[1].stream = rt::Stream::Communication;
  step.program.stepBody()[1].waits = {0};
  EXPECT_EQ(predictTimes(step.program.stepBody())[2].begin, 4);
}

TEST(Streams, ASumThatIsNeededAtOnceStays) {
  Step step;
  uint32_t a = step.buffer(), b = step.buffer();
  step.kernel(1, {}, {a});
  step.reduce(1, a);
  step.kernel(1, {a}, {b});
  rt::Program before = step.program;
  packArena(before);
  EXPECT_EQ(step.order(), "0 1 2");
  EXPECT_EQ(rt::serialize(step.program), rt::serialize(before));
}

TEST(Streams, ASumRunsBesideWhatDoesNotNeedIt) {
  Step step;
  uint32_t a = step.buffer(), b = step.buffer(), c = step.buffer();
  step.kernel(1, {}, {a});
  step.kernel(1, {}, {b});
  step.reduce(1, a);
  step.kernel(1, {b}, {c});
  step.kernel(1, {a, c}, {b});
  EXPECT_EQ(step.order(), "0 [2]<0 1 3 4<2");
  EXPECT_EQ(predictSeconds(step.program.stepBody()), 4);
}

TEST(Streams, WhatWinsTooLittleStays) {
  Step step;
  uint32_t a = step.buffer(), b = step.buffer();
  step.kernel(1, {}, {a});
  step.reduce(kLeastGain / 2, a);
  step.kernel(1, {}, {b});
  step.kernel(1, {a, b}, {});
  EXPECT_EQ(step.order(), "0 1 2 3");
}

TEST(Streams, CollectivesHideOnlyWhatTheyLeaveToComputation) {
  auto orderOf = [](double seconds, double share, double leastGain) {
    Step step;
    uint32_t a = step.buffer(), b = step.buffer();
    step.kernel(1, {}, {a});
    step.reduce(seconds, a);
    step.kernel(1, {}, {b});
    step.kernel(1, {a, b}, {});
    step.program.stepBody()[1].cost.share = share;
    return step.order(leastGain);
  };
  EXPECT_EQ(orderOf(1, 0.8, 0.1), "0 [1]<0 2 3<1");
  EXPECT_EQ(orderOf(1, 0.95, 0.1), "0 1 2 3");
  EXPECT_EQ(orderOf(1.1 * kLeastGainOnHosts, 0, kLeastGainOnHosts), "0 [1]<0 2 3<1");
  EXPECT_EQ(orderOf(0.9 * kLeastGainOnHosts, 0, kLeastGainOnHosts), "0 1 2 3");
}

TEST(Streams, WhatUnpacksWaitsForItsUser) {
  Step step;
  uint32_t a = step.buffer(32), b = step.buffer(), c = step.buffer(), d = step.buffer();
  step.kernel(1, {}, {a});
  step.reduce(1, a);
  step.kernel(0.1, {a}, {b, c});
  step.observe(b);
  step.kernel(2, {}, {d});
  step.kernel(1, {b, c, d}, {});
  EXPECT_EQ(step.order(), "0 [1]<0 4 2<1 5 3");
}

TEST(Streams, AParameterIsGatheredAheadWithWhatPreparesIt) {
  Step step;
  uint32_t shard = step.parameter(), cast = step.buffer(), whole = step.buffer(32);
  uint32_t x = step.buffer();
  step.kernel(1, {}, {x});
  for (int i = 0; i < 3; ++i) {
    uint32_t y = step.buffer();
    step.kernel(1, {x}, {y});
    x = y;
  }
  step.kernel(0.1, {shard}, {cast});
  step.gather(1.5, cast, whole);
  step.kernel(1, {whole, x}, {});
  // 1.5 seconds with their margin end where the gather is needed.
  EXPECT_EQ(step.order(), "0 1 4 [5]<4 2 3 6<5");
}

TEST(Streams, NoMoreIsGatheredAheadThanAtOnceBefore) {
  Step step;
  uint32_t shard = step.parameter(1024), x = step.buffer();
  step.kernel(1, {}, {x});
  for (int i = 0; i < 4; ++i) {
    uint32_t whole = step.buffer(2048), y = step.buffer();
    step.gather(10, shard, whole); // Longer than the computation that could hide it.
    step.kernel(1, {whole, x}, {y});
    x = y;
  }
  EXPECT_EQ(step.order(), "[1] 0 [3] 2<1 [5]<2 4<3 [7]<4 6<5 8<7");
}

/// Variables keep their values until ranks have agreed to go on.
TEST(Streams, NothingThatLastsIsWrittenBeforeRanksAgree) {
  Step step;
  uint32_t weight = step.parameter(32), shard = step.buffer(), x = step.buffer(16);
  step.kernel(1, {}, {shard, x});
  step.kernel(2, {}, {step.buffer()});
  step.observe(x);
  step.agree(0.1);
  step.gather(1, shard, weight);
  step.kernel(2, {}, {step.buffer()});
  EXPECT_EQ(step.order(), "0 1 2 3 [4]<0 5");
  // Nothing is issued before.
  EXPECT_DOUBLE_EQ(predictTimes(step.program.stepBody())[4].begin, 3.1);
}

TEST(Streams, MemoryIsNotTakenFromWhatStillRuns) {
  Step step;
  uint32_t a = step.buffer(1024);
  step.kernel(1, {}, {a});
  step.reduce(3, a);
  uint32_t kept = step.buffer();
  for (int i = 0; i < 6; ++i) {
    uint32_t big = step.buffer(1024);
    step.kernel(1, {}, {big});
    step.kernel(0.5, {big}, {kept});
  }
  step.order();
  // The second of the buffers takes a's place; while the sum is predicted to run, no other does.
  EXPECT_EQ(step.program.arenaBytes, 2 * 1024 + 64u);
  EXPECT_EQ(predictSeconds(step.program.stepBody()), 10);
}

/// Each wait is needed: without it the proof fails, and names what it finds.
TEST(Streams, EveryWaitIsNeeded) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    rt::Program program = test::makeProgram({2 + int64_t(seed % 6), 2, seed % 3 ? 1 : 2});
    for (std::vector<rt::Instruction> *section : {&program.initBody(), &program.stepBody()}) {
      for (rt::Instruction &instruction : *section) {
        instruction.cost.seconds = double(random() % 1000) / 1000;
      }
    }
    assignStreams(program);
    ASSERT_EQ(refusal(program), "") << "seed " << seed;
    for (size_t i = 0; i < program.stepBody().size(); ++i) {
      if (program.stepBody()[i].waits.empty()) {
        continue;
      }
      rt::Program mutant = program;
      mutant.stepBody()[i].waits.clear();
      std::string text = refusal(mutant);
      EXPECT_NE(text.find(" without waiting for step instruction "), std::string::npos)
          << "seed " << seed << " instruction " << i << ": " << text;
    }
  }
}

/// Whatever streams and places are, the waits that are set suffice.
TEST(Streams, WaitsSufficeForAnyStreams) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    rt::Program program = test::makeProgram({1 + int64_t(seed % 5), 2, 2});
    for (rt::Instruction &instruction : program.stepBody()) {
      bool isOfHost =
          instruction.opcode == rt::Opcode::Observe || instruction.opcode == rt::Opcode::Agree;
      if (!isOfHost && random() % 2) {
        instruction.stream = rt::Stream::Communication;
      }
    }
    EXPECT_NE(refusal(program), "");
    setWaits(program, program.step[0].body);
    EXPECT_EQ(refusal(program), "") << "seed " << seed;
  }
}

TEST(Streams, TheProofNamesBothInstructions) {
  Step step;
  uint32_t a = step.buffer(), b = step.buffer();
  step.kernel(1, {}, {a});
  step.reduce(1, a);
  step.kernel(1, {a}, {b});
  packArena(step.program);
  step.program.stepBody()[1].stream = rt::Stream::Communication;
  step.program.stepBody()[1].waits = {0};
  EXPECT_EQ(refusal(step.program),
            "step instruction 2 'kernel' reads buffer 0 on compute without waiting for step "
            "instruction 1 'collective', which writes some of its bytes as buffer 0 on "
            "communication\n");
}

} // namespace
