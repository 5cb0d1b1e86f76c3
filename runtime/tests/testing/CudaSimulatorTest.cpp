//===- CudaSimulatorTest.cpp - the simulator for CUDA -----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/BFloat16.h"
#include "support/Float8.h"
#include "tests/Toy.h"
#include "tests/backends/cuda/DeviceStream.h"
#include "tests/testing/CudaBench.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::cuda;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StrEq;

namespace {

/// Returns the numbers in `pinned`.
std::vector<double> numbers(const Bench &bench) {
  std::vector<double> read(kBenchCount);
  std::memcpy(read.data(), bench.pinned, kBenchBytes);
  return read;
}

/// Sends 1, 2, ... to `a`.
void sendNumbers(Bench &bench) {
  std::vector<double> values(kBenchCount);
  std::iota(values.begin(), values.end(), 1.0);
  std::memcpy(bench.pinned, values.data(), kBenchBytes);
  Bench::ok(bench.send(bench.stream, bench.a));
}

/// Runs chains of kernels over several streams: each kernel waits for an event and reads the result
/// of another.
std::vector<double> runChain(uint64_t seed, bool isOneStream) {
  Bench bench(seed);
  std::vector<Handle> streams = {bench.stream, bench.other, bench.makeStream()};
  sendNumbers(bench);
  Address places[] = {bench.a, bench.b, bench.blank};
  Handle before = bench.stream;
  for (size_t i = 0; i < 12; ++i) {
    Handle on = isOneStream ? bench.stream : streams[(i * 5 + 1) % 3];
    bench.order(before, on);
    Bench::ok(bench.launch(on, places[i % 3], places[(i + 1) % 3], 2 + i % 2));
    before = on;
  }
  Bench::ok(bench.fetch(before, places[0]));
  bench.drain(before);
  return numbers(bench);
}

TEST(CudaSimulatorTest, StreamsWithEventsDoWhatOneDoes) {
  std::vector<double> expected = runChain(0, /*isOneStream=*/true);
  EXPECT_EQ(expected[0], 46656); // 2^6 times 3^6.
  for (uint64_t seed = 0; seed < 200; ++seed) {
    ASSERT_EQ(runChain(seed, seed % 2 == 0), expected) << "seed " << seed;
  }
}

TEST(CudaSimulatorTest, NothingIsDoneBeforeSomebodyWaits) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Bench bench(seed);
    sendNumbers(bench);
    bench.drain(bench.stream);
    Bench::ok(bench.fetch(bench.stream, bench.a));
    EXPECT_TRUE(numbers(bench)[0] != numbers(bench)[0]) << "expected poison";
    bench.drain(bench.stream);
    EXPECT_EQ(numbers(bench)[63], 64);
  }
}

TEST(CudaSimulatorTest, WorkThatNobodyAwaitsIsPutOffOrRunsAhead) {
  // Either of two unordered streams may run first.
  int ahead = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Bench bench(seed);
    bench.simulator.failWorkAt(4, "it was done");
    Bench::ok(bench.zero(bench.other, bench.b));
    Bench::ok(bench.zero(bench.stream, bench.a));
    ahead += bench.finish(bench.stream) != nullptr;
  }
  EXPECT_GT(ahead, 5);
  EXPECT_LT(ahead, 45);
}

TEST(CudaSimulatorTest, WhoAsksAgainGetsThere) {
  size_t denials = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Bench bench(seed);
    Bench::ok(bench.zero(bench.stream, bench.a));
    Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
    bool isReached = false;
    for (int i = 0; i < 4 && !isReached; ++i) {
      Bench::ok(bench.cuda.reached(bench.device, bench.event, &isReached));
      denials += !isReached;
    }
    ASSERT_TRUE(isReached);
    // Now the host has seen that the work is done.
    Bench::ok(bench.cuda.free(bench.device, bench.a));
  }
  EXPECT_GT(denials, 10u);
}

TEST(CudaSimulatorTest, TimersSayWhenTheyWereReached) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Bench bench({.seed = seed, .slow = {0, 7}, .slowness = std::chrono::milliseconds(3)});
    Handle from = 0, to = 0;
    Bench::ok(bench.cuda.makeTimer(bench.device, &from));
    Bench::ok(bench.cuda.makeTimer(bench.device, &to));
    Bench::ok(bench.cuda.record(bench.device, from, bench.stream));
    for (int i = 0; i < 4; ++i) {
      Bench::ok(bench.zero(bench.stream, bench.a));
    }
    Bench::ok(bench.cuda.record(bench.device, to, bench.stream));
    Bench::ok(bench.cuda.await(bench.device, to));
    double seconds = 0;
    Bench::ok(bench.cuda.elapsed(bench.device, from, to, &seconds));
    EXPECT_GE(seconds, 3e-3);
    Bench::ok(bench.cuda.elapsed(bench.device, to, from, &seconds));
    EXPECT_LE(seconds, -3e-3);
  }
}

TEST(CudaSimulatorTest, KernelsAreCutByTheSeed) {
  std::set<std::vector<std::pair<int64_t, int64_t>>> seen;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    bool cuts = seed % 2 == 1;
    Bench bench(seed, cuts);
    benchParts.clear();
    Bench::ok(bench.cuda.launch(bench.device, bench.stream, bench.entry("trace_phase_0"), 1, 1,
                                &bench.c, 1));
    bench.drain(bench.stream);
    seen.insert(benchParts);
    std::vector<std::pair<int64_t, int64_t>> inOrder = benchParts;
    std::sort(inOrder.begin(), inOrder.end());
    int64_t end = 0;
    for (auto [from, to] : inOrder) {
      EXPECT_EQ(from, end);
      end = to;
    }
    EXPECT_EQ(end, kBenchCount);
    EXPECT_TRUE(cuts || benchParts.size() == 1);
  }
  EXPECT_GT(seen.size(), 10u);
}

TEST(CudaSimulatorTest, MatmulsAreComputed) {
  for (uint64_t workspaceBytes : {0, 64}) {
    Bench bench(3);
    sendNumbers(bench);
    Matmul matmul = {
        .type = ElementType::F32, .m = 2, .n = 2, .k = 2, .lda = 2, .ldb = 2, .ldc = 2};
    const float values[] = {1, 2, 3, 4};
    bench.drain(bench.stream);
    std::memcpy(bench.pinned, values, sizeof(values));
    Bench::ok(bench.send(bench.stream, bench.a));
    Handle prepared = 0;
    Bench::ok(bench.prepare(matmul, workspaceBytes, &prepared));
    Bench::ok(bench.runMatmul(bench.stream, prepared, bench.a, bench.a, bench.b, bench.blank));
    Bench::ok(bench.fetch(bench.stream, bench.b));
    bench.drain(bench.stream);
    float result[4];
    std::memcpy(result, bench.pinned, sizeof(result));
    EXPECT_THAT(result, ElementsAre(7, 10, 15, 22));
  }
}

/// Computes a matmul, and copies the first `bytes` of its result to the bench's pinned memory.
void multiply(Bench &bench, const Matmul &matmul, const MatmulPlaces &places, size_t bytes) {
  MatmulAlgorithm way = {};
  Handle prepared = 0;
  Bench::ok(bench.cuda.prepareMatmul(bench.device, &matmul, &way, &prepared));
  Bench::ok(bench.cuda.runMatmul(bench.device, bench.stream, prepared, &places));
  bench.drain(bench.stream);
  Bench::ok(bench.cuda.copyToHost(bench.device, bench.stream, bench.pinned, places.c, bytes));
  bench.drain(bench.stream);
}

/// A matmul of E5M2 by E4M3 whose sizes and strides all differ.
Matmul fp8Matmul(bool isResultF32) {
  return {.type = ElementType::F8E5M2,
          .transposeB = true,
          .m = 16,
          .n = 32,
          .k = 48,
          .lda = 64,
          .ldb = 80,
          .ldc = 96,
          .isResultF32 = isResultF32,
          .fp8B = ElementType::F8E4M3};
}

float elementOfA(int64_t row, int64_t k) { return float((3 * row + 5 * k) % 9 - 4); }
float elementOfB(int64_t column, int64_t k) { return float((7 * column + 2 * k) % 13 - 6); }

/// Makes rows of `count` bytes, with NaN between them.
template <typename Byte>
std::vector<Byte> rowsOf(float (*element)(int64_t, int64_t), int64_t rows, int64_t count,
                         int64_t distance) {
  Byte nothing;
  nothing.bits = 0x7F;
  std::vector<Byte> bytes(size_t(rows * distance), nothing);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < count; ++k) {
      bytes[size_t(row * distance + k)] = Byte(element(row, k));
    }
  }
  return bytes;
}

/// Checks the simulator's result of `fp8Matmul`, whose C has elements of type `C`.
template <typename C> void checkBytes(float factorA, float factorB) {
  Simulator simulator({}, {});
  const DriverTable &cuda = simulator.library();
  DeviceStream on(cuda);
  Handle device = 0, prepared = 0;
  DeviceFacts facts;
  Bench::ok(cuda.open(0, &device, &facts));
  on.begin(device);
  const Matmul matmul = fp8Matmul(std::is_same_v<C, float>);
  MatmulPlaces places;
  places.a = on.send(rowsOf<Float8E5M2>(elementOfA, matmul.m, matmul.k, matmul.lda));
  places.b = on.send(rowsOf<Float8E4M3>(elementOfB, matmul.n, matmul.k, matmul.ldb));
  places.c = on.send(std::vector<C>(size_t(matmul.m * matmul.ldc), C(-1.0f)));
  places.factorA = on.send(std::vector<float>{factorA});
  places.factorB = on.send(std::vector<float>{factorB});
  MatmulAlgorithm way = {};
  Bench::ok(cuda.prepareMatmul(device, &matmul, &way, &prepared));
  Bench::ok(cuda.runMatmul(device, on.stream, prepared, &places));
  std::vector<C> c = on.fetch<C>(places.c, size_t(matmul.m * matmul.ldc));
  for (int64_t row = 0; row < matmul.m; ++row) {
    for (int64_t column = 0; column < matmul.n; ++column) {
      float sum = 0;
      for (int64_t k = 0; k < matmul.k; ++k) {
        sum += elementOfA(row, k) * elementOfB(column, k);
      }
      ASSERT_EQ(float(c[size_t(row * matmul.ldc + column)]), float(C(factorA * factorB * sum)))
          << row << ' ' << column;
    }
    ASSERT_EQ(float(c[size_t(row * matmul.ldc + matmul.n)]), -1) << "what lies between rows";
  }
}

TEST(CudaSimulatorTest, Fp8MatmulsAreComputed) {
  checkBytes<BFloat16>(0.25f, 2);
  checkBytes<float>(8, 0.125f);
  checkBytes<BFloat16>(0.5f, 16);
}

/// Returns the result of a matmul of 8 x 8 matrices of ones, whose sums are 8.
std::vector<float> eights(Bench &bench, const Epilogue &epilogue, MatmulPlaces places) {
  Matmul matmul = {.type = ElementType::F32, .m = 8, .n = 8, .k = 8, .lda = 8, .ldb = 8, .ldc = 8};
  matmul.epilogue = epilogue;
  std::vector<float> ones(64, 1);
  bench.drain(bench.stream);
  std::memcpy(bench.pinned, ones.data(), 256);
  Bench::ok(bench.cuda.copyToDevice(bench.device, bench.stream, bench.a, bench.pinned, 256));
  places.a = places.b = bench.a;
  places.c = bench.b;
  multiply(bench, matmul, places, 256);
  std::memcpy(ones.data(), bench.pinned, 256);
  return ones;
}

TEST(CudaSimulatorTest, EpiloguesAreComputed) {
  using Activation = Epilogue::Activation;
  MatmulPlaces places = {};
  {
    Bench bench(3);
    places.addend = places.bias = bench.a;
    EXPECT_THAT(eights(bench, {.hasAddend = true, .hasBias = true}, places), Each(10));
    places.aux = bench.c;
    EXPECT_THAT(eights(bench, {.activation = Activation::Gelu, .hasAux = true}, places), Each(8));
    EXPECT_THAT(eights(bench, {.activation = Activation::GeluGradient, .hasAux = true}, places),
                Each(8))
        << "at 8, which the one before has kept, the derivative is 1";
    places.sums = bench.blank;
    EXPECT_THAT(eights(bench, {.sums = Epilogue::Sums::OfB}, places), Each(8));
    Bench::ok(bench.cuda.copyToHost(bench.device, bench.stream, bench.pinned, bench.blank, 32));
    bench.drain(bench.stream);
    float sums[8];
    std::memcpy(sums, bench.pinned, sizeof sums);
    EXPECT_THAT(sums, Each(8));
  }
}

TEST(CudaSimulatorTest, RowsOfALargerMatrixNeedNotBeWhole) {
  Bench bench(0);
  Matmul matmul = kBenchMatmul;
  matmul.lda = 8;
  Handle prepared = 0;
  Bench::ok(bench.prepare(matmul, 0, &prepared));
  for (Address row = bench.blank; row < bench.blank + 4 * 32; row += 32) {
    EXPECT_THAT(bench.runMatmul(bench.stream, prepared, bench.blank, bench.b, bench.c, 0),
                HasSubstr("operand A is read, but not all of it was ever written"));
    Bench::ok(bench.cuda.zero(bench.device, bench.stream, row, 16));
  }
  Bench::ok(bench.runMatmul(bench.stream, prepared, bench.blank, bench.b, bench.c, 0));
  bench.drain(bench.stream);
}

TEST(CudaSimulatorTest, ATableWithoutASimulatorFails) {
  const DriverTable *library;
  {
    Simulator simulator({}, {});
    library = &simulator.library();
  }
  int64_t count;
  EXPECT_THAT(library->countDevices(&count), StrEq("countDevices: there is no simulator"));
}

TEST(CudaSimulatorTest, MemoryIsLimited) {
  Simulator simulator({.memoryBytes = 1024, .pinnedBytes = 512}, {});
  const DriverTable &cuda = simulator.library();
  Handle device;
  DeviceFacts facts;
  ASSERT_EQ(cuda.open(0, &device, &facts), nullptr);
  EXPECT_EQ(facts.memoryBytes, 1024u);
  Address first, second, third;
  ASSERT_EQ(cuda.allocate(device, 513, &first), nullptr);
  EXPECT_EQ(first % 256, 0u);
  ASSERT_EQ(cuda.allocate(device, 257, &second), nullptr);
  EXPECT_EQ(second, 0u);
  ASSERT_EQ(cuda.free(device, first), nullptr);
  ASSERT_EQ(cuda.allocate(device, 1024, &third), nullptr);
  EXPECT_NE(third, 0u);
  void *place;
  ASSERT_EQ(cuda.allocatePinned(device, 513, &place), nullptr);
  EXPECT_EQ(place, nullptr);
}

TEST(CudaSimulatorTest, LocalMemoryMustBeReserved) {
  Bench bench({.devices = 2, .memoryBytes = 1 << 26, .local = {"scale", 64}});
  bool isThere = false;
  for (uint64_t bytes : {0, 63}) {
    Bench::ok(bench.cuda.reserveLocal(bench.device, bytes, &isThere));
    EXPECT_THAT(bench.launch(bench.stream, bench.a, bench.b),
                HasSubstr("expected 64 bytes a thread to be reserved for 'scale_phase_0', got " +
                          std::to_string(bytes)));
  }
  Bench::ok(bench.cuda.reserveLocal(bench.device, 64, &isThere));
  Bench::ok(bench.launch(bench.stream, bench.a, bench.b));
  bench.drain(bench.stream);
  Bench::ok(bench.cuda.reserveLocal(bench.device, 512 << 10, &isThere));
  EXPECT_TRUE(isThere);
  EXPECT_THAT(bench.cuda.reserveLocal(bench.device, (512 << 10) + 1, &isThere),
              HasSubstr("expected at most 524288 bytes of local memory a thread, got 524289"));
}

/// Arrays of more elements than 32 bits count, which no host computes here.
class LargeArrays : public testing::Test {
protected:
  static constexpr uint64_t kElements = (uint64_t(1) << 31) + 64, kBytes = kElements * 4;

  Bench bench{SimulatorSettings{.devices = 2, .memoryBytes = uint64_t(1) << 40, .isIdle = true}};
};

TEST_F(LargeArrays, AreCopiedToTheLastByte) {
  Address from = bench.allocate(kBytes), to = bench.allocate(kBytes);
  Bench::ok(bench.cuda.zero(bench.device, bench.stream, from, kBytes));
  Bench::ok(bench.cuda.copy(bench.device, bench.stream, to, from, kBytes));
  Bench::ok(bench.cuda.zero(bench.device, bench.stream, to + kBytes - 64, 64));
  EXPECT_THAT(bench.cuda.zero(bench.device, bench.stream, to + kBytes - 64, 65),
              HasSubstr("65 bytes from byte 8589934784 on end beyond an allocation of 8589934848"));
}

TEST_F(LargeArrays, AreMultipliedToTheLastByte) {
  Matmul p = kBenchMatmul;
  p.m = 1 << 17;
  p.n = p.ldb = p.ldc = (1 << 14) + 8;
  uint64_t bytes = uint64_t(p.m) * uint64_t(p.n) * 4;
  Address a = bench.allocate(uint64_t(p.m) * 16), b = bench.allocate(uint64_t(p.n) * 16),
          c = bench.allocate(bytes);
  Bench::ok(bench.cuda.zero(bench.device, bench.stream, a, uint64_t(p.m) * 16));
  Bench::ok(bench.cuda.zero(bench.device, bench.stream, b, uint64_t(p.n) * 16));
  Handle made = 0;
  Bench::ok(bench.prepare(p, 0, &made));
  Bench::ok(bench.runMatmul(bench.stream, made, a, b, c));
  EXPECT_THAT(bench.runMatmul(bench.stream, made, a, b, c + 16),
              HasSubstr("operand C: 8594128896 bytes from byte 16 on end beyond an allocation"));
}

TEST_F(LargeArrays, AreReducedToTheLastElement) {
  WorldId id;
  Handle world = 0;
  Address memory = 0;
  Bench::ok(bench.cuda.makeWorldId(&id));
  Bench::ok(bench.cuda.join(bench.device, &id, 1, 0, &world));
  Bench::ok(bench.cuda.allocateShared(bench.device, kBytes, &memory));
  Bench::ok(bench.cuda.zero(bench.device, bench.stream, memory, kBytes));
  auto reduce = [&](uint64_t count) {
    for (bool isReady = false; !isReady;) {
      Bench::ok(bench.cuda.ready(bench.device, world, &isReady));
    }
    return bench.cuda.allReduce(bench.device, bench.stream, world, ReductionKind::Sum,
                                ElementType::F32, memory, memory, count);
  };
  Bench::ok(reduce(kElements));
  EXPECT_THAT(reduce(kElements + 1), HasSubstr("8589934852 bytes from byte 0 on end beyond"));
}

TEST(CudaSimulatorTest, CountsWhatIsLeft) {
  Bench bench(3);
  uint64_t before = 0, after = 0;
  Bench::ok(bench.cuda.freeMemory(bench.device, &before));
  bench.allocate(4096);
  Bench::ok(bench.cuda.freeMemory(bench.device, &after));
  EXPECT_EQ(before - after, 4096u);
}

TEST(CudaSimulatorTest, NamesWhatIsLeft) {
  Bench bench(0);
  bench.prepareMatmul();
  EXPECT_THAT(bench.cuda.close(bench.device),
              StrEq("close: expected that all is freed, left are 512 bytes of call 4, 512 bytes of "
                    "call 5, 512 bytes of call 6, 512 bytes of call 7, 512 pinned bytes of call 8, "
                    "stream 1 of call 1, stream 2 of call 2, event 1 of call 3, event 2 of call "
                    "14, module 1 of call 9, matmul 1 of call 17"));
}

TEST(CudaSimulatorTest, ClosesWhenAllIsFreed) {
  Bench bench(0);
  Handle second = bench.openSecond(), stream;
  Bench::ok(bench.cuda.makeStream(second, &stream));
  EXPECT_THAT(bench.cuda.close(second), HasSubstr("left are stream 1 of call 1"));
  Bench::ok(bench.cuda.seal(second));
  Bench::ok(bench.cuda.unseal(second));
  Bench::ok(bench.cuda.freeStream(second, stream));
  Bench::ok(bench.cuda.close(second));
}

TEST(CudaSimulatorTest, DevicesAreTheirThreadsOwn) {
  Simulator simulator({.devices = 4}, {});
  const DriverTable &cuda = simulator.library();
  auto use = [&](int64_t number) {
    Handle device = 0, stream = 0;
    DeviceFacts facts;
    Address address = 0;
    EXPECT_EQ(cuda.open(number, &device, &facts), nullptr);
    EXPECT_EQ(cuda.makeStream(device, &stream), nullptr);
    for (int i = 0; i < 100; ++i) {
      EXPECT_EQ(cuda.allocate(device, 64, &address), nullptr);
      EXPECT_EQ(cuda.free(device, address), nullptr);
    }
    EXPECT_THAT(cuda.zero(device, stream, address, 1), HasSubstr("is freed"));
    EXPECT_EQ(cuda.freeStream(device, stream), nullptr);
    EXPECT_EQ(cuda.close(device), nullptr);
  };
  std::vector<std::thread> threads;
  for (int64_t number = 0; number < 4; ++number) {
    threads.emplace_back(use, number);
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  EXPECT_EQ(simulator.calls("allocate"), 400);
}

TEST(CudaSimulatorTest, CounterpartsAreThePhasesOfAProgramsKernels) {
  Program program = makeToy(1, 2);
  Counterparts counterparts({&program, 1}, kToyKernels);
  EXPECT_EQ(counterparts.cores, program.threadsPerRank);
  const Instruction *gradient = nullptr;
  for (const Instruction &instruction : program.stepBody()) {
    if (instruction.opcode == Opcode::Kernel && instruction.target == 1) {
      gradient = &instruction;
    }
  }
  ASSERT_TRUE(gradient);
  auto found = counterparts.entries.find(program.kernels[1].name + "_phase_0");
  ASSERT_NE(found, counterparts.entries.end());
  const Counterpart &counterpart = found->second;
  EXPECT_EQ(counterpart.function, kToyKernels[1].function);
  EXPECT_EQ(counterpart.iterations, std::vector<int64_t>{1});
  EXPECT_EQ(counterpart.coordinateBytes, 2 * sizeof(int64_t));
  ASSERT_EQ(counterpart.operands.size(), gradient->operands.size());
  EXPECT_EQ(counterpart.operands[0].bytes, program.buffers[gradient->operands[0].buffer].bytes);
  EXPECT_EQ(counterpart.arguments(), 1 + gradient->operands.size() + gradient->immediates.size());
}

/// The host's phases run once each, in order, however many phases a device has.
TEST(CudaSimulatorTest, CounterpartsOfOtherPhasesDoTheHostsWork) {
  Program program = makeToy(1, 2);
  const int64_t host[] = {5, 6}, iterations[] = {9, 9, 9}, threads[] = {0, 256, 32};
  for (int64_t count = 1; count <= 3; ++count) {
    const DevicePhases phases = {count, iterations, threads};
    std::vector<KernelCode> kernels(program.kernels.size(),
                                    {kToyKernels[0].function, 2, host, &phases});
    Counterparts counterparts({&program, 1}, kernels.data());
    std::vector<int64_t> done;
    for (int64_t phase = 0; phase < count; ++phase) {
      const Counterpart &counterpart =
          counterparts.entries.at(program.kernels[1].name + "_phase_" + std::to_string(phase));
      EXPECT_EQ(counterpart.threads, uint32_t(threads[phase]));
      done.insert(done.end(), counterpart.iterations.begin(), counterpart.iterations.end());
    }
    EXPECT_THAT(done, ElementsAre(5, 6)) << count;
  }
}

} // namespace
