//===- PrefetcherTest.cpp - batches come whole, in order, and end ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "data/Prefetcher.h"
#include "backends/local/LocalBackend.h"
#include "execution/HostExecutor.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace weft::rt;

namespace {

class Silent : public Observer {
  void observe(int64_t, uint32_t, const void *) override {}
};

/// Takes a batch without an error; returns false after the end.
bool takes(Prefetcher &prefetcher, Executor &executor) {
  Result<bool> taken = prefetcher.take(executor);
  EXPECT_EQ(errorOf(taken), "");
  return taken && *taken;
}

class Prefetch : public testing::Test {
protected:
  Prefetch() {
    std::string text;
    for (size_t i = 0; i < 5000; ++i) {
      text.push_back(char(i * i % 251));
    }
    options.data = folder.write("data", text);
    options.seed = 5;
    options.validationSplit = 0.2;
    options.validationEvery = 3;
    options.validationSteps = 2;
  }

  void open(int64_t steps) { ASSERT_EQ(errorOf(data.open({&program, 1}, options, 0, steps)), ""); }

  /// Returns the expected values of a rank's input `number` (0 tokens, 1 targets) of a batch.
  std::vector<int32_t> expected(const BatchChoice &batch, const Executor &executor, size_t number) {
    const TensorLayout &layout = program.inputs[number].layout;
    InputShard shard = {number == 0 ? DataField::Tokens : DataField::Targets, layout.type,
                        localShape(layout, program.mesh),
                        localOffset(layout, program.mesh, executor.coordinates()),
                        localShape(layout, program.mesh)};
    std::vector<int32_t> tokens(shard.bytes() / sizeof(int32_t));
    EXPECT_TRUE(batch.sampler->fill(batch.number, kToyBatch, shard,
                                    reinterpret_cast<char *>(tokens.data())));
    return tokens;
  }

  /// Runs `body` on every rank, with an executor that is prepared.
  void onEveryRank(const std::function<void(Executor &)> &body) {
    RunResult result =
        makeLocalBackend(program.rankCount(), {})->run([&](Communicator &communicator) {
          Silent observer;
          HostExecutor executor(program, kToyKernels, communicator.rank());
          ASSERT_TRUE(executor.prepare(communicator, observer));
          body(executor);
        });
    EXPECT_FALSE(result.failure);
  }

  Program program = makeToy(2, 2);
  TemporaryFolder folder;
  DataOptions options;
  RunData data;
};

TEST_F(Prefetch, OrderHasStepsAndValidations) {
  open(7);
  std::string order;
  BatchOrder batches(data);
  while (std::optional<BatchChoice> batch = batches.next()) {
    bool trains = batch->sampler == data.trainingBatch(0).sampler;
    order += (trains ? " " : " v") + std::to_string(batch->number);
  }
  EXPECT_EQ(order, " 0 1 2 v0 v1 3 4 5 v0 v1 6 v0 v1");
  open(0);
  EXPECT_EQ(BatchOrder(data).next()->sampler, data.validationBatch(0).sampler);
}

TEST_F(Prefetch, EveryRankGetsItsShardOfEveryBatch) {
  open(100);
  Prefetcher prefetcher({&program, 1}, {0, program.rankCount()}, Prefetcher::Seconds(60));
  // Two ranks share a shard, so there are two of tokens and two of targets.
  EXPECT_EQ(prefetcher.bytes(), 2u * 2 * (kToyBatch / 2) * kToySequence * 4 * Prefetcher::kSlots);
  prefetcher.start(BatchOrder(data));
  onEveryRank([&](Executor &executor) {
    BatchOrder order(data);
    while (std::optional<BatchChoice> batch = order.next()) {
      ASSERT_TRUE(takes(prefetcher, executor));
      for (size_t input : {0, 1}) {
        std::vector<int32_t> tokens = expected(*batch, executor, input);
        BufferView taken = executor.view(program.inputs[input].buffer);
        ASSERT_EQ(std::memcmp(taken.data(), tokens.data(), tokens.size() * sizeof(int32_t)), 0);
      }
    }
  });
  EXPECT_TRUE(prefetcher.endsWithin(Prefetcher::Seconds(60)));
}

/// Two micro-batches of four samples on two ranks: one rank gets samples 0, 1, 4, 5, the other 2,
/// 3, 6, 7.
TEST_F(Prefetch, OfEveryMicroBatchARankGetsItsShard) {
  program.microBatches = 2;
  for (NamedTensor &input : program.inputs) {
    if (!input.layout.globalShape.empty()) {
      input.layout = {ElementType::I32, {2, kToyBatch / 2, kToySequence}, {{}, {0}, {}}};
    }
  }
  open(1);
  Prefetcher prefetcher({&program, 1}, {0, program.rankCount()}, Prefetcher::Seconds(60));
  prefetcher.start(BatchOrder(data));
  onEveryRank([&](Executor &executor) {
    BatchChoice batch = *BatchOrder(data).next();
    ASSERT_TRUE(takes(prefetcher, executor));
    std::vector<int32_t> all(kToyBatch * kToySequence);
    InputShard whole = {DataField::Tokens,
                        ElementType::I32,
                        {kToyBatch, kToySequence},
                        {0, 0},
                        {kToyBatch, kToySequence}};
    ASSERT_TRUE(
        batch.sampler->fill(batch.number, kToyBatch, whole, reinterpret_cast<char *>(all.data())));
    BufferView taken = executor.view(program.inputs[0].buffer);
    const auto *rows = static_cast<const int32_t *>(taken.data());
    int64_t first = executor.coordinates()[0] * 2;
    for (int64_t sample : {first, first + 1, first + 4, first + 5}) {
      EXPECT_EQ(std::memcmp(rows, all.data() + sample * kToySequence, kToySequence * 4), 0);
      rows += kToySequence;
    }
  });
  EXPECT_TRUE(prefetcher.endsWithin(Prefetcher::Seconds(60)));
}

TEST_F(Prefetch, ARankThatWaitsIsWokenByTheEnd) {
  open(100);
  Prefetcher prefetcher({&program, 1}, {0, program.rankCount()}, Prefetcher::Seconds(600));
  prefetcher.start(BatchOrder(data));
  onEveryRank([&](Executor &executor) {
    // Rank 3 takes nothing, so that the others have to wait for a free slot in the end.
    int64_t taken = 0;
    while (executor.rank() != 3 && takes(prefetcher, executor)) {
      ++taken;
      if (taken == Prefetcher::kSlots && executor.rank() == 0) {
        prefetcher.stop();
      }
    }
    EXPECT_LE(taken, Prefetcher::kSlots);
  });
  EXPECT_TRUE(prefetcher.endsWithin(Prefetcher::Seconds(60)));
}

TEST_F(Prefetch, NobodyWaitsForEver) {
  open(100);
  Prefetcher prefetcher({&program, 1}, {0, program.rankCount()},
                        Prefetcher::Seconds(0.05)); // Its thread never starts.
  onEveryRank([&](Executor &executor) {
    EXPECT_EQ(errorOf(prefetcher.take(executor)),
              "rank " + std::to_string(executor.rank()) + " waited 0.05 s for its tokens");
  });
}

TEST_F(Prefetch, AnErrorComesWithItsBatchAndNotBefore) {
  // The first validation samples are invalid, in a file too large to be checked when opened.
  uint64_t count = Dataset::kCheckedAtOpen + 4096;
  options.data = folder.write("large.bin", "");
  std::filesystem::resize_file(options.data, count * 2);
  uint64_t samples = (count - 1) / kToySequence, last = uint64_t(double(samples) * 0.2);
  std::fstream stream(options.data, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(std::streamoff((samples - last) * kToySequence * 2 + 10));
  stream.write("\x00\x01", 2);
  stream.close();
  open(7);
  Prefetcher prefetcher({&program, 1}, {0, program.rankCount()}, Prefetcher::Seconds(60));
  prefetcher.start(BatchOrder(data));
  onEveryRank([&](Executor &executor) {
    for (int64_t step = 0; step < 3; ++step) {
      ASSERT_TRUE(takes(prefetcher, executor));
    }
    EXPECT_THAT(errorOf(prefetcher.take(executor)),
                testing::HasSubstr("has the token 256 at position " +
                                   std::to_string((samples - last) * kToySequence + 5)));
  });
}

} // namespace
