//===- CalibrationTest.cpp - measurements of this machine ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"
#include "calibrate/DeviceMeasurements.h"
#include "calibrate/MemoryKernels.h"
#include "support/Text.h"

#include <atomic>
#include <cstdlib>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

using namespace weft::rt;
using namespace weft::rt::calibrate;

namespace {

TEST(Sampler, AllRanksDoTheSameWorkEquallyOften) {
  std::atomic<int64_t> calls[3] = {};
  Shared shared(3);
  Timing timing;
  RunResult result = makeLocalBackend(3, {})->run([&](Communicator &link) {
    Sampler sampler(link, 3, 1, 1e-3, shared);
    Timing own = sampler.measure([&] { ++calls[link.rank()]; });
    if (link.rank() == 0) {
      timing = own;
    }
  });
  ASSERT_FALSE(result.failure) << result.failure->message;
  EXPECT_GT(calls[0], 5);
  EXPECT_EQ(calls[0], calls[1]);
  EXPECT_EQ(calls[0], calls[2]);
  EXPECT_GT(timing.median, 0);
  EXPECT_GE(timing.spread, 0);
}

TEST(MemoryKernels, ComputeWhatTheySay) {
  std::vector<float> a, b, to(1000);
  for (int i = 0; i < 1000; ++i) {
    a.push_back(float(i));
    b.push_back(float(2 * i));
  }
  addFloats(a.data(), b.data(), to.data(), 1000);
  EXPECT_EQ(to[999], 2997);
  EXPECT_EQ(sumFloats(to.data(), 1000), 3 * 999 * 500);
  copyFloats(a.data(), to.data(), 1000);
  EXPECT_EQ(to, a);
}

/// Checks that all measurements exist, not their values.
TEST(Measurements, CoverTheMachine) {
  Plan plan = {2, 1, 0.2};
  std::vector<std::string> progress;
  Result<Measurements> measured =
      measure(plan, [&](const std::string &text) { progress.push_back(text); });
  ASSERT_TRUE(measured) << measured.error().message;
  const Measurements &measurements = *measured;
  EXPECT_THAT(progress, testing::Contains("collectives of 2 ranks"));
  EXPECT_EQ(measurements.matmuls.size(), 10u);
  for (const MatmulTime &entry : measurements.matmuls) {
    EXPECT_GT(entry.timing.median, 0);
  }
  EXPECT_EQ(measurements.memory.size(), 5u);
  for (const MemoryTime &entry : measurements.memory) {
    EXPECT_GT(entry.copy.median, 0);
    EXPECT_GT(entry.add.median, 0);
    EXPECT_GT(entry.sum.median, 0);
  }
  std::set<std::tuple<CollectiveKind, int64_t, int64_t>> cases;
  for (const CollectiveTime &entry : measurements.collectives) {
    EXPECT_GT(entry.timing.median, 0);
    cases.insert({entry.kind, entry.ranks, entry.bytes});
  }
  EXPECT_EQ(cases.size(), 10u); // Five kinds, operands of two sizes.
  EXPECT_EQ(measurements.collectives.size(), cases.size());
  EXPECT_GT(measurements.launch.median, 0);
  EXPECT_GT(measurements.rendezvous.median, 0);
  auto json = nlohmann::json::parse(toJson(plan, measurements));
  EXPECT_EQ(json["ranks"], 2);
  EXPECT_EQ(json["products"].size(), 10u);
  EXPECT_EQ(json["collectives"][0]["kind"], "all-reduce");
}

/// Measures simulated devices.
Result<Measurements> measureSimulator(Plan plan) {
  setenv("WEFT_RT_CUDA", SIMULATOR, 1);
  Result<Measurements> measured = measureDevices(plan, [](const std::string &) {});
  unsetenv("WEFT_RT_CUDA");
  return measured;
}

/// Measures simulated devices, which succeeds.
Measurements measurementsOf(const Plan &plan) {
  Result<Measurements> measured = measureSimulator(plan);
  EXPECT_TRUE(measured) << measured.error().message;
  return measured ? std::move(*measured) : Measurements();
}

TEST(DeviceMeasurements, CoverTheDevices) {
  Measurements measurements = measurementsOf({4, 0, 0.1});
  std::map<std::string, int> matmuls;
  for (const MatmulTime &entry : measurements.matmuls) {
    EXPECT_GT(entry.timing.median, 0);
    ++matmuls[concat(nameOf(entry.matmul.type), entry.matmul.isTF32 ? " by TF32" : "")];
    EXPECT_EQ(entry.matmul.isFp8(), fitsFp8(entry.matmul));
  }
  EXPECT_THAT(matmuls,
              testing::UnorderedElementsAre(
                  testing::Pair("f64", 2), testing::Pair("f32", 2), testing::Pair("f32 by TF32", 2),
                  testing::Pair("f16", 2), testing::Pair("bf16", 9), testing::Pair("f8e4m3", 8)));
  EXPECT_EQ(measurements.memory.size(), 5u);
  EXPECT_GT(measurements.memory.back().copy.median, 0);
  std::set<std::tuple<CollectiveKind, int64_t, int64_t>> cases;
  for (const CollectiveTime &entry : measurements.collectives) {
    EXPECT_GT(entry.timing.median, 0);
    cases.insert({entry.kind, entry.ranks, entry.bytes});
  }
  EXPECT_EQ(cases.size(), 20u); // Five kinds, operands of two sizes, groups of two and of four.
  EXPECT_GT(measurements.launch.median, 0);
  EXPECT_GT(measurements.rendezvous.median, 0);
  ASSERT_TRUE(measurements.device);
  EXPECT_EQ(measurements.device->name, "simulator");
  EXPECT_EQ(measurements.device->multiprocessors, 4);
  auto json = nlohmann::json::parse(toJson({4, 1, 0.1}, measurements));
  EXPECT_EQ(json["device"]["multiprocessors"], 4);
  EXPECT_EQ(json["memory_bytes"], int64_t(1) << 32);
  EXPECT_FALSE(json["memory"][0].contains("add"));
}

TEST(DeviceMeasurements, LeaveOutWhatADeviceLacks) {
  setenv("WEFT_SIMULATOR_ARCHITECTURE", "80", 1);
  Measurements measurements = measurementsOf({1, 0, 0.05});
  unsetenv("WEFT_SIMULATOR_ARCHITECTURE");
  EXPECT_EQ(measurements.matmuls.size(), 17u);
  for (const MatmulTime &entry : measurements.matmuls) {
    EXPECT_FALSE(entry.matmul.isFp8());
  }
}

/// Calls are counted over all devices, which have prepared 17 others each before: one of them
/// refuses the first in FP8.
TEST(DeviceMeasurements, WhatTheLibraryRefusesIsToldAndLeftOut) {
  setenv("WEFT_SIMULATOR_FAIL", "prepareMatmul:35", 1);
  Measurements measurements = measurementsOf({2, 0, 0.05});
  unsetenv("WEFT_SIMULATOR_FAIL");
  EXPECT_EQ(measurements.matmuls.size(), 17u + 7);
  ASSERT_EQ(measurements.refused.size(), 1u);
  EXPECT_TRUE(measurements.refused[0].matmul.isFp8());
  EXPECT_THAT(measurements.refused[0].reason,
              testing::MatchesRegex("device [01]: prepareMatmul: it is lost"));
  auto json = nlohmann::json::parse(toJson({2, 1, 0.05}, measurements));
  ASSERT_EQ(json["refused"].size(), 1u);
  EXPECT_EQ(json["refused"][0]["type"], "f8e4m3");
  EXPECT_EQ(json["refused"][0]["m"], 64);
  EXPECT_EQ(json["refused"][0]["reason"], measurements.refused[0].reason);
}

TEST(DeviceMeasurements, SecondsAreForWhatIsMeasured) {
  // Of 45 seconds: the smallest work, 81 matmuls, 10 copies, and 64 FP8 matmuls.
  EXPECT_DOUBLE_EQ(secondsOfEach({1, 1, 60}, false), 45.0 / 92);
  EXPECT_DOUBLE_EQ(secondsOfEach({1, 1, 60}, true), 45.0 / 156);
}

/// Whatever fails, the measurements end and say which call it was.
TEST(DeviceMeasurements, WhatFailsIsSaid) {
  for (const char *function : {"open", "makeTimer", "allocate", "allocatePinned", "prepareMatmul",
                               "runMatmul", "copy", "elapsed", "freeMemory", "join", "isRegistered",
                               "allReduce", "allocateShared", "close", "work"}) {
    setenv("WEFT_SIMULATOR_FAIL", concat(function, ":2").c_str(), 1);
    EXPECT_THAT(
        measureSimulator({2, 0, 0.05}).error().message,
        testing::ContainsRegex(concat("device [01].*(", function, "|failed).*: it is lost")));
  }
  unsetenv("WEFT_SIMULATOR_FAIL");
  setenv("WEFT_SIMULATOR_MEMORY", "65536", 1);
  EXPECT_THAT(
      measureSimulator({2, 0, 0.05}).error().message,
      testing::ContainsRegex("device [01], a simulator, has no .* left of 64.0 KiB to measure "
                             "with"));
  unsetenv("WEFT_SIMULATOR_MEMORY");
}

TEST(DeviceMeasurements, NeedALibrary) {
  setenv("WEFT_RT_CUDA", "/nowhere.so", 1);
  Plan plan;
  Result<Measurements> measured = measureDevices(plan, [](const std::string &) {});
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message,
              testing::HasSubstr("or WEFT_RT_CUDA: '/nowhere.so': No such file or directory"));
  unsetenv("WEFT_RT_CUDA");
}

TEST(Measurements, TooManyRanksAreRefused) {
  Result<Measurements> measured = measure({1 << 20, 1, 1}, [](const std::string &) {});
  ASSERT_FALSE(measured);
  EXPECT_THAT(measured.error().message,
              testing::HasSubstr("of memory to calibrate, this machine has"));
}

} // namespace
