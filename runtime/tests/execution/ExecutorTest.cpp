//===- ExecutorTest.cpp - running programs made by hand ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/local/LocalBackend.h"
#include "execution/HostExecutor.h"
#include "execution/NonFinite.h"
#include "tests/ErrorOf.h"
#include "tests/Toy.h"

#include <atomic>
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <new>
#include <thread>

using namespace weft::rt;

// Counts the allocations of every thread, to show that the steady state has none.
// Sanitizers have operators of their own.
#ifndef WEFT_SANITIZED
static std::atomic<uint64_t> allocations = 0;

void *operator new(size_t size) {
  ++allocations;
  return std::malloc(size);
}
void *operator new(size_t size, std::align_val_t alignment) {
  ++allocations;
  size_t unit = size_t(alignment);
  return std::aligned_alloc(unit, (size + unit - 1) / unit * unit);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace {

/// Keeps rank 0's losses and norms.
class Recorder : public Observer {
public:
  explicit Recorder(const Program &program) : program(program) {
    losses.reserve(1000);
    norms.reserve(1000);
  }

  void observe(int64_t rank, uint32_t observation, const void *data) override {
    const std::string &name = program.observations[observation].name;
    if (rank == 0 && name == "loss") {
      losses.push_back(*static_cast<const double *>(data));
    } else if (rank == 0 && name == "gradient_norm") {
      norms.push_back(*static_cast<const double *>(data));
    }
  }

  std::vector<double> losses, norms;

private:
  const Program &program;
};

/// Sets one element of a buffer.
template <typename T> void set(Executor &executor, uint32_t buffer, int64_t element, T value) {
  executor.write(buffer, uint64_t(element) * sizeof(T),
                 {reinterpret_cast<const char *>(&value), sizeof(T)});
}

/// A program's ranks on the local backend, with fixed tokens.
class Cluster {
public:
  explicit Cluster(Program made) : program(std::move(made)), recorder(program) {
    EXPECT_EQ(errorOf(checkWellFormed(program)), "");
    for (int64_t rank = 0; rank < program.rankCount(); ++rank) {
      executors.push_back(std::make_unique<HostExecutor>(program, kToyKernels, rank, 2));
    }
  }

  RunResult run(const std::function<void(Executor &)> &body) {
    return makeLocalBackend(program.rankCount(), {})->run([&](Communicator &communicator) {
      Executor &executor = *executors[size_t(communicator.rank())];
      if (executor.prepare(communicator, recorder)) {
        fillInputs(executor);
        if (executor.runInit() == Outcome::Done) {
          body(executor);
        }
      }
    });
  }

  /// Token t of row r is (3r + 5t) mod 256, its target the next one's square mod 256.
  void fillInputs(Executor &executor) {
    for (const NamedTensor &input : program.inputs) {
      if (input.name == "seed") {
        set(executor, input.buffer, 0, int64_t(7));
        continue;
      }
      std::vector<int64_t> shape = localShape(input.layout, program.mesh);
      std::vector<int64_t> offset = localOffset(input.layout, program.mesh, executor.coordinates());
      BufferDraft draft = executor.draft(input.buffer);
      int32_t *out = static_cast<int32_t *>(draft.data());
      for (int64_t i = 0; i < shape[0] * shape[1]; ++i) {
        int64_t token = 3 * (offset[0] + i / shape[1]) + 5 * (i % shape[1]);
        *out++ = int32_t((input.name == "targets" ? token * token : token) % 256);
      }
    }
  }

  Program program;
  Recorder recorder;
  std::vector<std::unique_ptr<Executor>> executors;
};

std::vector<double> lossesOf(int64_t data, int64_t model, int steps) {
  Cluster cluster(makeToy(data, model));
  RunResult result = cluster.run([&](Executor &executor) {
    for (int i = 0; i < steps && executor.runStep() == Outcome::Done; ++i) {
    }
  });
  EXPECT_FALSE(result.failure);
  EXPECT_EQ(cluster.recorder.losses.size(), size_t(steps));
  return cluster.recorder.losses;
}

TEST(Executor, LearnsAndEveryMeshGivesTheSame) {
  std::vector<double> alone = lossesOf(1, 1, 20);
  EXPECT_LT(alone.back(), 0.5 * alone.front());
  for (auto [data, model] : {std::pair(2, 1), {1, 2}, {2, 2}, {8, 1}, {4, 4}}) {
    std::vector<double> losses = lossesOf(data, model, 20);
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], alone[i], 1e-13) << data << "x" << model << " step " << i;
    }
    EXPECT_EQ(losses, lossesOf(data, model, 20)); // The same bits.
  }
}

#ifndef WEFT_SANITIZED
TEST(Executor, SteadyStateAllocatesNothing) {
  Cluster cluster(makeToy(2, 2));
  std::atomic<int> ready = 0, done = 0;
  uint64_t before = 0, after = 1;
  cluster.run([&](Executor &executor) {
    executor.runStep();
    ++ready;
    while (ready < 4) { // Until all have left the start behind.
      std::this_thread::yield();
    }
    if (executor.rank() == 0) {
      before = allocations;
    }
    for (int i = 0; i < 100; ++i) {
      executor.runStep();
    }
    if (executor.rank() == 0) {
      after = allocations;
    }
    ++done;
    while (done < 4) { // Until rank 0 has looked.
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(before, after);
}
#endif

/// Returns the contents of a buffer of F64.
std::vector<double> valuesOf(const Executor &executor, uint32_t buffer) {
  BufferView view = executor.view(buffer);
  const double *values = static_cast<const double *>(view.data());
  return {values, values + view.bytes().size() / sizeof(double)};
}

/// Returns the findings of all ranks after a step from a table with `value` in element `token`.
std::string findingWith(int64_t token, double value) {
  Cluster cluster(makeToy(2, 2));
  std::vector<std::optional<Finding>> findings(4);
  std::vector<std::vector<double>> tables(4);
  RunResult result = cluster.run([&](Executor &executor) {
    if (executor.coordinates()[1] == token / 128) {
      set(executor, 0, token % 128, value);
    }
    std::vector<double> before = valuesOf(executor, 0);
    EXPECT_EQ(executor.runStep(), Outcome::NotFinite);
    findings[size_t(executor.rank())] = replayStep(cluster.program, executor);
    // Nothing was updated.
    std::vector<double> after = valuesOf(executor, 0);
    EXPECT_EQ(std::memcmp(before.data(), after.data(), 128 * sizeof(double)), 0); // NaNs, too.
  });
  EXPECT_FALSE(result.failure);
  std::optional<Finding> first = earliest(findings);
  return first ? describe(cluster.program, *first) : "nothing";
}

TEST(NotFinite, IsFoundInTheInstructionThatMadeIt) {
  // Token 3 is in the first table half and in row 1, hence on data rank 0: rank 0.
  EXPECT_EQ(findingWith(3, 1e200),
            "the first value that is not finite is inf, element 0 of buffer 5, written by step "
            "instruction 0 (table: loss and gradient) on rank 0");
}

TEST(NotFinite, IsFoundInTheParametersFirst) {
  EXPECT_EQ(findingWith(3, std::nan("")),
            "'table' held nan already before the step, in element 3 of its shard on rank 0");
}

TEST(NotFinite, NegativeInfinityCountsOnlyIfNothingElseIsFound) {
  Finding mask = {0, 1, 0, 0, -INFINITY}, late = {1, 5, 0, 0, NAN}, early = {2, 4, 0, 0, INFINITY};
  const std::optional<Finding> all[] = {mask, late, {}, early}, masks[] = {{}, mask};
  EXPECT_EQ(earliest(all)->instruction, 4);
  EXPECT_EQ(earliest(masks)->instruction, 1);
  EXPECT_FALSE(earliest({}));
}

TEST(NotFinite, WhatCameFromAnotherClassIsNotTheFirst) {
  Finding own = {0, 7, 0, 0, NAN}, received = {1, 2, 0, 0, NAN, true};
  const std::optional<Finding> both[] = {own, received}, one[] = {{}, received};
  EXPECT_EQ(earliest(both)->rank, 0);
  EXPECT_EQ(earliest(one)->rank, 1);
}

TEST(NotFinite, StopsAllRanksWhenOnlyOneSeesIt) {
  Program program = makeToy(2, 2);
  program.stepBody().erase(program.stepBody().begin() +
                           1); // The sum of losses: now each has its own.
  program.stepBody()[3].waits = {1};
  Cluster cluster(std::move(program));
  RunResult result = cluster.run([&](Executor &executor) {
    if (executor.rank() == 3) {
      set(executor, 0, 3, std::nan(""));
      set(executor, 5, 0, 0.0);
      // Token 131 is element 3 of the second half; rank 3 sees rows 4 to 7.
      set(executor, 2, 0, int32_t(131));
    }
    EXPECT_EQ(executor.runStep(), Outcome::NotFinite);
  });
  EXPECT_FALSE(result.failure);
}

TEST(Overflow, StopsAllRanksBeforeTheUpdateAndIsToldOfOnce) {
  Program program = makeToy(2, 2);
  Observation &observed = program.observations[1];
  observed.name = "load/layers.1";
  observed.limit = 2.5;
  observed.mean = 2;
  // The gradient's buffer holds the table: element 131 is number 3 on ranks 1 and 3.
  program.stepBody()[4].operands[0].buffer = 0;
  Cluster cluster(std::move(program));
  std::vector<std::optional<Overflow>> found(4);
  RunResult result = cluster.run([&](Executor &executor) {
    EXPECT_EQ(executor.runStep(), Outcome::Done);
    EXPECT_FALSE(executor.overflow());
    if (executor.coordinates()[1] == 1) {
      set(executor, 0, 3, 3.5);
      set(executor, 0, 4, 2.6);
    }
    std::vector<double> before = valuesOf(executor, 0);
    EXPECT_EQ(executor.runStep(), Outcome::Overflow);
    EXPECT_EQ(valuesOf(executor, 0), before);
    found[size_t(executor.rank())] = executor.overflow();
  });
  EXPECT_FALSE(result.failure);
  EXPECT_FALSE(found[0] || found[2]);
  ASSERT_TRUE(found[1] && found[3]);
  EXPECT_EQ(
      describe(cluster.program, *found[3]),
      "layers.1: expert 131 gets 3.5 tokens of a sequence, its buffer holds 2.5, the mean is 2; "
      "the step changed nothing, compile with routing.buffer_factor of at least 1.75");
}

TEST(Overflow, WhatIsPaddingIsNotLookedAt) {
  Program program = makeToy(2, 2);
  Observation &observed = program.observations[1];
  observed.limit = 2.5;
  observed.layout = {ElementType::F64, {3, 6}, {{0}, {1}}, {4, 8}};
  // The last rank has one sequence of two, and two experts of four.
  const double values[] = {1, 2.6, 9, 9, 9, 9, 9, 9};
  const int64_t last[] = {1, 1}, first[] = {0, 0};
  std::optional<Overflow> found = findOverflow(program, 1, last, values);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, 2.6);
  EXPECT_EQ(found->expert, 5);
  EXPECT_EQ(findOverflow(program, 1, first, values)->value, 9);
}

TEST(Overflow, TheEarlierLayerGoesFirstAndOfOneTheGreater) {
  Overflow early = {1, 0, 5}, late = {2, 0, 9}, greater = {1, 3, 6};
  EXPECT_TRUE(goesBefore(early, late));
  EXPECT_FALSE(goesBefore(late, early));
  EXPECT_TRUE(goesBefore(greater, early));
  EXPECT_FALSE(goesBefore(early, early));
}

#ifndef WEFT_SANITIZED // Their allocators end the process instead.
TEST(Matmuls, HaveNoMemoryForCopies) {
  Matmul matmul;
  matmul.isTF32 = true;
  matmul.m = matmul.n = matmul.k = matmul.ldb = matmul.ldc = 2;
  matmul.lda = int64_t(1) << 46;
  Result<std::unique_ptr<PreparedMatmul>> prepared = PreparedMatmul::make({matmul, 0, 0, 0});
  ASSERT_TRUE(prepared) << prepared.error().message;
  float c[4];
  EXPECT_EQ(errorOf((*prepared)->run(nullptr, nullptr, c)),
            "no memory for copies of the operands of a matmul, 256 TiB");
}

TEST(Executor, AnArenaThatCannotBeHadIsAnError) {
  Program program = makeToy(1, 1);
  program.arenaBytes = uint64_t(1) << 60;
  Recorder recorder(program);
  HostExecutor executor(program, kToyKernels, 0);
  RunResult result =
      makeLocalBackend(program.rankCount(), {})->run([&](Communicator &communicator) {
        EXPECT_FALSE(executor.prepare(communicator, recorder));
      });
  ASSERT_TRUE(result.failure);
  EXPECT_EQ(result.failure->message, "rank 0 cannot allocate its arena of 1.00 EiB");
}
#endif

void runMatmul(const Matmul &matmul, const float *a, const float *b, float *c) {
  Result<std::unique_ptr<PreparedMatmul>> prepared = PreparedMatmul::make({matmul, 0, 0, 0});
  ASSERT_TRUE(prepared) << prepared.error().message;
  Status status = (*prepared)->run(a, b, c);
  ASSERT_TRUE(status) << status.error().message;
}

TEST(Matmuls, OfDevicesAreRefused) {
  Matmul matmul = {ElementType::F64, false, false, 8, 8, 8, 8, 8, 8};
  auto refusal = [&] { return PreparedMatmul::make({matmul, 0, 0, 0}).error().message; };
  EXPECT_EQ(refusal(), "a matmul of f64 matrices is for CUDA devices, not for this processor");
  matmul.type = ElementType::F8E4M3;
  EXPECT_EQ(refusal(), "a matmul of f8e4m3 matrices is for CUDA devices, not for this processor");
  matmul.type = ElementType::F32;
  matmul.epilogue.hasAddend = true;
  EXPECT_EQ(refusal(), "a matmul of f32 matrices with an epilogue is for CUDA devices, not for "
                       "this processor");
}

/// Operands of a batch with gaps, and with a stride of 0 in one of A, B and C.
TEST(Matmuls, AreAsDefined) {
  for (int form = 0; form < 16; ++form) {
    bool transposeA = form & 1, transposeB = form & 2;
    int64_t m = 3, n = 4, k = 5, batch = 2, strides[] = {40, 50, 30};
    if (form / 4 > 0) {
      strides[form / 4 - 1] = 0;
    }
    auto [strideA, strideB, strideC] = strides;
    Matmul matmul = {ElementType::F32, transposeA, transposeB, m, n, k, 7, 8, 6, batch,
                     strideA,          strideB,    strideC};
    std::vector<float> a(80), b(100), c(60, NAN), expected = c;
    for (size_t i = 0; i < b.size(); ++i) {
      b[i] = float(int(i % 7) - 3);
      a[i % a.size()] = float(int(i % 5) - 2);
    }
    for (int64_t i = 0; i < m * n * batch; ++i) {
      int64_t p = i % batch, row = i / batch / n, column = i / batch % n;
      float sum = strideC == 0 && p > 0 ? expected[size_t(row * 6 + column)] : 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += a[size_t(p * strideA + (transposeA ? l * 7 + row : row * 7 + l))] *
               b[size_t(p * strideB + (transposeB ? column * 8 + l : l * 8 + column))];
      }
      expected[size_t(p * strideC + row * 6 + column)] = sum;
    }
    runMatmul(matmul, a.data(), b.data(), c.data());
    EXPECT_THAT(c, testing::Pointwise(testing::NanSensitiveFloatEq(), expected)) << form;
  }
}

TEST(Matmuls, OfNothing) {
  float a = 1, b = 1, c = 5;
  runMatmul({ElementType::F32, false, false, 1, 1, 0, 1, 1, 1}, &a, &b, &c);
  EXPECT_EQ(c, 0); // An empty sum.
  c = 5;
  runMatmul({ElementType::F32, false, false, 0, 1, 1, 1, 1, 1}, &a, &b, &c);
  runMatmul({ElementType::F32, false, false, 1, 0, 1, 1, 1, 1}, &a, &b, &c);
  EXPECT_EQ(c, 5);
}

TEST(Abandoned, ARankThatDoesNotReturnIsReported) {
  LocalOptions options;
  options.grace = std::chrono::milliseconds(50);
  // Shared with the abandoned thread.
  auto release = std::make_shared<std::atomic<bool>>(false),
       gone = std::make_shared<std::atomic<bool>>(false);
  RunResult result = makeLocalBackend(2, options)->run([=](Communicator &communicator) {
    if (communicator.rank() == 0) {
      communicator.fail("no more");
      return;
    }
    while (!*release) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    *gone = true;
  });
  EXPECT_TRUE(result.abandoned);
  EXPECT_EQ(result.failure->message, "no more");
  *release = true;
  while (!*gone) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

} // namespace
