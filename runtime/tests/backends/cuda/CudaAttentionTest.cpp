//===- CudaAttentionTest.cpp - attention on the simulator ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaAttention.h"
#include "support/BFloat16.h"
#include "tests/backends/cuda/AttentionTrial.h"
#include "tests/testing/CudaBench.h"

#include <cmath>

using namespace weft::rt;
using namespace weft::rt::cuda;
using testing::HasSubstr;

namespace {

/// Two heads that share keys, over two halves of which the second queries see the first keys.
Attention makeAttention() {
  Attention a;
  a.batch = a.keyHeads = 1;
  a.group = 2;
  a.queries = a.keys = 4;
  a.features = a.valueFeatures = 8;
  a.scale = 0.5;
  a.isCausal = true;
  a.operands = {0, 1, 2, 3, 4};
  a.workspaceBytes = 512;
  return a;
}

class CudaAttentionTest : public testing::Test {
protected:
  void SetUp() override {
    attention = makeAttention();
    for (size_t role = 0; role < 5; ++role) {
      operands.push_back(bench.allocate(1024));
      Bench::ok(bench.cuda.zero(bench.device, bench.stream, operands.back(), 1024));
    }
    operands.push_back(bench.allocate(1024));
    bench.drain(bench.stream);
  }

  Handle prepare(const AttentionPart &part) {
    Handle made = 0;
    const char *refusal = nullptr;
    Bench::ok(bench.cuda.prepareAttention(bench.device, &attention, &part, false, &made, &refusal));
    EXPECT_FALSE(refusal);
    return made;
  }

  std::string run(Handle prepared, size_t count = 6) {
    CallResult result =
        bench.cuda.runAttention(bench.device, bench.stream, prepared, operands.data(), count);
    return result ? result : "";
  }

  template <typename T> std::vector<T> fetch(Address from, size_t count) {
    std::vector<T> values(count);
    EXPECT_LE(count * sizeof(T), kBenchBytes);
    Bench::ok(
        bench.cuda.copyToHost(bench.device, bench.stream, bench.pinned, from, count * sizeof(T)));
    bench.drain(bench.stream);
    std::memcpy(values.data(), bench.pinned, count * sizeof(T));
    return values;
  }

  Bench bench{3};
  Attention attention;
  std::vector<Address> operands;
};

/// With queries and keys of zero, all weights are equal.
TEST_F(CudaAttentionTest, EveryQuerySeesItsKeys) {
  Handle prepared = prepare({true, 0, 0, 4, 0, 4});
  ASSERT_EQ(run(prepared), "");
  std::vector<float> lse = fetch<float>(operands[Attention::Lse], 8);
  for (size_t i = 0; i < lse.size(); ++i) {
    EXPECT_FLOAT_EQ(lse[i], std::log(float(i % 4 + 1))) << i;
  }
}

TEST_F(CudaAttentionTest, QueriesThatSeeNothingSaySo) {
  Handle prepared = prepare({false, 0, 2, 2, 0, 3});
  ASSERT_EQ(run(prepared), "");
  std::vector<float> lse = fetch<float>(operands[Attention::Lse], 4);
  EXPECT_FLOAT_EQ(lse[1], -1e30f);
  EXPECT_FLOAT_EQ(lse[2], std::log(3.0f));
}

TEST(CudaAttention, IsWhatItsFormulasSay) {
  for (const AttentionCase &tried : attentionCases()) {
    for (bool isBackward : {false, true}) {
      SCOPED_TRACE(testing::Message() << tried.name << (isBackward ? " backward" : ""));
      Simulator simulator({.seed = 5, .memoryBytes = 16 << 20}, {});
      Handle device = 0;
      DeviceFacts facts;
      Bench::ok(simulator.library().open(0, &device, &facts));
      EXPECT_EQ(AttentionTrial(simulator.library(), device, tried, isBackward).run(false), "");
      Bench::ok(simulator.library().close(device));
    }
  }
}

/// Keys are at positions 4, 5, 9 and 10; queries see those from the start of their document on.
TEST_F(CudaAttentionTest, QueriesSeeTheirDocuments) {
  attention.starts = 5;
  Address starts = bench.allocate(1024);
  const int32_t values[] = {4, 5, 8, 12};
  std::memcpy(bench.pinned, values, sizeof values);
  Bench::ok(
      bench.cuda.copyToDevice(bench.device, bench.stream, starts, bench.pinned, sizeof values));
  bench.drain(bench.stream);
  operands.insert(operands.begin() + 5, starts);
  AttentionPart part = {false, 0, 0, 4, 0, 4, {{{4, 2}, {9, 2}}}};
  Handle prepared = prepare(part);
  ASSERT_EQ(run(prepared, 7), "");
  std::vector<float> lse = fetch<float>(operands[Attention::Lse], 4);
  EXPECT_FLOAT_EQ(lse[0], std::log(4.0f));
  EXPECT_FLOAT_EQ(lse[1], std::log(3.0f));
  EXPECT_FLOAT_EQ(lse[2], std::log(2.0f));
  EXPECT_FLOAT_EQ(lse[3], -1e30f);
  EXPECT_THAT(run(prepared, 6), HasSubstr("expected 7 operands, got 6"));
}

TEST_F(CudaAttentionTest, MisuseIsRefused) {
  Handle prepared = prepare({true, 0, 0, 4, 0, 4});
  EXPECT_THAT(run(prepared, 5), HasSubstr("expected 6 operands, got 5"));
  EXPECT_THAT(run(99), HasSubstr("expected a handle of an attention, got 99"));
  Handle made = 0;
  const char *refusal = nullptr;
  AttentionPart part = {true, 0, 1, 4, 0, 4};
  EXPECT_THAT(bench.cuda.prepareAttention(bench.device, &attention, &part, false, &made, &refusal),
              HasSubstr("expected a part of 4 queries and 4 keys, got 4 from 1"));
  Bench::ok(bench.cuda.seal(bench.device));
  part.firstQuery = 0;
  EXPECT_THAT(bench.cuda.prepareAttention(bench.device, &attention, &part, false, &made, &refusal),
              HasSubstr("prepared"));
  Bench::ok(bench.cuda.unseal(bench.device));
  operands[5] += kAlignment;
  EXPECT_THAT(run(prepared), HasSubstr("expected the workspace at a multiple of 256 bytes"));
  operands[5] -= kAlignment;
  std::swap(operands[3], operands[0]);
  operands[3] = operands[0];
  EXPECT_THAT(run(prepared), HasSubstr("share bytes, and one is written"));
}

/// Two attentions that may run at the same time.
TEST_F(CudaAttentionTest, AWorkspaceIsForOneAtATime) {
  Handle prepared = prepare({true, 0, 0, 4, 0, 4});
  ASSERT_EQ(run(prepared), "");
  std::vector<Address> others = operands;
  others[Attention::Output] = bench.allocate(1024);
  others[Attention::Lse] = bench.allocate(1024);
  EXPECT_THAT(bench.cuda.runAttention(bench.device, bench.other, prepared, others.data(), 6),
              HasSubstr("the workspace"));
}

/// A refusal is no failure; each reason is reported once.
TEST(CudaAttentionRefusals, AreCountedByReason) {
  Simulator simulator({.refusesAttention = "there is none"}, {});
  Program program;
  Attention attention = makeAttention();
  program.kernels = {{"attend", "attention", "", attention}};
  program.labels = {"first", "second"};
  program.stepBody().resize(2);
  program.stepBody()[1].label = 1;
  Handle device = 0;
  DeviceFacts facts;
  ASSERT_EQ(simulator.library().open(0, &device, &facts), nullptr);
  CudaAttention asked(program, simulator.library());
  ASSERT_EQ(asked.prepare(device, {}, false), nullptr);
  EXPECT_EQ(asked.find(program.stepBody()[0]), 0u);
  EXPECT_EQ(asked.refusals(), "the compiler's code runs 2 of 2 attentions of a step, first the "
                              "first: there is none\n");
  asked.free(device);
  EXPECT_EQ(simulator.calls("prepareAttention"), 1);
}

/// Instructions with one part share a prepared attention, which runs once before the step.
TEST(CudaAttentionPlans, AreMadeAndRunOncePerPart) {
  Bench bench(3);
  Program program;
  program.mesh = {{"ring", 4}};
  Attention attention = makeAttention();
  attention.firstQuery.strides = attention.firstKey.strides = {4};
  attention.turn = 0;
  attention.turns = 4;
  program.kernels = {{"attend", "attention", "", attention}};
  program.labels = {"attention"};
  program.stepBody().resize(4);
  std::vector<Address> addresses;
  for (uint32_t i = 0; i < 6; ++i) {
    addresses.push_back(bench.allocate(1024));
    Bench::ok(bench.cuda.zero(bench.device, bench.stream, addresses.back(), 1024));
  }
  for (size_t turn = 0; turn < 4; ++turn) {
    program.stepBody()[turn].immediates = {int64_t(turn)};
    for (uint32_t i = 0; i < 6; ++i) {
      program.stepBody()[turn].operands.push_back({i, i < 3 ? Access::Read : Access::Write});
    }
  }
  CudaAttention asked(program, bench.cuda);
  const int64_t coordinates[] = {2}; // Sees its own keys, and all of two before it.
  Bench::ok(asked.prepare(bench.device, coordinates, false));
  EXPECT_EQ(bench.simulator.calls("prepareAttention"), 2);
  auto find = [&](size_t turn) { return asked.find(program.stepBody()[turn]); };
  EXPECT_NE(find(0), find(1));
  EXPECT_EQ(find(1), find(2));
  EXPECT_EQ(find(3), 0u);
  EXPECT_EQ(asked.refusals(), "");
  Bench::ok(asked.runEach(bench.device, bench.stream, [&](uint32_t buffer) {
    return reinterpret_cast<void *>(addresses[buffer]);
  }));
  EXPECT_EQ(bench.simulator.calls("runAttention"), 2);
  bench.drain(bench.stream);
  asked.free(bench.device);
}

/// The library is not asked for gradients for which cuDNN is known to give NaN.
TEST(CudaAttentionRefusals, AreOursWhereALibraryIsKnownToBeWrong) {
  struct Case {
    bool isBackward, isCausal;
    int64_t queries, keys;
    int asked;
  };
  const Case cases[] = {{true, false, 64, 192, 0}, {true, false, 64, 128, 1},
                        {true, true, 192, 192, 1}, {false, false, 64, 192, 1},
                        {true, true, 1, 1, 0},     {false, true, 1, 1, 1}};
  for (const Case &one : cases) {
    Bench bench(3);
    Program program;
    Attention attention = makeAttention();
    attention.isBackward = one.isBackward;
    attention.isCausal = one.isCausal;
    attention.queries = one.queries;
    attention.keys = one.keys;
    program.kernels = {{"attend", "attention", "", attention}};
    program.labels = {"attention"};
    program.stepBody().resize(1);
    CudaAttention asked(program, bench.cuda);
    Bench::ok(asked.prepare(bench.device, {}, false));
    EXPECT_EQ(bench.simulator.calls("prepareAttention"), one.asked) << one.keys;
    EXPECT_EQ(asked.refusals().empty(), one.asked == 1);
    asked.free(bench.device);
  }
}

} // namespace
