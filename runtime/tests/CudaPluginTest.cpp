//===- CudaPluginTest.cpp - CUDA's functions, without a device ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs in several processes, as a library is found once: with what there is, with the
// fakes of FakeCuda.h where the loader looks first, and with one that is too old.
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"
#include "backends/cuda/Library.h"
#include "core/BFloat16.h"
#include "weft-rt/Program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <dlfcn.h>
#include <vector>

using namespace weft::rt;
using cuda::Library;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// The compiler's own.
__extension__ typedef _Float16 Float16;

// Numbers of the driver and of cuBLASLt.
constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
constexpr int kIllegalAddress = 700;

decltype(&weft_rt_cuda) plugin() {
  void *library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_TRUE(library) << dlerror();
  return reinterpret_cast<decltype(&weft_rt_cuda)>(dlsym(library, "weft_rt_cuda"));
}

const Library &table() { return *plugin()(Library::kVersion); }

std::string textOf(Library::Result result) { return result ? result : "success"; }

TEST(CudaPlugin, GivesItsTableForItsVersionOnly) {
  ASSERT_TRUE(plugin());
  EXPECT_TRUE(plugin()(Library::kVersion));
  EXPECT_FALSE(plugin()(Library::kVersion + 1));
  EXPECT_FALSE(plugin()(0));
}

TEST(CudaPlugin, HasAllFunctions) {
  const Library &library = table();
  static_assert(sizeof library % sizeof(void *) == 0);
  const auto *functions = reinterpret_cast<void *const *>(&library);
  size_t last = sizeof library / sizeof(void *) - 1;
  for (size_t i = 0; i < last; ++i) {
    EXPECT_TRUE(functions[i]) << i;
  }
  EXPECT_EQ(functions[last], reinterpret_cast<const void *>(library.standFor));
  EXPECT_FALSE(library.standFor) << "it stands in for nothing";
}

TEST(CudaPlugin, SaysThatThereIsNoDriver) {
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)) {
    GTEST_SKIP() << "there is a CUDA driver here";
  }
  auto says = StartsWith("cannot load libcuda.so.1, the CUDA driver: libcuda.so.1: ");
  int64_t count = 7;
  EXPECT_THAT(textOf(table().countDevices(&count)), says);
  EXPECT_EQ(count, 0);
  Library::Handle device = 7;
  cuda::DeviceFacts facts;
  EXPECT_THAT(textOf(table().open(0, &device, &facts)), says);
  EXPECT_EQ(device, 0u);
  EXPECT_STREQ(table().name(), "CUDA without a driver");
}

/// The functions of FakeCuda.h, of the library that the plugin has loaded.
template <typename Function> Function fake(const char *library, const char *name) {
  void *loaded = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  auto *found = loaded ? dlsym(loaded, name) : nullptr;
  EXPECT_TRUE(found) << "no " << name << " in " << library;
  return reinterpret_cast<Function>(found);
}

/// 3x4 by 4x5, with room between the rows.
Product someProduct() { return {ElementType::F32, false, false, 3, 5, 4, 6, 7, 8}; }

/// One open device.
class OnDevice : public testing::Test {
protected:
  void openDevice(int64_t number) {
    ASSERT_EQ(textOf(cuda.open(number, &device, &facts)), "success");
    ASSERT_EQ(textOf(cuda.makeStream(device, &stream)), "success");
    ASSERT_EQ(textOf(cuda.makeEvent(device, &event)), "success");
  }

  void TearDown() override {
    if (!device) {
      return;
    }
    EXPECT_EQ(textOf(cuda.freeEvent(device, event)), "success");
    EXPECT_EQ(textOf(cuda.freeStream(device, stream)), "success");
    EXPECT_EQ(textOf(cuda.close(device)), "success");
  }

  Library::Address allocate(uint64_t bytes) {
    Library::Address made = 0;
    EXPECT_EQ(textOf(cuda.allocate(device, bytes, &made)), "success");
    return made;
  }

  /// Waits for all that was enqueued.
  void finish() {
    EXPECT_EQ(textOf(cuda.record(device, event, stream)), "success");
    EXPECT_EQ(textOf(cuda.await(device, event)), "success");
  }

  template <typename T> Library::Address send(const std::vector<T> &values) {
    size_t bytes = values.size() * sizeof(T);
    void *place = nullptr;
    Library::Address made = allocate(bytes);
    EXPECT_EQ(textOf(cuda.allocatePinned(device, bytes, &place)), "success");
    std::memcpy(place, values.data(), bytes);
    EXPECT_EQ(textOf(cuda.copyToDevice(device, stream, made, place, bytes)), "success");
    finish();
    EXPECT_EQ(textOf(cuda.freePinned(device, place)), "success");
    return made;
  }

  template <typename T> std::vector<T> fetch(Library::Address from, size_t count) {
    std::vector<T> values(count);
    size_t bytes = count * sizeof(T);
    void *place = nullptr;
    EXPECT_EQ(textOf(cuda.allocatePinned(device, bytes, &place)), "success");
    EXPECT_EQ(textOf(cuda.copyToHost(device, stream, place, from, bytes)), "success");
    finish();
    std::memcpy(values.data(), place, bytes);
    EXPECT_EQ(textOf(cuda.freePinned(device, place)), "success");
    return values;
  }

  /// C, whose room is filled with 9 before the product is run.
  template <typename T, typename C> std::vector<float> run(const Product &p) {
    std::vector<T> a(60 * 8), b(60 * 8);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = T(float(i * 7 % 13) - 6);
      b[i] = T(float(i * 5 % 11) - 5);
    }
    Library::Handle prepared = 0;
    Library::Address onA = send(a), onB = send(b), onC = send(std::vector<C>(60 * 8, C(9.0f)));
    EXPECT_EQ(textOf(cuda.prepareProduct(device, &p, 1 << 10, &prepared)), "success");
    EXPECT_EQ(textOf(cuda.runProduct(device, stream, prepared, onA, onB, onC, 0)), "success");
    std::vector<float> result;
    for (C value : fetch<C>(onC, 60 * 8)) {
      result.push_back(float(value));
    }
    EXPECT_EQ(textOf(cuda.freeProduct(device, prepared)), "success");
    for (Library::Address address : {onA, onB, onC}) {
      cuda.free(device, address);
    }
    return result;
  }

  /// What `run` is to give: small whole numbers, which all types hold or round in one way.
  template <typename C> static std::vector<float> expected(const Product &p) {
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

  void checkProducts() {
    for (int form = 0; form < 4; ++form) {
      // One, several, one operand shared, a sum.
      for (auto [batch, strideA, strideB, strideC] :
           {std::array<int64_t, 4>{1, 0, 0, 0}, {3, 40, 50, 45}, {3, 40, 0, 30}, {3, 40, 50, 0}}) {
        Product p = someProduct();
        p.transposeA = form % 2;
        p.transposeB = form / 2;
        p.batch = batch;
        p.strideA = strideA;
        p.strideB = strideB;
        p.strideC = strideC;
        SCOPED_TRACE(testing::Message() << "form " << form << " batch " << batch << " strides "
                                        << strideA << " " << strideB << " " << strideC);
        EXPECT_EQ((run<float, float>(p)), expected<float>(p));
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

  /// The product of two numbers, of which tf32 has no room for one.
  float multiplySlightlyMoreThanOne(bool isTF32) {
    Product p = {ElementType::F32, false, false, 1, 1, 1, 1, 1, 1};
    p.isTF32 = isTF32;
    Library::Handle prepared = 0;
    Library::Address a = send<float>({1 + 0x1p-12f}), b = send<float>({1}), c = send<float>({0});
    EXPECT_EQ(textOf(cuda.prepareProduct(device, &p, 1 << 10, &prepared)), "success");
    EXPECT_EQ(textOf(cuda.runProduct(device, stream, prepared, a, b, c, 0)), "success");
    float result = fetch<float>(c, 1).front();
    EXPECT_EQ(textOf(cuda.freeProduct(device, prepared)), "success");
    for (Library::Address address : {a, b, c}) {
      cuda.free(device, address);
    }
    return result;
  }

  const Library &cuda = table();
  Library::Handle device = 0, stream = 0, event = 0;
  cuda::DeviceFacts facts;
};

/// One of the fake driver's, of which nothing may be left at the end.
class FakeCuda : public OnDevice {
protected:
  void SetUp() override {
    int64_t count = 0;
    ASSERT_EQ(textOf(cuda.countDevices(&count)), "success");
    ASSERT_EQ(count, 2);
    fail = fake<decltype(fail)>("libcuda.so.1", "weft_fake_fail");
    openDevice(1);
  }

  void TearDown() override {
    OnDevice::TearDown();
    EXPECT_EQ(fake<decltype(&weft_fake_left)>("libcuda.so.1", "weft_fake_left")(), 0);
  }

  decltype(&weft_fake_fail) fail = nullptr;
};

TEST_F(FakeCuda, TellsWhatADeviceIs) {
  EXPECT_THAT(cuda.name(), StartsWith("CUDA 13.1"));
  EXPECT_STREQ(facts.name, "Fake");
  EXPECT_EQ(facts.architecture, 121u);
  EXPECT_EQ(facts.multiprocessors, 132u);
  EXPECT_EQ(facts.memoryBytes, uint64_t(80) << 30);
}

TEST_F(FakeCuda, RoundsToTF32OnlyWhereTheProductSaysSo) {
  EXPECT_EQ(multiplySlightlyMoreThanOne(false), 1 + 0x1p-12f);
  EXPECT_EQ(multiplySlightlyMoreThanOne(true), 1);
}

TEST_F(FakeCuda, CountsNoneWhereThereIsNone) {
  int64_t count = 7;
  fail("cuInit", kNoDevice);
  EXPECT_EQ(textOf(cuda.countDevices(&count)), "success");
  EXPECT_EQ(count, 0);
}

TEST_F(FakeCuda, OpensNoDeviceThatIsNotThere) {
  Library::Handle none = 7;
  EXPECT_EQ(textOf(cuda.open(2, &none, &facts)),
            "cuDeviceGet of device 2: CUDA_ERROR_INVALID_VALUE (in words)");
  EXPECT_EQ(none, 0u);
}

TEST_F(FakeCuda, NoMemoryLeftIsNoError) {
  Library::Address address = 7;
  fail("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.allocate(device, 1 << 20, &address)), "success");
  EXPECT_EQ(address, 0u);
  void *place = &address;
  fail("cuMemHostAlloc", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.allocatePinned(device, 1 << 20, &place)), "success");
  EXPECT_EQ(place, nullptr);
}

TEST_F(FakeCuda, SaysWhatWasAskedAndWhatCame) {
  Library::Address address = 7;
  fail("cuMemAlloc_v2", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.allocate(device, uint64_t(5) << 29, &address)),
            "cuMemAlloc of 2.50 GiB: CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
  fail("cuMemcpyDtoHAsync_v2", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.copyToHost(device, stream, &address, 0, 8)),
            "cuMemcpyDtoHAsync of 8 bytes: CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
  fail("cuStreamWaitEvent", 12345);
  EXPECT_EQ(textOf(cuda.wait(device, stream, 0)),
            "cuStreamWaitEvent: error 12345 (unknown to this driver)");
}

TEST_F(FakeCuda, AnEventThatIsNotReachedIsNoError) {
  bool isReached = true;
  EXPECT_EQ(textOf(cuda.record(device, event, stream)), "success");
  fail("cuEventQuery", kNotReady);
  EXPECT_EQ(textOf(cuda.reached(device, event, &isReached)), "success");
  EXPECT_FALSE(isReached);
  EXPECT_EQ(textOf(cuda.await(device, event)), "success");
  EXPECT_EQ(textOf(cuda.reached(device, event, &isReached)), "success");
  EXPECT_TRUE(isReached);
  fail("cuEventSynchronize", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.await(device, event)),
            "cuEventSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
}

TEST_F(FakeCuda, CopiesAndClears) {
  Library::Address from = send<int>({1, 2, 3, 4}), to = allocate(16);
  EXPECT_EQ(textOf(cuda.copy(device, stream, to, from, 16)), "success");
  EXPECT_EQ(textOf(cuda.zero(device, stream, to + 4, 8)), "success");
  EXPECT_THAT(fetch<int>(to, 4), testing::ElementsAre(1, 0, 0, 4));
  fail("cuMemsetD8Async", kInvalidValue);
  EXPECT_EQ(textOf(cuda.zero(device, stream, to, 0)), "success") << "nothing is not asked for";
  EXPECT_NE(textOf(cuda.zero(device, stream, to, 1)), "success");
  cuda.free(device, from);
  cuda.free(device, to);
}

TEST_F(FakeCuda, LoadsAndLaunches) {
  Library::Handle module = 0, entry = 7;
  fail("cuModuleLoadDataEx", kInvalidValue);
  EXPECT_EQ(textOf(cuda.load(device, "bad", &module)),
            "cuModuleLoadDataEx, of which the assembler says 'line 1: bad': "
            "CUDA_ERROR_INVALID_VALUE (in words)");
  ASSERT_EQ(textOf(cuda.load(device, "good", &module)), "success");
  EXPECT_EQ(textOf(cuda.entry(device, module, "none", &entry)),
            "cuModuleGetFunction of 'none': CUDA_ERROR_NOT_FOUND (in words)");
  EXPECT_EQ(entry, 0u);
  ASSERT_EQ(textOf(cuda.entry(device, module, "store", &entry)), "success");
  Library::Address to = allocate(24);
  uint64_t arguments[] = {to, 77};
  EXPECT_EQ(textOf(cuda.launch(device, stream, entry, 12, 256, arguments, 2)), "success");
  EXPECT_THAT(fetch<uint64_t>(to, 3), testing::ElementsAre(12, 256, 77));
  fail("cuLaunchKernel", kInvalidValue);
  EXPECT_EQ(textOf(cuda.launch(device, stream, entry, 12, 256, arguments, 2)),
            "cuLaunchKernel of 12 blocks of 256 threads: CUDA_ERROR_INVALID_VALUE (in words)");
  cuda.free(device, to);
  EXPECT_EQ(textOf(cuda.unload(device, module)), "success");
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

class FakeProducts : public FakeCuda {
protected:
  /// Of the library, which is loaded when the first product is prepared.
  void setWays(std::vector<float> milliseconds) {
    dlopen("libcublasLt.so.13", RTLD_NOW);
    fake<decltype(&weft_fake_ways)>("libcublasLt.so.13", "weft_fake_ways")(
        milliseconds.data(), int(milliseconds.size()));
  }
  int taken() { return fake<decltype(&weft_fake_taken)>("libcublasLt.so.13", "weft_fake_taken")(); }
};

TEST_F(FakeProducts, GiveWhatTheHostGives) {
  setWays({1});
  checkProducts();
}

TEST_F(FakeProducts, SumsOfNothingAreZero) {
  setWays({1});
  for (bool isF32 : {true, false}) {
    Product p = someProduct();
    p.k = 0;
    p.batch = 2;
    p.strideC = 40;
    p.type = isF32 ? ElementType::F32 : ElementType::BF16;
    EXPECT_EQ((isF32 ? run<float, float>(p) : run<BFloat16, BFloat16>(p)), expected<float>(p));
    p.m = 0;
    EXPECT_EQ((isF32 ? run<float, float>(p) : run<BFloat16, BFloat16>(p)), expected<float>(p));
  }
}

TEST_F(FakeProducts, TakeTheFastestWayAndOfEqualOnesTheFirst) {
  Product p = someProduct();
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

TEST_F(FakeProducts, SayWhatCannotBeComputed) {
  Product p = someProduct();
  p.batch = 2;
  p.strideC = 40;
  Library::Handle prepared = 7;
  setWays({});
  EXPECT_EQ(textOf(cuda.prepareProduct(device, &p, 1 << 10, &prepared)),
            "cublasLtMatmulAlgoGetHeuristic for a product of f32 matrices of 3x4 and 4x5, 2 of "
            "them with a workspace of 1.00 KiB: CUBLAS_STATUS_NOT_SUPPORTED");
  EXPECT_EQ(prepared, 0u);
  setWays({-1, -1});
  EXPECT_EQ(textOf(cuda.prepareProduct(device, &p, 0, &prepared)),
            "cublasLtMatmul refuses each of the ways that were proposed for a product of f32 "
            "matrices of 3x4 and 4x5, 2 of them, which are 2");
  setWays({1, 1});
  fail("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.prepareProduct(device, &p, 0, &prepared)),
            "cuMemAlloc of 64 bytes, to try a product of f32 matrices of 3x4 and 4x5, 2 of them: "
            "CUDA_ERROR_OUT_OF_MEMORY (in words)");
  fail("cuEventSynchronize", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.prepareProduct(device, &p, 0, &prepared)),
            "cuEventSynchronize, trying a product of f32 matrices of 3x4 and 4x5, 2 of them: "
            "CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
}

//===----------------------------------------------------------------------===//
// With devices
//===----------------------------------------------------------------------===//

class CudaDevice : public OnDevice {
protected:
  void SetUp() override {
    int64_t count = 0;
    if (Library::Result reason = cuda.countDevices(&count); reason || count == 0) {
      GTEST_SKIP() << "no CUDA device: " << (reason ? reason : "the driver finds none");
    }
    openDevice(0);
  }
};

TEST_F(CudaDevice, TellsWhatItIs) {
  EXPECT_THAT(cuda.name(), StartsWith("CUDA 1"));
  EXPECT_STRNE(facts.name, "");
  EXPECT_GE(facts.architecture, 80u);
  EXPECT_GT(facts.multiprocessors, 0u);
  EXPECT_GT(facts.memoryBytes, uint64_t(1) << 30);
}

TEST_F(CudaDevice, HasNoRoomForMoreThanItHas) {
  Library::Address address = 7;
  EXPECT_EQ(textOf(cuda.allocate(device, facts.memoryBytes * 2, &address)), "success");
  EXPECT_EQ(address, 0u);
  address = allocate(1000);
  EXPECT_EQ(address % 256, 0u);
  EXPECT_EQ(textOf(cuda.free(device, address)), "success");
}

constexpr const char *kStore = R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry store(.param .u64 to, .param .u64 value) {
  .reg .b64 %to, %value, %wide;
  .reg .b32 %size;
  ld.param.u64 %to, [to];
  ld.param.u64 %value, [value];
  mov.u32 %size, %nctaid.x;
  cvt.u64.u32 %wide, %size;
  st.global.u64 [%to], %wide;
  mov.u32 %size, %ntid.x;
  cvt.u64.u32 %wide, %size;
  st.global.u64 [%to+8], %wide;
  st.global.u64 [%to+16], %value;
  ret;
}
)";

TEST_F(CudaDevice, RunsPTX) {
  Library::Handle module = 0, entry = 0;
  ASSERT_EQ(textOf(cuda.load(device, kStore, &module)), "success");
  EXPECT_THAT(textOf(cuda.entry(device, module, "none", &entry)),
              HasSubstr("CUDA_ERROR_NOT_FOUND"));
  ASSERT_EQ(textOf(cuda.entry(device, module, "store", &entry)), "success");
  Library::Address to = allocate(24);
  uint64_t arguments[] = {to, 77};
  EXPECT_EQ(textOf(cuda.launch(device, stream, entry, 12, 256, arguments, 2)), "success");
  EXPECT_THAT(fetch<uint64_t>(to, 3), testing::ElementsAre(12, 256, 77));
  EXPECT_EQ(textOf(cuda.free(device, to)), "success");
  EXPECT_EQ(textOf(cuda.unload(device, module)), "success");
  EXPECT_THAT(textOf(cuda.load(device, "bad", &module)), HasSubstr("cuModuleLoadDataEx"));
}

TEST_F(CudaDevice, ComputesProducts) { checkProducts(); }

/// With an empty library in the place of cuBLASLt.
TEST(OldProducts, SayWhichFunctionIsMissing) {
  const Library &cuda = table();
  Library::Handle device = 0, prepared = 0;
  cuda::DeviceFacts facts;
  ASSERT_EQ(textOf(cuda.open(0, &device, &facts)), "success");
  Product p = someProduct();
  EXPECT_THAT(textOf(cuda.prepareProduct(device, &p, 0, &prepared)),
              AllOf(StartsWith("cannot use libcublasLt.so.13, CUDA's library of matrix products: "),
                    EndsWith("undefined symbol: cublasLtGetStatusString")));
  EXPECT_EQ(textOf(cuda.close(device)), "success");
}

} // namespace
