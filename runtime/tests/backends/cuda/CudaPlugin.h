//===- CudaPlugin.h - shared code of tests of CUDA's functions ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_TESTS_BACKENDS_CUDA_CUDAPLUGIN_H
#define WEFT_RT_TESTS_BACKENDS_CUDA_CUDAPLUGIN_H

#include "backends/cuda/DriverTable.h"
#include "support/BFloat16.h"
#include "tests/backends/cuda/DeviceStream.h"
#include "tests/backends/cuda/FakeCuda.h"
#include "weft-rt/Program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <vector>

namespace weft::rt {
using cuda::DriverTable;

/// The type of the C++ compiler.
__extension__ typedef _Float16 Float16;

// Error codes of the driver and of cuBLASLt.
inline constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
inline constexpr int kIllegalAddress = 700;

inline decltype(&weft_rt_cuda) plugin() {
  // Another place where the test was carried to another machine.
  const char *chosen = std::getenv("WEFT_RT_CUDA");
  void *library = dlopen(chosen && *chosen ? chosen : PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  return reinterpret_cast<decltype(&weft_rt_cuda)>(dlsym(library, "weft_rt_cuda"));
}

inline const DriverTable &table() { return *plugin()(DriverTable::kVersion); }

inline std::string textOf(DriverTable::Result result) { return result ? result : "success"; }

/// After `giveUp` nothing on the device is freed before the process ends: that is no leak.
inline void leaveToTheEnd(std::initializer_list<DriverTable::Handle> left) {
  static auto &all = *new std::vector<DriverTable::Handle>;
  all.insert(all.end(), left);
}

/// Finds a function of FakeCuda.h in the library that the plugin has loaded.
template <typename Function> Function fake(const char *library, const char *name) {
  void *loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  auto *found = loaded ? dlsym(loaded, name) : nullptr;
  EXPECT_TRUE(found) << "no " << name << " in " << library;
  return reinterpret_cast<Function>(found);
}

/// A matmul of 3x4 by 4x5, with gaps between the rows.
inline Matmul someMatmul() { return {ElementType::F32, false, false, 3, 5, 4, 6, 7, 8}; }

/// One open device.
class OnDevice : public testing::Test, protected cuda::DeviceStream {
protected:
  OnDevice() : DeviceStream(table()) {}

  void openDevice(int64_t number) {
    DriverTable::Handle opened = 0;
    ASSERT_EQ(textOf(cuda.open(number, &opened, &facts)), "success");
    begin(opened);
  }

  void TearDown() override {
    if (!device) {
      return;
    }
    end();
    EXPECT_EQ(textOf(cuda.close(device)), "success");
  }

  /// Runs a matmul and returns C, whose memory holds 9 before.
  template <typename T, typename C> std::vector<float> run(const Matmul &p) {
    std::vector<T> a(60 * 8), b(60 * 8);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = T(float(i * 7 % 13) - 6);
      b[i] = T(float(i * 5 % 11) - 5);
    }
    DriverTable::Handle prepared = 0;
    DriverTable::Address onA = send(a), onB = send(b), onC = send(std::vector<C>(60 * 8, C(9.0f)));
    cuda::MatmulAlgorithm way = {};
    EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)), "success");
    cuda::MatmulPlaces places = {onA, onB, onC, 0, 0, 0, 0, 0};
    EXPECT_EQ(textOf(cuda.runMatmul(device, stream, prepared, &places)), "success");
    std::vector<float> result;
    for (C value : fetch<C>(onC, 60 * 8)) {
      result.push_back(float(value));
    }
    EXPECT_EQ(textOf(cuda.freeMatmul(device, prepared)), "success");
    for (DriverTable::Address address : {onA, onB, onC}) {
      cuda.free(device, address);
    }
    return result;
  }

  /// Returns the expected result of `run`: small integers, which are exact in all types or rounded
  /// in one way.
  template <typename C> static std::vector<float> expected(const Matmul &p) {
    std::vector<float> result(60 * 8, 9);
    auto a = [](int64_t i) { return float(i * 7 % 13) - 6; };
    auto b = [](int64_t i) { return float(i * 5 % 11) - 5; };
    for (int64_t i = 0; i < p.batch; ++i) {
      for (int64_t row = 0; row < p.m; ++row) {
        for (int64_t column = 0; column < p.n; ++column) {
          float &c = result[size_t(i * p.strideC + row * p.ldc + column)];
          float sum = p.isSum() && i > 0 ? c : 0;
          for (int64_t k = 0; k < p.k; ++k) {
            sum += a(i * p.strideA + (p.transposeA ? k * p.lda + row : row * p.lda + k)) *
                   b(i * p.strideB + (p.transposeB ? column * p.ldb + k : k * p.ldb + column));
          }
          c = float(C(sum));
        }
      }
    }
    return result;
  }

  void checkMatmuls() {
    for (int form = 0; form < 4; ++form) {
      // One, several, one operand shared, a sum.
      for (auto [batch, strideA, strideB, strideC] :
           {std::array<int64_t, 4>{1, 0, 0, 0}, {3, 40, 50, 45}, {3, 40, 0, 30}, {3, 40, 50, 0}}) {
        Matmul p = someMatmul();
        p.transposeA = form % 2;
        p.transposeB = form / 2;
        p.batch = batch;
        p.strideA = strideA;
        p.strideB = strideB;
        p.strideC = strideC;
        SCOPED_TRACE(testing::Message() << "form " << form << " batch " << batch << " strides "
                                        << strideA << " " << strideB << " " << strideC);
        EXPECT_EQ((run<float, float>(p)), expected<float>(p));
        p.type = ElementType::F64;
        EXPECT_EQ((run<double, double>(p)), expected<double>(p));
        p.type = ElementType::BF16;
        p.isResultF32 = true;
        EXPECT_EQ((run<BFloat16, float>(p)), expected<float>(p));
        if (!p.isSum()) {
          p.isResultF32 = false;
          EXPECT_EQ((run<BFloat16, BFloat16>(p)), expected<BFloat16>(p));
          p.type = ElementType::F16;
          EXPECT_EQ((run<Float16, Float16>(p)), expected<Float16>(p));
        }
        p.type = ElementType::F16;
        p.isResultF32 = true;
        EXPECT_EQ((run<Float16, float>(p)), expected<float>(p));
      }
    }
  }

  /// Computes a matmul of two numbers, one of which tf32 cannot represent.
  float multiplySlightlyMoreThanOne(bool isTF32) {
    Matmul p = {ElementType::F32, false, false, 1, 1, 1, 1, 1, 1};
    p.isTF32 = isTF32;
    DriverTable::Handle prepared = 0;
    DriverTable::Address a = send<float>({1 + 0x1p-12f}), b = send<float>({1}),
                         c = send<float>({0});
    cuda::MatmulAlgorithm way = {};
    EXPECT_EQ(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)), "success");
    cuda::MatmulPlaces places = {a, b, c, 0, 0, 0, 0, 0};
    EXPECT_EQ(textOf(cuda.runMatmul(device, stream, prepared, &places)), "success");
    float result = fetch<float>(c, 1).front();
    EXPECT_EQ(textOf(cuda.freeMatmul(device, prepared)), "success");
    for (DriverTable::Address address : {a, b, c}) {
      cuda.free(device, address);
    }
    return result;
  }

  cuda::DeviceFacts facts;
};

/// A device of the fake driver; at its end all objects must have been freed.
class FakeCuda : public OnDevice {
protected:
  void SetUp() override {
    int64_t count = 0;
    ASSERT_EQ(textOf(cuda.countDevices(&count)), "success");
    ASSERT_EQ(count, 2);
    fail = fake<decltype(fail)>("libcuda.so.1", "weft_fake_fail");
    leftBefore = fake<decltype(&weft_fake_left)>("libcuda.so.1", "weft_fake_left")();
    openDevice(1);
  }

  void TearDown() override {
    OnDevice::TearDown();
    EXPECT_EQ(fake<decltype(&weft_fake_left)>("libcuda.so.1", "weft_fake_left")(),
              leftBefore + lost);
  }

  decltype(&weft_fake_fail) fail = nullptr;
  /// The number of objects before a test, and of those that it leaves on purpose.
  int64_t leftBefore = 0, lost = 0;
};

} // namespace weft::rt

#endif // WEFT_RT_TESTS_BACKENDS_CUDA_CUDAPLUGIN_H
