//===- CudaStepsTest.cpp - the calls of a step -----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// After the first steps, each step makes the same calls: those that enqueue work, and one
// wait for the device, after which the host reads the loss.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"
#include "executable/Executable.h"
#include "execution/HostExecutor.h"
#include "testing/Simulator.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

using Counts = std::map<std::string, int64_t>;

/// The functions whose calls are counted: all but those that poll, whose number varies.
const char *const kFunctions[] = {
    "allocate",       "free",          "allocatePinned", "freePinned",    "makeStream",
    "freeStream",     "makeEvent",     "freeEvent",      "load",          "unload",
    "entry",          "nameMatmuls",   "prepareMatmul",  "freeMatmul",    "prepareAttention",
    "freeAttention",  "join",          "split",          "end",           "freeCommunicator",
    "allocateShared", "freeShared",    "registerMemory", "isRegistered",  "unregister",
    "seal",           "unseal",        "beginCapture",   "endCapture",    "freeGraph",
    "giveUp",         "open",          "close",          "record",        "wait",
    "await",          "copyToDevice",  "copyToHost",     "copy",          "zero",
    "writeProgress",  "countProgress", "launch",         "runMatmul",     "runAttention",
    "launchGraph",    "allReduce",     "allGather",      "reduceScatter", "send",
    "receive",        "beginGroup",    "endGroup"};

/// The small program, with an input that is large.
class CudaStepsTest : public testing::TestWithParam<bool> {
protected:
  static FindExecutors executorsOn(const Simulator &simulator) {
    auto make = [&simulator, how = CudaOptions{.usesGraphs = GetParam()}](
                    const Program &program, const KernelCode *kernels, int64_t rank, int64_t) {
      static const DeviceImage image = {80, true, "", 1};
      return std::make_unique<CudaExecutor>(program, kernels, rank, simulator.library(), rank,
                                            std::span(&image, 1), how);
    };
    return [make] { return Result<MakeExecutor>(MakeExecutor(make)); };
  }

  /// Returns the calls of a run of `steps` steps.
  Counts run(int64_t ranks, int64_t steps) {
    Program program = makeToy(ranks, 1);
    auto number = uint32_t(program.buffers.size());
    uint64_t bytes = 1 << 17;
    if (ranks == 1) {
      program.buffers.push_back(
          {bytes, program.arenaBytes, BufferClass::Input, true, ElementType::I64});
      program.arenaBytes += bytes;
      program.inputs.push_back({"step_number", {ElementType::I64, {}, {}}, number});
    }
    Simulator simulator({.seed = uint64_t(steps), .devices = ranks}, {{&program, 1}, kToyKernels});
    FindExecutors find = executorsOn(simulator);
    std::string count = std::to_string(steps);
    std::vector<const char *> arguments = {"--data", data.c_str(), "--steps", count.c_str()};
    Result<Options> options = parseOptions(program, arguments);
    EXPECT_EQ(errorOf(options), "");
    testing::internal::CaptureStdout();
    EXPECT_EQ(int(train({&program, 1}, kToyKernels, *options, find)), 0);
    testing::internal::GetCapturedStdout();
    Counts counts;
    for (const char *function : kFunctions) {
      counts[function] = simulator.calls(function);
    }
    return counts;
  }

  /// Returns the calls of each step after the first ones, without functions that it does not call.
  Counts callsOfAStep(int64_t ranks) {
    Counts few = run(ranks, 5), more = run(ranks, 6), many = run(ranks, 20), each;
    for (const auto &[function, count] : few) {
      int64_t step = more[function] - count;
      EXPECT_EQ(many[function] - count, 15 * step) << function;
      if (step != 0) {
        each[function] = step;
      }
    }
    return each;
  }

  TemporaryFolder folder;
  std::string data = folder.write("data", std::string(4000, 'x'));
};

TEST_P(CudaStepsTest, AreTheSameCallsEachTime) {
  Counts one = {{"await", 1},  {"copy", 1},   {"copyToDevice", 3}, {"copyToHost", 2},
                {"launch", 4}, {"record", 7}, {"wait", 6},         {"writeProgress", 7}};
  Counts graphs = {{"await", 1},  {"copy", 1}, {"copyToDevice", 3}, {"launchGraph", 2},
                   {"record", 3}, {"wait", 2}, {"writeProgress", 1}};
  EXPECT_EQ(callsOfAStep(1), GetParam() ? graphs : one);
}

/// Calls of two ranks together. Each polls instead of waiting once.
TEST_P(CudaStepsTest, WithOtherRanksToo) {
  Counts one = {{"allReduce", 4}, {"copyToDevice", 4}, {"copyToHost", 4},    {"launch", 8},
                {"record", 10},   {"wait", 8},         {"writeProgress", 14}};
  Counts graphs = {{"copyToDevice", 4}, {"launchGraph", 4}, {"record", 2}, {"writeProgress", 2}};
  EXPECT_EQ(callsOfAStep(2), GetParam() ? graphs : one);
}

TEST_P(CudaStepsTest, OfRankClassesHaveTheBitsOfTheHost) {
  Programs programs = makeToyClasses(2);
  auto train = [&](const FindExecutors &find, const char *saved) {
    std::string path = folder.file(saved);
    std::vector<const char *> arguments = {
        "--data",     data.c_str(),         "--steps", "3", "--save",
        path.c_str(), "--validation-split", "0.2"};
    Result<Options> options = parseOptions(programs.front(), arguments);
    EXPECT_EQ(errorOf(options), "");
    testing::internal::CaptureStdout();
    EXPECT_EQ(int(weft::rt::train(programs, kToyKernels, *options, find)), 0);
    testing::internal::GetCapturedStdout();
    return folder.read(saved);
  };
  Simulator simulator({.seed = 1, .devices = 4, .cutsKernels = false}, {programs, kToyKernels});
  EXPECT_EQ(train(executorsOn(simulator), "device"),
            train([] { return Result<MakeExecutor>(makeHostExecutor); }, "host"));
}

INSTANTIATE_TEST_SUITE_P(All, CudaStepsTest, testing::Bool(), [](const auto &info) {
  return std::string(info.param ? "AsGraphs" : "OneByOne");
});

} // namespace
