//===- FramesTest.cpp - running programs with micro-batches in flight -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Whatever the order of forward and backward, a run has the same bits, on the host, on an
// executor that lends copies, and on CUDA executors with the simulator.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"
#include "backends/local/LocalBackend.h"
#include "execution/NonFinite.h"
#include "testing/Simulator.h"
#include "tests/ErrorOf.h"
#include "tests/ToyPipeline.h"
#include "tests/execution/FarExecutor.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

using namespace weft::rt;

namespace {

/// The values that rank 0 observes, by name, and its table after the last step.
using Values = std::map<std::string, std::vector<double>>;

class Recorder : public Observer {
public:
  Recorder(const Program &program, Values &values) : program(program), values(values) {}

  void observe(int64_t rank, uint32_t observation, const void *data) override {
    if (rank == 0) {
      values[program.observations[observation].name].push_back(*static_cast<const double *>(data));
    }
  }

private:
  const Program &program;
  Values &values;
};

/// Micro-batch m has the tokens 64 m to 64 m + 31.
void fillInputs(const Program &program, Executor &executor) {
  for (const NamedTensor &input : program.inputs) {
    BufferDraft draft = executor.draft(input.buffer);
    std::memset(draft.data(), 0, program.buffers[input.buffer].bytes);
    if (input.name == "seed") {
      continue;
    }
    std::vector<int64_t> shape = localShape(input.layout, program.mesh);
    int64_t tokens = shape[1] * shape[2];
    for (int64_t i = 0; i < shape[0] * tokens; ++i) {
      int64_t token = 64 * (i / tokens) + i % tokens;
      static_cast<int32_t *>(draft.data())[i] =
          int32_t(input.name == "targets" ? token * token % 256 : token);
    }
  }
}

using Then = std::function<void(Executor &)>;

void run(const Program &program, const MakeExecutor &make, Observer &observer, const Then &then) {
  ASSERT_EQ(errorOf(checkWellFormed(program)), "");
  RunResult result =
      makeLocalBackend(program.rankCount(), {})->run([&](Communicator &communicator) {
        auto executor = make(program, kToyPipelineKernels, communicator.rank(), 1);
        if (executor->prepare(communicator, observer)) {
          fillInputs(program, *executor);
          if (executor->runInit() == Outcome::Done) {
            then(*executor);
            executor->end();
          }
        }
      });
  EXPECT_FALSE(result.failure);
}

Values valuesOf(const Program &program, const MakeExecutor &make) {
  Values values;
  Recorder recorder(program, values);
  run(program, make, recorder, [&](Executor &executor) {
    for (int step = 0; step < 5; ++step) {
      EXPECT_EQ(executor.runStep(), Outcome::Done);
    }
    if (executor.rank() == 0) {
      BufferView view = executor.view(program.parameters[0].buffer);
      const double *table = static_cast<const double *>(view.data());
      size_t count = view.bytes().size() / sizeof(double);
      values["table"].assign(table, table + count);
    }
  });
  return values;
}

std::unique_ptr<Executor> makeFarExecutor(const Program &program, const KernelCode *kernels,
                                          int64_t rank, int64_t threads) {
  return std::make_unique<FarExecutor>(program, kernels, rank, threads);
}

Values valuesOnDevices(const Program &program, uint64_t seed, bool usesGraphs) {
  static const DeviceImage image = {80, true, "", 1};
  cuda::Simulator simulator({.seed = seed, .devices = program.rankCount()},
                            {{&program, 1}, kToyPipelineKernels});
  return valuesOf(
      program, [&](const Program &program, const KernelCode *kernels, int64_t rank, int64_t) {
        return std::make_unique<cuda::CudaExecutor>(program, kernels, rank, simulator.library(),
                                                    rank, std::span(&image, 1),
                                                    cuda::CudaOptions{.usesGraphs = usesGraphs});
      });
}

const std::pair<const char *, uint32_t> kOrders[] = {
    {kOneInFlight, 1}, {kTwoInFlight, 2}, {kThreeInFlight, 3}, {kAllForwardFirst, 4}};

TEST(Frames, EveryOrderHasTheSameBits) {
  for (auto [data, model] : {std::pair(1, 1), {2, 2}}) {
    Values one = valuesOf(makeToyPipeline(data, model, kOneInFlight, 1), makeHostExecutor);
    EXPECT_LT(one["loss"].back(), 0.5 * one["loss"].front());
    EXPECT_EQ(one["dropped/toy"].size(), 20);
    for (auto [order, frames] : kOrders) {
      Program program = makeToyPipeline(data, model, order, frames);
      EXPECT_EQ(valuesOf(program, makeHostExecutor), one) << order;
      EXPECT_EQ(valuesOf(program, makeFarExecutor), one) << order;
      for (uint64_t seed : {1, 2, 3}) {
        EXPECT_EQ(valuesOnDevices(program, seed, /*usesGraphs=*/false), one) << order;
        EXPECT_EQ(valuesOnDevices(program, seed, /*usesGraphs=*/true), one) << order;
      }
    }
  }
}

/// So the order above would be noticed if frames were mistaken.
TEST(Frames, AFrameTooFewSpoilsValues) {
  Values one = valuesOf(makeToyPipeline(1, 1, kOneInFlight, 1), makeHostExecutor);
  Values wrong = valuesOf(makeToyPipeline(1, 1, "F0@0 F1@0 B0@0 F2@0 B1@0 F3@0 B2@0 B3@0", 1),
                          makeHostExecutor);
  EXPECT_NE(wrong["table"], one["table"]);
}

TEST(Frames, TheOriginOfAValueThatIsNotFiniteNamesItsFrame) {
  Program program = makeToyPipeline(1, 1, kTwoInFlight, 2);
  Values values;
  Recorder recorder(program, values);
  for (const MakeExecutor &make : {MakeExecutor(makeHostExecutor), MakeExecutor(makeFarExecutor)}) {
    run(program, make, recorder, [&](Executor &executor) {
      double large = 1e200; // Its square is infinite.
      executor.write(program.parameters[0].buffer, 64 * sizeof large,
                     {reinterpret_cast<const char *>(&large), sizeof large});
      ASSERT_EQ(executor.runStep(), Outcome::NotFinite);
      std::optional<Finding> finding = replayStep(program, executor);
      ASSERT_TRUE(finding);
      EXPECT_EQ(describe(program, *finding),
                "the first value that is not finite is inf, element 0 of buffer 9 of frame 1, "
                "written by step instruction 7 (micro-batch 1/loss) on rank 0");
    });
  }
}

} // namespace
