//===- AlgorithmCacheTest.cpp - how matmuls are computed, kept in a file ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/AlgorithmCache.h"
#include "backends/cuda/CudaExecutor.h"
#include "executable/Executable.h"
#include "testing/Simulator.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::cuda;
using testing::HasSubstr;

namespace {

Matmul matmulOf(int64_t m) { return {ElementType::F32, false, false, m, 4, 4, 4, 4, 4}; }

std::string contentOf(const std::string &file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class AlgorithmCacheTest : public testing::Test {
protected:
  std::string whatReadSays() {
    AlgorithmCache cache;
    Status status = cache.read(file);
    return status ? "" : status.error().message;
  }

  TemporaryFolder folder;
  std::string file = folder.write("ways", "");
};

TEST_F(AlgorithmCacheTest, GivesBackWhatWasWritten) {
  file = folder.write("x", "") + ".folder/below/ways";
  AlgorithmCache cache, again;
  cache.set("a device", matmulOf(8), {{1, 2, 3, 4, 5, 6, 7, ~uint64_t(0)}});
  cache.set("another", matmulOf(8), {{9}});
  ASSERT_TRUE(cache.write(file));
  ASSERT_TRUE(again.read(file));
  ASSERT_TRUE(again.find("a device", matmulOf(8)));
  EXPECT_EQ(again.find("a device", matmulOf(8))->words[7], ~uint64_t(0));
  EXPECT_EQ(again.find("another", matmulOf(8))->words[0], 9u);
  EXPECT_FALSE(again.find("another", matmulOf(9)));
  EXPECT_FALSE(again.find("a third", matmulOf(8)));
}

TEST_F(AlgorithmCacheTest, EveryFieldOfAMatmulCounts) {
  std::vector<Matmul> matmuls(21, matmulOf(8));
  matmuls[1].type = ElementType::BF16;
  matmuls[2].transposeA = true;
  matmuls[3].transposeB = true;
  matmuls[4].m = 9;
  matmuls[5].n = 3;
  matmuls[6].k = 3;
  matmuls[7].lda = 8;
  matmuls[8].ldb = 8;
  matmuls[9].ldc = 8;
  matmuls[10].batch = 2;
  matmuls[11].strideA = 32;
  matmuls[12].strideB = 32;
  matmuls[13].strideC = 32;
  matmuls[14].workspaceBytes = 4;
  matmuls[15].epilogue.hasAddend = true;
  matmuls[16].epilogue.hasBias = true;
  matmuls[17].epilogue.hasAux = true;
  matmuls[18].epilogue.activation = Epilogue::Activation::Gelu;
  matmuls[19].epilogue.sums = Epilogue::Sums::OfA;
  matmuls[20].isTF32 = true;
  matmuls.push_back(matmuls[1]);
  matmuls.back().isResultF32 = true;
  for (ElementType b : {ElementType::F8E4M3, ElementType::F8E5M2}) {
    matmuls.push_back(matmulOf(8));
    matmuls.back().type = ElementType::F8E4M3;
    matmuls.back().fp8B = b;
  }
  std::set<std::string> keys;
  for (const Matmul &matmul : matmuls) {
    keys.insert(keyOf(matmul));
  }
  EXPECT_EQ(keys.size(), matmuls.size());
}

TEST_F(AlgorithmCacheTest, WhatIsDamagedIsSaid) {
  AlgorithmCache cache;
  cache.set("a device", matmulOf(8), {{1}});
  std::filesystem::remove(file);
  EXPECT_EQ(whatReadSays(), "") << "there is none";
  ASSERT_TRUE(cache.write(file));
  std::string good = contentOf(file);
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1;
    folder.write("ways", bad);
    EXPECT_EQ(whatReadSays(), "'" + file + "' is damaged, or of another version") << i;
    folder.write("ways", good.substr(0, i));
    EXPECT_NE(whatReadSays(), "") << i;
  }
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_EQ(whatReadSays(), "'" + file + "' is not a file of matmul algorithms");
}

TEST_F(AlgorithmCacheTest, WritersKeepWhatOthersWrote) {
  std::vector<std::thread> writers;
  for (int64_t i = 0; i < 8; ++i) {
    writers.emplace_back([&, i] {
      AlgorithmCache cache;
      cache.set("a device", matmulOf(i), {{uint64_t(i)}});
      EXPECT_TRUE(cache.write(file));
    });
  }
  for (std::thread &writer : writers) {
    writer.join();
  }
  AlgorithmCache cache;
  ASSERT_TRUE(cache.read(file));
  for (int64_t i = 0; i < 8; ++i) {
    EXPECT_TRUE(cache.find("a device", matmulOf(i))) << i;
  }
}

TEST_F(AlgorithmCacheTest, LiesInTheUsersCacheFolder) {
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(defaultCacheFile(), "/somewhere/weft/product-ways");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  setenv("HOME", "/home/me", 1);
  EXPECT_EQ(defaultCacheFile(), "/home/me/.cache/weft/product-ways");
  unsetenv("HOME");
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(defaultCacheFile(), "");
}

/// Two ranks that prepare a matmul, on the simulator.
class PrepareMatmulsTest : public AlgorithmCacheTest {
protected:
  void SetUp() override {
    program.matmuls = {matmulOf(8), matmulOf(16)};
    std::filesystem::remove(file);
  }

  /// Returns the output on standard error.
  std::string run(Simulator &simulator, int code = 0) {
    const DeviceImage image = {80, true, "", 1};
    auto make = [&](const Program &program, const KernelCode *kernels, int64_t rank, int64_t) {
      return std::make_unique<CudaExecutor>(program, kernels, rank, simulator.library(), rank,
                                            std::span(&image, 1), CudaOptions{.cacheFile = file});
    };
    auto find = [&]() -> Result<MakeExecutor> { return MakeExecutor(make); };
    std::vector<const char *> arguments = {"--data", data.c_str(), "--steps", "1"};
    Result<Options> options = parseOptions(program, arguments);
    EXPECT_EQ(errorOf(options), "");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    EXPECT_EQ(int(train({&program, 1}, kToyKernels, *options, find)), code);
    testing::internal::GetCapturedStdout();
    return testing::internal::GetCapturedStderr();
  }
  std::string run() {
    Simulator simulator({.seed = 5, .devices = 2}, {{&program, 1}, kToyKernels});
    return run(simulator);
  }

  Program program = makeToy(2, 1);
  std::string data = folder.write("data", std::string(4000, 'x'));
};

TEST_F(PrepareMatmulsTest, KeepWhatTheyHaveChosen) {
  EXPECT_EQ(run(), "");
  std::string first = contentOf(file);
  EXPECT_THAT(first,
              HasSubstr("simulator sm_90, 4 multiprocessors, matmuls of a simulator, 1\tf32/f32 "
                        "8x4x4 00 4/4/4 1 0/0/0 00000 0\t"));
  std::filesystem::last_write_time(file, std::filesystem::file_time_type());
  auto before = std::filesystem::last_write_time(file);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(contentOf(file), first);
  EXPECT_EQ(std::filesystem::last_write_time(file), before) << "nothing new, nothing written";
}

TEST_F(PrepareMatmulsTest, ChooseAnewWhatTheDeviceCannotGo) {
  run();
  std::string good = contentOf(file);
  AlgorithmCache cache;
  ASSERT_TRUE(cache.read(file));
  cache.set("simulator sm_90, 4 multiprocessors, matmuls of a simulator, 1", matmulOf(8), {{7}});
  ASSERT_TRUE(cache.write(file));
  ASSERT_NE(contentOf(file), good);
  EXPECT_EQ(run(), "");
  EXPECT_EQ(contentOf(file), good);
}

TEST_F(PrepareMatmulsTest, ReplaceWhatIsDamaged) {
  run();
  std::string good = contentOf(file);
  folder.write("ways", "something else");
  EXPECT_EQ(run(), "warning: cannot use the algorithms kept for matmuls: '" + file +
                       "' is damaged, or of another version\n");
  EXPECT_EQ(contentOf(file), good);
}

TEST_F(PrepareMatmulsTest, GoOnWithoutAFile) {
  file = data + "/below";
  EXPECT_THAT(run(),
              HasSubstr("warning: cannot keep the algorithms chosen for matmuls: cannot make "
                        "the folder '" +
                        data + "': "));
}

TEST_F(PrepareMatmulsTest, EveryFailureEndsTheRun) {
  for (const char *name : {"nameMatmuls", "prepareMatmul"}) {
    for (int64_t number = 1; number <= (std::string(name) == "nameMatmuls" ? 2 : 4); ++number) {
      Simulator simulator({.seed = 5, .devices = 2}, {{&program, 1}, kToyKernels});
      simulator.failAt(name, number, "it is lost");
      EXPECT_THAT(run(simulator, 1),
                  testing::ContainsRegex(std::string("error: device [01] of rank "
                                                     "[01].*: .*") +
                                         name + ".*it is lost"))
          << number;
      std::filesystem::remove(file);
    }
  }
}

} // namespace
