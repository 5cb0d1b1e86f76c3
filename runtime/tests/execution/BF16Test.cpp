//===- BF16Test.cpp - matmuls of narrow types --------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "execution/PreparedMatmul.h"
#include "support/BFloat16.h"
#include "support/Float16.h"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <thread>

using namespace weft::rt;

namespace {

uint16_t rounded(float value) { return BFloat16(value).bits; }

TEST(BFloat16, EveryNumberStaysItself) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    BFloat16 number;
    number.bits = uint16_t(bits);
    auto value = float(number);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float(BFloat16(value))));
    } else {
      EXPECT_EQ(rounded(value), bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndToEven) {
  // All finite numbers, and the midpoint above the last.
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    float half = std::bit_cast<float>(bits << 16 | 0x8000);
    uint32_t even = bits + (bits & 1);
    EXPECT_EQ(rounded(half), even);
    EXPECT_EQ(rounded(-half), even | 0x8000);
    EXPECT_EQ(rounded(std::nextafter(half, 0.0f)), bits);
    EXPECT_EQ(rounded(std::nextafter(half, INFINITY)), bits + 1);
  }
}

TEST(BFloat16, NaNNeverBecomesInfinity) {
  EXPECT_TRUE(std::isnan(float(BFloat16(std::bit_cast<float>(0x7F800001u)))));
  EXPECT_TRUE(std::isnan(float(BFloat16(std::bit_cast<float>(0xFFFFFFFFu)))));
}

template <typename T = BFloat16> std::vector<T> randomNumbers(size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::vector<T> numbers(count);
  for (T &number : numbers) {
    number = T(float(int32_t(generator())) * 0x1p-31f);
  }
  return numbers;
}

/// Returns a number as the matmul rounds it.
double multiplied(BFloat16 number, bool) { return double(number); }
double multiplied(Float16 number, bool) { return double(number); }
double multiplied(float number, bool isTF32) {
  if (!isTF32) {
    return number;
  }
  int exponent;
  double fraction = std::frexp(double(number), &exponent);
  return std::ldexp(std::round(fraction * 2048), exponent - 11);
}

Status run(const MatmulPart &part, const void *a, const void *b, void *c) {
  Result<std::unique_ptr<PreparedMatmul>> prepared = PreparedMatmul::make(part);
  return prepared ? (*prepared)->run(a, b, c) : prepared.error();
}

/// Runs `matmul` and compares with sums in float64.
template <typename C, typename T = BFloat16> void expectMatmul(const Matmul &matmul) {
  const Matmul &p = matmul;
  auto room = [&](int64_t rows, int64_t ld, int64_t stride) {
    return size_t((p.batch - 1) * stride + rows * ld);
  };
  auto a = randomNumbers<T>(room(p.transposeA ? p.k : p.m, p.lda, p.strideA), 1);
  auto b = randomNumbers<T>(room(p.transposeB ? p.n : p.k, p.ldb, p.strideB), 2);
  std::vector<C> c(room(p.m, p.ldc, p.strideC), C(NAN));
  Status status = run({matmul, 0, 0, 0}, a.data(), b.data(), c.data());
  ASSERT_TRUE(status) << status.error().message;
  double unit = sizeof(C) == 2
                    ? 0x1p-8
                    : 0x1p-20; // Half of the last bit, or the rounding errors of f32 sums.
  for (int64_t i = 0; i < p.batch * p.m * p.n; ++i) {
    int64_t which = i / (p.m * p.n), row = i / p.n % p.m, column = i % p.n;
    double sum = 0, size = 0;
    for (int64_t l = 0; l < p.k; ++l) {
      int64_t atA = which * p.strideA + (p.transposeA ? l * p.lda + row : row * p.lda + l);
      int64_t atB = which * p.strideB + (p.transposeB ? column * p.ldb + l : l * p.ldb + column);
      double term = multiplied(a[size_t(atA)], p.isTF32) * multiplied(b[size_t(atB)], p.isTF32);
      sum += term;
      size += std::abs(term);
    }
    auto got = double(c[size_t(which * p.strideC + row * p.ldc + column)]);
    ASSERT_LE(std::abs(got - sum), unit * std::abs(sum) + 0x1p-20 * size)
        << "matrix " << which << " row " << row << " column " << column;
  }
}

TEST(BF16Matmul, IsAsDefined) {
  for (bool transposeA : {false, true}) {
    for (bool transposeB : {false, true}) {
      Matmul matmul = {ElementType::BF16, transposeA, transposeB, 3, 4, 5, 7, 8, 6, 2, 40, 50, 30};
      expectMatmul<BFloat16>(matmul);
      matmul.isResultF32 = true;
      expectMatmul<float>(matmul);
      matmul = {ElementType::BF16, transposeA, transposeB, 65, 48, 129, 129, 129, 48};
      expectMatmul<BFloat16>(matmul);
      matmul.isResultF32 = true;
      expectMatmul<float>(matmul);
    }
  }
}

TEST(F16Matmul, IsAsDefined) {
  for (bool transposed : {false, true}) {
    Matmul matmul = {ElementType::F16, transposed, !transposed, 65, 48, 129, 129, 129, 48};
    expectMatmul<Float16, Float16>(matmul);
    matmul.isResultF32 = true;
    expectMatmul<float, Float16>(matmul);
    matmul = {ElementType::F16, transposed, transposed, 3, 4, 5, 7, 8, 6, 2, 40, 50, 30};
    expectMatmul<Float16, Float16>(matmul);
  }
}

TEST(TF32Matmul, IsAsDefined) {
  for (bool transposed : {false, true}) {
    Matmul matmul = {ElementType::F32, transposed, !transposed, 65, 48, 129, 129, 129, 48};
    matmul.isTF32 = true;
    expectMatmul<float, float>(matmul);
    matmul = {ElementType::F32, transposed, transposed, 3, 4, 5, 7, 8, 6, 2, 40, 50, 30};
    matmul.isTF32 = true;
    expectMatmul<float, float>(matmul);
  }
}

TEST(TF32Matmul, IsNotThatOfFloat32) {
  float a = 1 + 0x1p-12f, b = 1, c = 0;
  Matmul matmul = {ElementType::F32, false, false, 1, 1, 1, 1, 1, 1};
  EXPECT_TRUE(run({matmul, 0, 0, 0}, &a, &b, &c));
  EXPECT_EQ(c, a);
  matmul.isTF32 = true;
  EXPECT_TRUE(run({matmul, 0, 0, 0}, &a, &b, &c));
  EXPECT_EQ(c, 1);
}

TEST(BF16Matmul, OfOneOperandForAll) {
  for (bool transposed : {false, true}) {
    Matmul matmul = {ElementType::BF16, transposed, transposed, 5, 6, 7, 7, 8, 6, 3, 0, 60, 30};
    expectMatmul<BFloat16>(matmul);
    matmul.strideA = 50;
    matmul.strideB = 0;
    matmul.isResultF32 = true;
    expectMatmul<float>(matmul);
  }
}

/// A sum of matmuls, in the parts of threads; memory between rows of C stays as it is.
TEST(BF16Matmul, OfSums) {
  constexpr int64_t m = 130, n = 150, k = 170, batch = 3, ldc = 151;
  Matmul matmul = {ElementType::BF16, false, true, m, n, k, k, k, ldc, batch, m * k, n * k, 0};
  matmul.isResultF32 = true;
  auto a = randomNumbers(batch * m * k, 1), b = randomNumbers(batch * n * k, 2);
  std::vector<float> c(m * ldc, NAN);
  for (const MatmulPart &part : cutMatmul(matmul, 2)) {
    Status status = run(part, a.data(), b.data(), c.data());
    ASSERT_TRUE(status) << status.error().message;
  }
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < batch * k; ++i) {
        int64_t which = i / k, l = i % k;
        sum += double(a[size_t((which * m + row) * k + l)]) *
               double(b[size_t((which * n + column) * k + l)]);
      }
      ASSERT_NEAR(c[size_t(row * ldc + column)], sum, 1e-4) << row << ", " << column;
    }
    ASSERT_TRUE(std::isnan(c[size_t(row * ldc + n)]));
  }
}

TEST(BF16Matmul, OfNothing) {
  BFloat16 a(1), b(1);
  float c = 5;
  Matmul matmul = {ElementType::BF16, false, false, 0, 1, 1, 1, 1, 1};
  matmul.isResultF32 = true;
  EXPECT_TRUE(run({matmul, 0, 0, 0}, &a, &b, &c));
  EXPECT_EQ(c, 5);
  matmul.m = 1;
  matmul.k = 0;
  EXPECT_TRUE(run({matmul, 0, 0, 0}, &a, &b, &c));
  EXPECT_EQ(c, 0); // An empty sum.
}

TEST(BF16Matmul, PartsMakeUpTheWhole) {
  constexpr int64_t m = 448, n = 640, k = 700;
  for (bool transposeA : {false, true}) {
    for (bool transposeB : {false, true}) {
      Matmul matmul = {ElementType::BF16,  transposeA,         transposeB, m, n, k,
                       transposeA ? m : k, transposeB ? k : n, n};
      matmul.isResultF32 = true;
      auto a = randomNumbers(m * k, 1), b = randomNumbers(k * n, 2);
      std::vector<float> expected(m * n), c(m * n, NAN);
      ASSERT_TRUE(run({matmul, 0, 0, 0}, a.data(), b.data(), expected.data()));
      std::vector<MatmulPart> parts = cutMatmul(matmul, 3);
      EXPECT_EQ(parts.size(), 6u);
      for (const MatmulPart &part : parts) {
        ASSERT_TRUE(run(part, a.data(), b.data(), c.data()));
      }
      for (size_t i = 0; i < c.size(); ++i) {
        ASSERT_NEAR(c[i], expected[i], 1e-3) << "A^T " << transposeA << ", B^T " << transposeB;
      }
    }
  }
}

size_t countThreads() {
  auto tasks = std::filesystem::directory_iterator("/proc/self/task");
  return size_t(std::distance(begin(tasks), end(tasks)));
}

/// Several ranks at once give one rank's bits, and the library starts no threads of its own.
TEST(BF16Matmul, RunsOnTheCallingThreadOnly) {
  constexpr int64_t size = 192;
  constexpr size_t count = size * size;
  Matmul matmul = {ElementType::BF16, false, true, size, size, size, size, size, size};
  matmul.isResultF32 = true;
  auto a = randomNumbers(count, 1), b = randomNumbers(count, 2);
  auto run = [&](std::vector<float> &c) {
    Result<std::unique_ptr<PreparedMatmul>> prepared = PreparedMatmul::make({matmul, 0, 0, 0});
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE((*prepared)->run(a.data(), b.data(), c.data()));
    }
  };
  size_t before = countThreads(); // Loading another library may have started some.
  std::vector<float> expected(count);
  run(expected);
  EXPECT_EQ(countThreads(), before);
  std::vector<std::vector<float>> results(4, std::vector<float>(count));
  std::vector<std::thread> threads;
  for (auto &result : results) {
    threads.emplace_back(run, std::ref(result));
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  for (const auto &result : results) {
    EXPECT_EQ(std::memcmp(result.data(), expected.data(), count * sizeof(float)), 0);
  }
}

} // namespace
