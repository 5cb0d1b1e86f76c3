//===- CudaPluginTest.cpp - CUDA's functions, without a device ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Runs in several processes, since a process loads a library once: with the installed
// libraries, with the fakes of FakeCuda.h, and with one that is too old.
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/CudaPlugin.h"
#include "tests/backends/cuda/AttentionTrial.h"

using namespace weft::rt;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

TEST(CudaPlugin, GivesItsTableForItsVersionOnly) {
  ASSERT_TRUE(plugin());
  EXPECT_TRUE(plugin()(DriverTable::kVersion));
  EXPECT_FALSE(plugin()(DriverTable::kVersion + 1));
  EXPECT_FALSE(plugin()(0));
}

TEST(CudaPlugin, HasAllFunctions) {
  const DriverTable &library = table();
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
  DriverTable::Handle device = 7;
  cuda::DeviceFacts facts;
  EXPECT_THAT(textOf(table().open(0, &device, &facts)), says);
  EXPECT_EQ(device, 0u);
  EXPECT_STREQ(table().name(), "CUDA without a driver");
}

TEST_F(FakeCuda, TellsWhatADeviceIs) {
  EXPECT_THAT(cuda.name(), StartsWith("CUDA 13.1"));
  EXPECT_STREQ(facts.name, "Fake");
  EXPECT_THAT(facts.identity, testing::Each(1));
  EXPECT_EQ(facts.architecture, 121u);
  EXPECT_EQ(facts.multiprocessors, 132u);
  EXPECT_EQ(facts.memoryBytes, uint64_t(80) << 30);
  EXPECT_EQ(facts.freeBytes, uint64_t(79) << 30);
}

TEST_F(FakeCuda, RoundsToTF32OnlyWhereTheMatmulSaysSo) {
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
  DriverTable::Handle none = 7;
  EXPECT_EQ(textOf(cuda.open(2, &none, &facts)),
            "cuDeviceGet of device 2: CUDA_ERROR_INVALID_VALUE (in words)");
  EXPECT_EQ(none, 0u);
}

TEST_F(FakeCuda, NoMemoryLeftIsNoError) {
  DriverTable::Address address = 7;
  fail("cuMemAlloc_v2", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.allocate(device, 1 << 20, &address)), "success");
  EXPECT_EQ(address, 0u);
  void *place = &address;
  fail("cuMemHostAlloc", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.allocatePinned(device, 1 << 20, &place)), "success");
  EXPECT_EQ(place, nullptr);
}

TEST_F(FakeCuda, WhatElseLacksMemoryIsKnown) {
  DriverTable::Handle made = 0;
  for (auto [code, isMemory] : {std::pair(kOutOfMemory, true), {kInvalidValue, false}}) {
    fail("cuEventCreate", code);
    EXPECT_NE(cuda.makeEvent(device, &made), nullptr);
    EXPECT_EQ(cuda.lacksMemory(), isMemory);
  }
}

TEST_F(FakeCuda, UrgentStreamsGoFirst) {
  auto priority = fake<decltype(&weft_fake_priority)>("libcuda.so.1", "weft_fake_priority");
  EXPECT_EQ(priority(), 0);
  DriverTable::Handle urgent = 0;
  ASSERT_EQ(textOf(cuda.makeUrgentStream(device, &urgent)), "success");
  EXPECT_EQ(priority(), -5);
  EXPECT_EQ(textOf(cuda.freeStream(device, urgent)), "success");
}

TEST_F(FakeCuda, SaysWhatWasAskedAndWhatCame) {
  DriverTable::Address address = 7;
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

TEST_F(FakeCuda, TakesTimes) {
  DriverTable::Handle from = 0, to = 0;
  ASSERT_EQ(textOf(cuda.makeTimer(device, &from)), "success");
  ASSERT_EQ(textOf(cuda.makeTimer(device, &to)), "success");
  EXPECT_EQ(textOf(cuda.record(device, from, stream)), "success");
  fake<decltype(&weft_fake_elapse)>("libcuda.so.1", "weft_fake_elapse")(250);
  EXPECT_EQ(textOf(cuda.record(device, to, stream)), "success");
  double seconds = 7;
  EXPECT_EQ(textOf(cuda.elapsed(device, from, to, &seconds)), "success");
  EXPECT_DOUBLE_EQ(seconds, 0.25);
  EXPECT_EQ(textOf(cuda.freeEvent(device, from)), "success");
  EXPECT_EQ(textOf(cuda.freeEvent(device, to)), "success");
  fail("cuEventCreate", kInvalidValue);
  EXPECT_EQ(textOf(cuda.makeTimer(device, &to)),
            "cuEventCreate: CUDA_ERROR_INVALID_VALUE (in words)");
  EXPECT_EQ(to, 0u);
}

TEST_F(FakeCuda, CopiesAndClears) {
  DriverTable::Address from = send<int>({1, 2, 3, 4}), to = allocate(16);
  EXPECT_EQ(textOf(cuda.copy(device, stream, to, from, 16)), "success");
  EXPECT_EQ(textOf(cuda.zero(device, stream, to + 4, 8)), "success");
  EXPECT_THAT(fetch<int>(to, 4), testing::ElementsAre(1, 0, 0, 4));
  fail("cuMemsetD8Async", kInvalidValue);
  EXPECT_EQ(textOf(cuda.zero(device, stream, to, 0)), "success") << "nothing is not asked for";
  EXPECT_NE(textOf(cuda.zero(device, stream, to, 1)), "success");
  cuda.free(device, from);
  cuda.free(device, to);
}

TEST_F(FakeCuda, TellsHowFarItHasCome) {
  void *word = nullptr;
  ASSERT_EQ(textOf(cuda.allocatePinned(device, 4, &word)), "success");
  EXPECT_EQ(textOf(cuda.writeProgress(device, stream, static_cast<uint32_t *>(word), 7)),
            "success");
  EXPECT_EQ(*static_cast<uint32_t *>(word), 7u);
  fail("cuStreamWriteValue32_v2", kIllegalAddress);
  EXPECT_EQ(textOf(cuda.writeProgress(device, stream, static_cast<uint32_t *>(word), 8)),
            "cuStreamWriteValue32: CUDA_ERROR_ILLEGAL_ADDRESS (in words)");
  EXPECT_EQ(textOf(cuda.freePinned(device, word)), "success");
}

TEST_F(FakeCuda, DoesNothingOnceItIsGivenUp) {
  DriverTable::Handle other = 0;
  cuda::DeviceFacts otherFacts;
  ASSERT_EQ(textOf(cuda.open(0, &other, &otherFacts)), "success");
  EXPECT_EQ(textOf(cuda.giveUp(other)), "success");
  DriverTable::Address address = 0;
  EXPECT_EQ(textOf(cuda.allocate(other, 8, &address)), "device 0 was given up");
  EXPECT_EQ(textOf(cuda.close(other)), "device 0 was given up");
  leaveToTheEnd({other});
  lost = 1;
}

TEST_F(FakeCuda, ReservesMemoryForThreads) {
  uint64_t bytes = 0;
  EXPECT_EQ(textOf(cuda.freeMemory(device, &bytes)), "success");
  EXPECT_EQ(bytes, uint64_t(79) << 30);
  DriverTable::Handle module = 0, entry = 0;
  fail("cuModuleLoadDataEx", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.load(device, "good", &module)), "success");
  EXPECT_EQ(module, 0u) << "no memory left is no error";
  ASSERT_EQ(textOf(cuda.load(device, "good", &module)), "success");
  ASSERT_EQ(textOf(cuda.entry(device, module, "store", &entry)), "success");
  EXPECT_EQ(textOf(cuda.localBytes(device, entry, &bytes)), "success");
  EXPECT_EQ(bytes, 4096u);
  bool isThere = true;
  fail("cuCtxSetLimit", kOutOfMemory);
  EXPECT_EQ(textOf(cuda.reserveLocal(device, 4096, &isThere)), "success");
  EXPECT_FALSE(isThere);
  fail("cuCtxSetLimit", kInvalidValue);
  EXPECT_EQ(textOf(cuda.reserveLocal(device, 4096, &isThere)),
            "cuCtxSetLimit of 4.00 KiB a thread: CUDA_ERROR_INVALID_VALUE (in words)");
  EXPECT_EQ(textOf(cuda.reserveLocal(device, 4096, &isThere)), "success");
  EXPECT_TRUE(isThere);
  fail("cuCtxSetLimit", kInvalidValue);
  EXPECT_EQ(textOf(cuda.reserveLocal(device, 2048, &isThere)), "success") << "there is more";
  fail("", 0);
  EXPECT_EQ(textOf(cuda.unload(device, module)), "success");
}

TEST_F(FakeCuda, LoadsAndLaunches) {
  DriverTable::Handle module = 0, entry = 7;
  fail("cuModuleLoadDataEx", kInvalidValue);
  EXPECT_EQ(textOf(cuda.load(device, "bad", &module)),
            "cuModuleLoadDataEx, of which the assembler says 'line 1: bad': "
            "CUDA_ERROR_INVALID_VALUE (in words)");
  ASSERT_EQ(textOf(cuda.load(device, "good", &module)), "success");
  EXPECT_EQ(textOf(cuda.entry(device, module, "none", &entry)),
            "cuModuleGetFunction of 'none': CUDA_ERROR_NOT_FOUND (in words)");
  EXPECT_EQ(entry, 0u);
  ASSERT_EQ(textOf(cuda.entry(device, module, "store", &entry)), "success");
  DriverTable::Address to = allocate(24);
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
// With devices
//===----------------------------------------------------------------------===//

class CudaDevice : public OnDevice {
protected:
  void SetUp() override {
    int64_t count = 0;
    if (DriverTable::Result reason = cuda.countDevices(&count); reason || count == 0) {
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
  DriverTable::Address address = 7;
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
  DriverTable::Handle module = 0, entry = 0;
  ASSERT_EQ(textOf(cuda.load(device, kStore, &module)), "success");
  EXPECT_THAT(textOf(cuda.entry(device, module, "none", &entry)),
              HasSubstr("CUDA_ERROR_NOT_FOUND"));
  ASSERT_EQ(textOf(cuda.entry(device, module, "store", &entry)), "success");
  DriverTable::Address to = allocate(24);
  uint64_t arguments[] = {to, 77};
  EXPECT_EQ(textOf(cuda.launch(device, stream, entry, 12, 256, arguments, 2)), "success");
  EXPECT_THAT(fetch<uint64_t>(to, 3), testing::ElementsAre(12, 256, 77));
  EXPECT_EQ(textOf(cuda.free(device, to)), "success");
  EXPECT_EQ(textOf(cuda.unload(device, module)), "success");
  EXPECT_THAT(textOf(cuda.load(device, "bad", &module)), HasSubstr("cuModuleLoadDataEx"));
}

TEST_F(CudaDevice, ComputesMatmuls) { checkMatmuls(); }

/// If cuDNN refuses, there is a reason.
TEST_F(CudaDevice, ComputesAttention) {
  for (const cuda::AttentionCase &tried : cuda::attentionCases()) {
    for (bool isBackward : {false, true}) {
      for (bool isDeterministic : {false, true}) {
        SCOPED_TRACE(testing::Message() << tried.name << (isBackward ? " backward" : "")
                                        << (isDeterministic ? " deterministic" : ""));
        std::string refusal =
            cuda::AttentionTrial(cuda, device, tried, isBackward).run(isDeterministic);
        // Plans of cuDNN 9.19, see CudnnPlansTest.
        if (facts.architecture >= 90 && facts.architecture < 110 && !isDeterministic) {
          EXPECT_EQ(refusal, "");
        }
        std::cout << tried.name << (isBackward ? " backward" : "")
                  << (isDeterministic ? " deterministic" : "") << ": "
                  << (refusal.empty() ? "done" : refusal) << std::endl;
      }
    }
  }
}

/// With a driver that reports CUDA 12.9.
TEST(AgedDriver, SaysWhichIsNeeded) {
  int64_t count = 7;
  EXPECT_EQ(
      textOf(table().countDevices(&count)),
      "cannot use libcuda.so.1, the CUDA driver: it is for CUDA 12.9, expected 13.0 or newer, "
      "as of driver 580");
  EXPECT_EQ(count, 0);
}

/// Returns the plugin's refusal of attention on an open device, which is no failure.
std::string refusalOfAttention() {
  const DriverTable &cuda = table();
  DriverTable::Handle device = 0, prepared = 7;
  cuda::DeviceFacts facts;
  EXPECT_EQ(textOf(cuda.open(0, &device, &facts)), "success");
  Attention attention;
  AttentionPart part;
  const char *refusal = nullptr;
  EXPECT_EQ(textOf(cuda.prepareAttention(device, &attention, &part, false, &prepared, &refusal)),
            "success");
  EXPECT_EQ(prepared, 0u);
  std::string text = textOf(refusal);
  EXPECT_EQ(textOf(cuda.close(device)), "success");
  return text;
}

#ifdef HAS_ATTENTION
TEST(FakeAttention, IsTooOld) {
  EXPECT_EQ(refusalOfAttention(), "libcudnn.so.9 is version 9.1.0, expected 9.15.1 or later");
}

/// With a cuDNN for CUDA 99, which does not exist, and for one whose compiler reports 97.3.
TEST(FakeAttention, SaysWhichCompilerIsMissing) {
  setenv("WEFT_FAKE_CUDNN_VERSION", "91900", 1);
  EXPECT_THAT(refusalOfAttention(),
              StartsWith("cannot load libnvrtc.so.99, which cuDNN's attention is compiled with: "));
  setenv("WEFT_FAKE_CUDNN_CUDART", "98010", 1);
  EXPECT_THAT(refusalOfAttention(), StartsWith("cannot load libnvrtc-builtins.so.97.3, which"));
  unsetenv("WEFT_FAKE_CUDNN_VERSION");
  unsetenv("WEFT_FAKE_CUDNN_CUDART");
}

/// With an empty library in the place of cuDNN.
TEST(OldAttention, SaysWhichFunctionIsMissing) {
  EXPECT_THAT(refusalOfAttention(),
              AllOf(StartsWith("cannot use libcudnn.so.9, CUDA's library of attention: "),
                    EndsWith("undefined symbol: cudnnGetVersion")));
}
#else
TEST(FakeAttention, IsLeftOut) {
  EXPECT_EQ(refusalOfAttention(), "libweft-rt-cuda.so.1 was built without cudnn_frontend, which "
                                  "'utils/setup-cuda --runtime' gets");
}
#endif

/// With an empty library in the place of cuBLASLt.
TEST(OldMatmuls, SayWhichFunctionIsMissing) {
  const DriverTable &cuda = table();
  DriverTable::Handle device = 0, prepared = 0;
  cuda::DeviceFacts facts;
  ASSERT_EQ(textOf(cuda.open(0, &device, &facts)), "success");
  Matmul p = someMatmul();
  cuda::MatmulAlgorithm way = {};
  EXPECT_THAT(textOf(cuda.prepareMatmul(device, &p, &way, &prepared)),
              AllOf(StartsWith("cannot use libcublasLt.so.13, CUDA's library of matmuls: "),
                    EndsWith("undefined symbol: cublasLtGetStatusString")));
  EXPECT_EQ(textOf(cuda.close(device)), "success");
}

} // namespace
