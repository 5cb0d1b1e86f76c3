//===- TeamTest.cpp - threads that share a rank's work ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/Team.h"
#include "execution/PreparedMatmul.h"
#include "support/Random.h"

#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <set>
#include <thread>

using namespace weft::rt;

namespace {

TEST(TeamTest, RunsEachPartOnce) {
  for (int64_t threads : {1, 2, 3, 8}) {
    Team team(threads);
    EXPECT_EQ(team.size(), threads);
    for (int64_t parts : {0, 1, 2, 7, 100}) {
      std::vector<int> times(size_t(parts), 0);
      team.run(parts, [&](int64_t i) { ++times[size_t(i)]; });
      EXPECT_EQ(times, std::vector<int>(size_t(parts), 1)) << threads << " threads";
    }
  }
}

TEST(TeamTest, SeesWhatPartsBeforeWrote) {
  Team team(4);
  std::vector<int64_t> values(64, 0);
  constexpr int kJobs = 5000; // Most of them begin while helpers are still awake.
  for (int job = 0; job < kJobs; ++job) {
    team.run(64, [&](int64_t i) { values[size_t(i)] += values[size_t(i)] == job; });
  }
  EXPECT_EQ(values, std::vector<int64_t>(64, kJobs));
}

TEST(TeamTest, WakesHelpersThatSleep) {
  Team team(2);
  for (int job = 0; job < 3; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    std::atomic<int> done = 0;
    team.run(2, [&](int64_t) { ++done; });
    EXPECT_EQ(done, 2);
  }
}

TEST(TeamTest, SparesHelpers) {
  Team team(3);
  for (int64_t spared : {0, 1, 2, 5}) {
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::vector<int> times(200, 0);
    team.run(
        200,
        [&](int64_t i) {
          ++times[size_t(i)];
          std::lock_guard lock(mutex);
          threads.insert(std::this_thread::get_id());
        },
        spared);
    EXPECT_EQ(times, std::vector<int>(200, 1));
    EXPECT_LE(int64_t(threads.size()), std::max<int64_t>(1, 3 - spared));
  }
}

TEST(TeamTest, SharesPartsAmongThreads) {
  Team team(2);
  std::atomic<int> arrived = 0;
  // Each part waits for the other, so two threads must run them.
  team.run(2, [&](int64_t) {
    ++arrived;
    while (arrived != 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived, 2);
}

TEST(TeamTest, CutsAllIterations) {
  for (int64_t threads : {1, 2, 5}) {
    for (int64_t iterations : {0, 1, 2, 9, 63, 64, 1000, 4096, 38597377}) {
      Cut cut = cutIterations(iterations, threads);
      EXPECT_GE(cut.parts * cut.length, iterations);
      EXPECT_LT((cut.parts - 1) * cut.length, std::max<int64_t>(iterations, 1));
      EXPECT_LE(cut.parts, std::max<int64_t>(1, 4 * threads));
    }
  }
  EXPECT_EQ(cutIterations(1 << 20, 2).length % 64, 0);
}

/// Returns `count` numbers from -0.5 to 0.5.
std::vector<float> randomMatrix(uint64_t seed, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = float(randomBits(seed, 0, i) >> 40) * 0x1p-24f - 0.5f;
  }
  return values;
}

void runPart(const MatmulPart &part, const std::vector<float> &a, const std::vector<float> &b,
             std::vector<float> &c) {
  Result<std::unique_ptr<PreparedMatmul>> prepared = PreparedMatmul::make(part);
  ASSERT_TRUE(prepared) << prepared.error().message;
  Status status = (*prepared)->run(a.data(), b.data(), c.data());
  ASSERT_TRUE(status) << status.error().message;
}

TEST(MatmulPartsTest, TogetherAreTheMatmul) {
  for (int form = 0; form < 4; ++form) {
    Matmul whole;
    whole.transposeA = form & 1;
    whole.transposeB = form & 2;
    whole.m = 300, whole.n = 200, whole.k = 150;
    whole.lda = whole.transposeA ? whole.m : whole.k;
    whole.ldb = whole.transposeB ? whole.k : whole.n;
    whole.ldc = whole.n;
    for (int64_t batch : {1, 8}) {
      whole.batch = batch;
      whole.strideA = whole.m * whole.k, whole.strideB = whole.k * whole.n;
      whole.strideC = whole.m * whole.n;
      std::vector<float> a = randomMatrix(1, batch * whole.strideA);
      std::vector<float> b = randomMatrix(2, batch * whole.strideB);
      std::vector<float> expected(size_t(batch * whole.strideC), 7), got = expected;
      runPart({whole, 0, 0, 0}, a, b, expected);
      std::vector<MatmulPart> parts = cutMatmul(whole, 2);
      EXPECT_EQ(parts.size(), 4u);
      for (const MatmulPart &part : parts) {
        runPart(part, a, b, got);
      }
      for (size_t i = 0; i < got.size(); ++i) {
        ASSERT_NEAR(got[i], expected[i], 1e-5) << "form " << form << ", element " << i;
      }
    }
  }
}

/// Threads share the elements of a sum of matmuls, never its terms.
TEST(MatmulPartsTest, SumsOfMatmuls) {
  Matmul sum;
  sum.m = 130, sum.n = 96, sum.k = 48, sum.batch = 8;
  sum.lda = sum.k, sum.ldb = sum.ldc = sum.n;
  sum.strideA = sum.m * sum.k; // The same B for all.
  std::vector<float> a = randomMatrix(1, sum.batch * sum.strideA);
  std::vector<float> b = randomMatrix(2, sum.k * sum.n);
  std::vector<float> got(size_t(sum.m * sum.n), 7);
  for (const MatmulPart &part : cutMatmul(sum, 2)) {
    EXPECT_EQ(part.matmul.batch, 8);
    runPart(part, a, b, got);
  }
  for (int64_t i = 0; i < sum.m; ++i) {
    for (int64_t j = 0; j < sum.n; ++j) {
      double expected = 0;
      for (int64_t p = 0; p < sum.batch; ++p) {
        for (int64_t l = 0; l < sum.k; ++l) {
          expected += double(a[size_t(p * sum.strideA + i * sum.k + l)]) * b[size_t(l * sum.n + j)];
        }
      }
      ASSERT_NEAR(got[size_t(i * sum.n + j)], expected, 1e-4) << i << ", " << j;
    }
  }
}

TEST(MatmulPartsTest, SmallOnesStayWhole) {
  Matmul small;
  small.m = small.n = small.k = 64;
  EXPECT_EQ(cutMatmul(small, 8).size(), 1u);
  small.m = small.n = small.k = 4096;
  EXPECT_EQ(cutMatmul(small, 1).size(), 1u);
  EXPECT_EQ(cutMatmul(small, 8).size(), 16u);
  small.m = 1; // A row: only columns can be cut.
  small.k = 1 << 20;
  EXPECT_EQ(cutMatmul(small, 2).size(), 4u);
}

TEST(MatmulPartsTest, AreNotLargerThanTheScratchMemoryOfAThread) {
  Matmul large;
  large.m = 3000, large.n = 50257, large.k = 64;
  for (ElementType type : {ElementType::F32, ElementType::BF16}) {
    large.type = type;
    for (const MatmulPart &part : cutMatmul(large, 2)) {
      EXPECT_LE(part.matmul.m, 2048 + 64);
      EXPECT_LE(part.matmul.n, 2048 + 64);
      if (type == ElementType::BF16) { // Sums in float32.
        EXPECT_LE(part.matmul.m * part.matmul.n, (1 << 20) + 2048 * 64);
      }
    }
  }
}

} // namespace
