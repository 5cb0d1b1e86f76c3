//===- CudaPluginMatmulsTest.cpp - matmuls by cuBLASLt, without it --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "support/Float8.h"
#include "tests/backends/cuda/CudaPlugin.h"

#include <cmath>

using namespace weft::rt;
using testing::StartsWith;

namespace {

class FakeMatmuls : public FakeCuda {
protected:
  /// Sets the algorithms of the library, which is loaded when the first matmul is prepared.
  void setWays(std::vector<float> milliseconds) {
    dlopen("libcublasLt.so.13", RTLD_NOW);
    fake<decltype(&weft_fake_ways)>("libcublasLt.so.13", "weft_fake_ways")(
        milliseconds.data(), int(milliseconds.size()));
  }
  int taken() { return fake<decltype(&weft_fake_taken)>("libcublasLt.so.13", "weft_fake_taken")(); }
};

TEST_F(FakeMatmuls, GiveWhatTheHostGives) {
  setWays({1});
  checkMatmuls();
}

TEST_F(FakeMatmuls, SumsOfNothingAreZero) {
  setWays({1});
  for (bool isF32 : {true, false}) {
    Matmul p = someMatmul();
    p.k = 0;
    p.batch = 2;
    p.strideC = 40;
    p.type = isF32 ? ElementType::F32 : ElementType::BF16;
    EXPECT_EQ((isF32 ? run<float, float>(p) : run<BFloat16, BFloat16>(p)), expected<float>(p));
    p.m = 0;
    EXPECT_EQ((isF32 ? run<float, float>(p) : run<BFloat16, BFloat16>(p)), expected<float>(p));
  }
}

TEST_F(FakeMatmuls, TakeTheFastestWayAndOfEqualOnesTheFirst) {
  Matmul p = someMatmul();
  setWays({5, 3, 3, 4});
  run<float, float>(p);
  EXPECT_EQ(taken(), 1);
  setWays({5, 3, 2.95f, 4}); // Hardly faster.
  run<float, float>(p);
  EXPECT_EQ(taken(), 1);
  setWays({5, -1, 3, -1}); // Some are refused when they are tried.
  run<float, float>(p);
  EXPECT_EQ(taken(), 2);
  setWays({9, 8, 7, 6, 5, 4, 3, 2, 1}); // Eight are looked at.
  run<float, float>(p);
  EXPECT_EQ(taken(), 7);
}

TEST_F(FakeMatmuls, SayWhatCannotBeComputed) {
  Matmul p = someMatmul();
  p.batch = 2;
  p.strideC = 40;
  DriverTable::Handle prepared = 7;
  cuda::MatmulAlgorithm way = {};
  p.workspaceBytes = 1 << 10;
  setWays({});
  EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
            "cublasLtMatmulAlgoGetHeuristic for a matmul of f32 matrices of 3x4 and 4x5, 2 of "
            "them with a workspace of 1.00 KiB: CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(prepared, 0u);
  p.workspaceBytes = 0;
  setWays({-1, -1});
  EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
            "cublasLtMatmul refuses each of 2 algorithms, or gives wrong results with it, for a "
            "matmul of f32 matrices of 3x4 and 4x5, 2 of them");
  setWays({1, 1});
  fail("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
            "cuMemAlloc of 64 bytes, to try a matmul of f32 matrices of 3x4 and 4x5, 2 of them: "
            "CUDA_ERROR_OUT_OF_MEMORY (in words)");
  fail("cuEventSynchronize", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
            "cuEventSynchronize, trying a matmul of f32 matrices of 3x4 and 4x5, 2 of them: "
            "CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
}

TEST_F(FakeMatmuls, LeaveOutWaysThatLoseTheEndOfASum) {
  auto setFaults = fake<decltype(&weft_fake_faults)>("libcublasLt.so.13", "weft_fake_faults");
  Matmul p = someMatmul();
  setWays({3, 5});
  setFaults(0, -1);
  EXPECT_EQ((run<float, float>(p)), expected<float>(p));
  EXPECT_EQ(taken(), 1);
  p.type = ElementType::F64;
  EXPECT_EQ((run<double, double>(p)), expected<double>(p));
  EXPECT_EQ(taken(), 1);
  setFaults(-1, 0); // What is rounded might not show it, unless k is read in whole parts.
  p.type = ElementType::BF16;
  run<BFloat16, BFloat16>(p);
  EXPECT_EQ(taken(), 1);
  p.isResultF32 = true;
  run<BFloat16, float>(p);
  EXPECT_EQ(taken(), 0);
  p.isResultF32 = false;
  p.k = p.lda = 8;
  run<BFloat16, BFloat16>(p);
  EXPECT_EQ(taken(), 0);
  setFaults(-1, -1);
}

TEST_F(FakeMatmuls, SayHowTheMatmulsOfASumAreAligned) {
  auto alignment = [] {
    return fake<decltype(&weft_fake_alignment)>("libcublasLt.so.13", "weft_fake_alignment")();
  };
  setWays({1});
  Matmul p = someMatmul();
  p.batch = 3;
  p.strideA = 40;
  p.strideB = 50;
  p.strideC = 45;
  run<float, float>(p);
  EXPECT_EQ(alignment(), 64u);
  p.strideC = 0;
  run<float, float>(p);
  EXPECT_EQ(alignment(), 8u);
}

/// C of bytes, of which A's factor is 1/2 and B's 8; with an addend or a bias if `epilogue` says
/// so.
class FakeBytes : public FakeMatmuls {
protected:
  static constexpr int64_t kM = 16, kN = 32, kK = 48;

  template <typename A, typename B, typename C> void check(Matmul p) {
    std::vector<A> a;
    std::vector<B> b;
    for (int64_t i = 0; i < kM * kK; ++i) {
      a.push_back(A(float(i * 7 % 13 - 6)));
    }
    for (int64_t i = 0; i < kN * kK; ++i) {
      b.push_back(B(float(i * 5 % 7 - 3)));
    }
    std::vector<C> addend(kM * kN, C(16.0f)), bias(kN, C(-4.0f));
    cuda::MatmulPlaces at;
    at.a = send(a);
    at.b = send(b);
    at.c = allocate(addend.size() * sizeof(C));
    at.addend = send(addend);
    at.bias = send(bias);
    at.factorA = send<float>({0.5f});
    at.factorB = send<float>({8});
    cuda::MatmulAlgorithm way = {};
    DriverTable::Handle prepared = 0;
    ASSERT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)), "success");
    EXPECT_EQ(textOf(cuda.runMatmul(device, stream, prepared, &at)), "success");
    std::vector<C> got = fetch<C>(at.c, addend.size());
    for (int64_t i = 0; i < kM * kN; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < kK; ++k) {
        sum += float(a[size_t(i / kN * kK + k)]) * float(b[size_t(i % kN * kK + k)]);
      }
      float more = (p.epilogue.hasAddend ? 16.0f : 0) - (p.epilogue.hasBias ? 4.0f : 0);
      EXPECT_EQ(float(got[size_t(i)]), float(C(4 * sum + more))) << i;
    }
    EXPECT_EQ(textOf(cuda.freeMatmul(device, prepared)), "success");
    for (DriverTable::Address address :
         {at.a, at.b, at.c, at.addend, at.bias, at.factorA, at.factorB}) {
      cuda.free(device, address);
    }
  }

  static Matmul matmul(ElementType a, ElementType b) {
    return {.type = a,
            .transposeB = true,
            .m = kM,
            .n = kN,
            .k = kK,
            .lda = kK,
            .ldb = kK,
            .ldc = kN,
            .fp8B = b};
  }
};

TEST_F(FakeBytes, AreMultipliedWithTheirFactors) {
  setWays({3, 2});
  Matmul p = matmul(ElementType::F8E4M3, ElementType::F8E4M3);
  check<Float8E4M3, Float8E4M3, BFloat16>(p);
  EXPECT_EQ(taken(), 1);
  p.epilogue = {.hasAddend = true, .hasBias = true};
  check<Float8E4M3, Float8E4M3, BFloat16>(p);
  p = matmul(ElementType::F8E5M2, ElementType::F8E4M3);
  p.isResultF32 = true;
  check<Float8E5M2, Float8E4M3, float>(p);
  p.epilogue.hasAddend = true;
  check<Float8E5M2, Float8E4M3, float>(p);
  p = matmul(ElementType::F8E4M3, ElementType::F8E5M2);
  check<Float8E4M3, Float8E5M2, BFloat16>(p);
}

TEST_F(FakeBytes, AreNotMultipliedInWaysThatLoseTheEndOfASum) {
  auto setFaults = fake<decltype(&weft_fake_faults)>("libcublasLt.so.13", "weft_fake_faults");
  setWays({2, 3});
  setFaults(0, -1);
  Matmul p = matmul(ElementType::F8E5M2, ElementType::F8E4M3);
  p.isResultF32 = true;
  check<Float8E5M2, Float8E4M3, float>(p);
  EXPECT_EQ(taken(), 1);
  setFaults(-1, -1);
}

TEST_F(FakeBytes, AreNotMultipliedInWaysThatForgetAFactor) {
  auto setForgets = fake<decltype(&weft_fake_forgets)>("libcublasLt.so.13", "weft_fake_forgets");
  setWays({1, 2, 3});
  Matmul p = matmul(ElementType::F8E4M3, ElementType::F8E4M3);
  for (auto [first, second] : {std::pair(0, 1), {1, 0}}) {
    setForgets(first, second);
    check<Float8E4M3, Float8E4M3, BFloat16>(p);
    EXPECT_EQ(taken(), 2);
  }
  setForgets(0, 0);
  check<Float8E4M3, Float8E4M3, BFloat16>(p);
  EXPECT_EQ(taken(), 1);
  setForgets(-1, -1);
}

TEST_F(FakeBytes, AreNamedWhereTheLibraryRefuses) {
  setWays({1});
  Matmul p = matmul(ElementType::F8E5M2, ElementType::F8E5M2);
  cuda::MatmulAlgorithm way = {};
  DriverTable::Handle prepared = 0;
  EXPECT_THAT(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
              StartsWith("cublasLtMatmulAlgoGetHeuristic for a matmul of f8e5m2 matrices of "
                         "16x48 and 48x32"));
}

TEST_F(FakeMatmuls, GoTheWayThatIsGiven) {
  Matmul p = someMatmul();
  cuda::MatmulAlgorithm way = {};
  DriverTable::Handle prepared = 0;
  setWays({5, 3});
  ASSERT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)), "success");
  EXPECT_EQ(way.words[0], 1u);
  EXPECT_EQ(textOf(cuda.freeMatmul(device, prepared)), "success");
  setWays({3, 5}); // It is slower by now.
  p.workspaceBytes = 256;
  ASSERT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)), "success");
  EXPECT_EQ(way.words[0], 1u);
  EXPECT_EQ(taken(), 1);
  EXPECT_EQ(textOf(cuda.freeMatmul(device, prepared)), "success");
  p.workspaceBytes = 0;
  EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
            "cublasLtMatmulAlgoCheck of a way that was chosen for a matmul of f32 matrices of 3x4 "
            "and 4x5: CUBLAS_STATUS_NOT_SUPPORTED")
      << "it takes more memory than there is";
  way.words[7] = 1;
  EXPECT_THAT(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
              StartsWith("cublasLtMatmulAlgoCheck of a way"));
}

TEST_F(FakeMatmuls, SayWhatDecidesTheirWays) {
  setWays({1});
  const char *name = nullptr;
  ASSERT_EQ(textOf(cuda.nameMatmuls(device, &name)), "success");
  EXPECT_STREQ(name, "cuBLASLt 130100, driver 13010");
}

/// A is 2x3, B 3x8; rows of C, and of operands with its layout, have room for 8.
class FakeEpilogues : public FakeMatmuls {
protected:
  static constexpr int64_t kM = 2, kN = 8, kK = 3;

  float a(int64_t i, int64_t k) const { return float(i + k) / 4; }
  float b(int64_t k, int64_t j) const { return float(k - j) / 4; }
  float sum(int64_t i, int64_t j) const {
    float value = 0;
    for (int64_t k = 0; k < kK; ++k) {
      value += a(i, k) * b(k, j);
    }
    return value;
  }
  static float gelu(float x) {
    return 0.5f * x * (1 + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
  }

  void SetUp() override {
    FakeMatmuls::SetUp();
    setWays({1});
    std::vector<float> one, two, three(kM * kN), four(kN);
    for (int64_t i = 0; i < kM * kK; ++i) {
      one.push_back(a(i / kK, i % kK));
    }
    for (int64_t i = 0; i < kK * kN; ++i) {
      two.push_back(b(i / kN, i % kN));
    }
    for (size_t i = 0; i < three.size(); ++i) {
      three[i] = float(i) / 8;
    }
    for (size_t i = 0; i < four.size(); ++i) {
      four[i] = float(i) / 2;
    }
    at = {send(one),  send(two),   allocate(kM * kN * 4), send(three),
          send(four), send(three), allocate(kN * 4),      0};
  }
  void TearDown() override {
    for (DriverTable::Address address : {at.a, at.b, at.c, at.addend, at.bias, at.aux, at.sums}) {
      cuda.free(device, address);
    }
    FakeMatmuls::TearDown();
  }

  /// C.
  std::vector<float> compute(const Epilogue &epilogue) {
    Matmul p = {ElementType::F32, false, false, kM, kN, kK, kK, kN, kN};
    p.epilogue = epilogue;
    cuda::MatmulAlgorithm way = {};
    DriverTable::Handle prepared = 0;
    EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)), "success");
    EXPECT_EQ(textOf(cuda.runMatmul(device, stream, prepared, &at)), "success");
    std::vector<float> result = fetch<float>(at.c, kM * kN);
    EXPECT_EQ(textOf(cuda.freeMatmul(device, prepared)), "success");
    return result;
  }
  /// `value` of each row and column.
  template <typename Value> void expectC(const std::vector<float> &c, const Value &value) {
    for (int64_t i = 0; i < kM * kN; ++i) {
      EXPECT_NEAR(c[size_t(i)], value(i / kN, i % kN), 1e-4) << i;
    }
  }

  cuda::MatmulPlaces at = {};
};

TEST_F(FakeEpilogues, AddWhatLiesAsTheResultAndTheBiasOfColumns) {
  auto c = compute({.hasAddend = true, .hasBias = true});
  expectC(c,
          [&](int64_t i, int64_t j) { return sum(i, j) + float(i * kN + j) / 8 + float(j) / 2; });
}

TEST_F(FakeEpilogues, TakeGeluAndKeepWhatItIsTakenOf) {
  expectC(compute({.activation = Epilogue::Activation::Gelu}),
          [&](int64_t i, int64_t j) { return gelu(sum(i, j)); });
  auto c = compute({.hasBias = true, .activation = Epilogue::Activation::Gelu, .hasAux = true});
  auto before = [&](int64_t i, int64_t j) { return sum(i, j) + float(j) / 2; };
  expectC(c, [&](int64_t i, int64_t j) { return gelu(before(i, j)); });
  expectC(fetch<float>(at.aux, kM * kN), before);
}

TEST_F(FakeEpilogues, TakeTheGradientOfGelu) {
  auto c = compute({.activation = Epilogue::Activation::GeluGradient, .hasAux = true});
  expectC(c, [&](int64_t i, int64_t j) {
    float x = float(i * kN + j) / 8;
    return sum(i, j) * (gelu(x + 1e-2f) - gelu(x - 1e-2f)) / 2e-2f;
  });
}

TEST_F(FakeEpilogues, SumAnOperand) {
  expectC(compute({.sums = Epilogue::Sums::OfA}), [&](int64_t i, int64_t j) { return sum(i, j); });
  std::vector<float> rows = fetch<float>(at.sums, kM);
  for (int64_t i = 0; i < kM; ++i) {
    EXPECT_EQ(rows[size_t(i)], a(i, 0) + a(i, 1) + a(i, 2));
  }
  compute({.hasAddend = true, .sums = Epilogue::Sums::OfB});
  std::vector<float> columns = fetch<float>(at.sums, kN);
  for (int64_t j = 0; j < kN; ++j) {
    EXPECT_EQ(columns[size_t(j)], b(0, j) + b(1, j) + b(2, j));
  }
}

} // namespace
