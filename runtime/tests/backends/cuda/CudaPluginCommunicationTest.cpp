//===- CudaPluginCommunicationTest.cpp - the calls of NCCL --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tests with the fakes of FakeCuda.h, and with a library that is too old; see CudaPluginTest.cpp.
//
//===----------------------------------------------------------------------===//

#include "tests/backends/cuda/CudaPlugin.h"
#include "weft-rt/Program.h"

#include <gmock/gmock.h>
#include <thread>

using namespace weft::rt;
using cuda::DriverTable;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// One rank.
class FakeCommunication : public testing::Test {
protected:
  static constexpr int kVersion = 22809, kSuccess = 0, kUnhandledCudaError = 1, kRemoteError = 6,
                       kInProgress = 7;

  void SetUp() override {
    cuda::DeviceFacts facts;
    ASSERT_EQ(textOf(cuda.open(1, &device, &facts)), "success");
    ASSERT_EQ(textOf(cuda.makeStream(device, &stream)), "success");
    ASSERT_EQ(textOf(cuda.makeWorldId(&id)), "success");
    say(kVersion, kSuccess);
  }

  void TearDown() override {
    if (isGivenUp) {
      leaveToTheEnd({device, stream});
    } else if (world) {
      EXPECT_EQ(textOf(cuda.freeCommunicator(device, world)), "success");
      EXPECT_THAT(calls(), EndsWith("destroy 1; "));
    }
    const char *expected = isGivenUp ? "device 1 was given up" : "success";
    EXPECT_EQ(textOf(cuda.freeStream(device, stream)), expected);
    EXPECT_EQ(textOf(cuda.close(device)), expected);
  }

  void say(int version, int state, bool hasWindows = true) {
    fake<void (*)(int, int, bool)>("libnccl.so.2", "weft_fake_nccl")(version, state, hasWindows);
  }
  std::string calls() { return fake<const char *(*)()>("libnccl.so.2", "weft_fake_nccl_calls")(); }
  void join() {
    ASSERT_EQ(textOf(cuda.join(device, &id, 1, 0, &world)), "success");
    EXPECT_EQ(calls(), "join 1 42 0 0 1; ");
  }
  bool isReady(DriverTable::Handle communicator) {
    bool is = false;
    EXPECT_EQ(textOf(cuda.ready(device, communicator, &is)), "success");
    return is;
  }

  bool isGivenUp = false;
  const DriverTable &cuda = table();
  cuda::WorldId id;
  DriverTable::Handle device = 0, stream = 0, world = 0;
};

TEST_F(FakeCommunication, RefusesVersions) {
  for (auto [version, text] :
       {std::pair(22706, ""),
        {22807, "NCCL is of version 2.28.7, and versions 2.28.3 to 2.28.8 are faulty"},
        {22803, "NCCL is of version 2.28.3, and"},
        {22802, ""},
        {22703, ""},
        {22702, "NCCL is of version 2.27.2, expected 2.27.3 or later, as of nvidia-nccl-cu13"}}) {
    say(version, kSuccess);
    EXPECT_THAT(textOf(cuda.makeWorldId(&id)), HasSubstr(*text ? text : "success"));
  }
  say(kVersion, kSuccess);
}

TEST_F(FakeCommunication, RefusesToBlock) {
  for (const char *value : {"1", "2", "0", ""}) {
    ASSERT_EQ(setenv("NCCL_COMM_BLOCKING", value, 1), 0);
    bool blocks = *value && *value != '0';
    EXPECT_EQ(textOf(cuda.makeWorldId(&id)),
              blocks ? std::string("NCCL_COMM_BLOCKING is '") + value +
                           "', by which NCCL's calls wait for other ranks without end: expected "
                           "it to be unset or 0"
                     : "success");
  }
  unsetenv("NCCL_COMM_BLOCKING");
}

TEST_F(FakeCommunication, NoMemoryLeftIsNoError) {
  auto fill = fake<decltype(&weft_fake_nccl_full)>("libnccl.so.2", "weft_fake_nccl_full");
  DriverTable::Address address = 7;
  fill();
  EXPECT_EQ(textOf(cuda.allocateShared(device, uint64_t(79) << 30 | 1, &address)), "success");
  EXPECT_EQ(address, 0u);
  fill();
  EXPECT_EQ(textOf(cuda.allocateShared(device, uint64_t(79) << 30, &address)),
            "ncclMemAlloc of 79.0 GiB: another error; NCCL's last message is 'the cable is cut'");
  EXPECT_EQ(address, 0u);
}

/// NCCL's last message may belong to an earlier call whose failure did not matter.
TEST_F(FakeCommunication, OldMessagesAreNotOfMemory) {
  join();
  auto lastly = fake<decltype(&weft_fake_nccl_says)>("libnccl.so.2", "weft_fake_nccl_says");
  lastly("Cuda failure 2 'out of memory'");
  for (auto [state, isMemory] : {std::pair(kRemoteError, false), {kUnhandledCudaError, true}}) {
    bool is = true;
    say(kVersion, state);
    EXPECT_NE(cuda.ready(device, world, &is), nullptr);
    EXPECT_EQ(cuda.lacksMemory(), isMemory);
  }
  lastly("the cable is cut");
  say(kVersion, kSuccess);
}

TEST_F(FakeCommunication, NothingBlocks) {
  join();
  say(kVersion, kInProgress);
  EXPECT_FALSE(isReady(world));
  say(kVersion, kSuccess);
  EXPECT_TRUE(isReady(world));
  DriverTable::Handle part = 0;
  ASSERT_EQ(textOf(cuda.split(device, world, 3, 4, &part)), "success");
  EXPECT_TRUE(isReady(part));
  EXPECT_EQ(textOf(cuda.end(device, part)), "success");
  EXPECT_EQ(textOf(cuda.freeCommunicator(device, part)), "success");
  EXPECT_EQ(calls(), "split 1 3 4 0; end 2; destroy 2; ");
  bool is = true;
  say(kVersion, kRemoteError);
  EXPECT_EQ(textOf(cuda.ready(device, world, &is)),
            "NCCL: remote process exited; NCCL's last message is 'the cable is cut'");
  EXPECT_FALSE(is);
}

TEST_F(FakeCommunication, SaysWhatIsToBeDone) {
  join();
  auto sum = ReductionKind::Sum, max = ReductionKind::Max;
  EXPECT_FALSE(cuda.allReduce(device, stream, world, max, ElementType::F64, 64, 64, 5));
  EXPECT_FALSE(cuda.allReduce(device, stream, world, sum, ElementType::BF16, 64, 64, 6));
  EXPECT_FALSE(cuda.allGather(device, stream, world, ElementType::F32, 64, 128, 7));
  EXPECT_FALSE(cuda.reduceScatter(device, stream, world, sum, ElementType::I64, 64, 128, 8));
  EXPECT_FALSE(cuda.beginGroup(device));
  EXPECT_FALSE(cuda.send(device, stream, world, ElementType::I32, 64, 9, 0));
  EXPECT_FALSE(cuda.receive(device, stream, world, ElementType::I32, 128, 9, 0));
  EXPECT_FALSE(cuda.endGroup(device));
  EXPECT_EQ(calls(), "all-reduce 5 8 2 1; all-reduce 6 9 0 1; all-gather 7 7 1; "
                     "reduce-scatter 8 4 0 1; begin; send 9 2 0 1; receive 9 2 0 1; end-group; ");
}

TEST_F(FakeCommunication, RegistersMemory) {
  join();
  DriverTable::Address memory = 0;
  ASSERT_EQ(textOf(cuda.allocateShared(device, 4096, &memory)), "success");
  for (bool hasWindows : {true, false}) {
    say(kVersion, kSuccess, hasWindows);
    DriverTable::Handle window = 0, plain = 0;
    bool is = !hasWindows;
    ASSERT_FALSE(cuda.registerMemory(device, world, memory, 4096, true, &window));
    ASSERT_FALSE(cuda.isRegistered(device, window, &is));
    EXPECT_EQ(is, hasWindows);
    ASSERT_FALSE(cuda.registerMemory(device, world, memory, 64, false, &plain));
    ASSERT_FALSE(cuda.isRegistered(device, plain, &is));
    EXPECT_TRUE(is);
    EXPECT_FALSE(cuda.unregister(device, window));
    EXPECT_FALSE(cuda.unregister(device, plain));
    EXPECT_EQ(calls(), hasWindows
                           ? "window 1 4096 1; register 1 64; unregister-window 1; unregister 1; "
                           : "window 1 4096 1; register 1 64; unregister 1; ");
  }
  EXPECT_EQ(textOf(cuda.freeShared(device, memory)), "success");
}

TEST_F(FakeCommunication, IsGivenUpAtOnceAndOnce) {
  join();
  DriverTable::Handle part = 0;
  ASSERT_FALSE(cuda.split(device, world, 0, 0, &part));
  calls();
  auto current = fake<decltype(&weft_fake_current)>("libcuda.so.1", "weft_fake_current");
  std::thread([&] {
    EXPECT_EQ(current(), -1);
    EXPECT_FALSE(cuda.giveUp(device));
    EXPECT_EQ(current(), 1) << "or another device would be used";
  }).join();
  isGivenUp = true;
  EXPECT_EQ(calls(), "begin; abort 1; abort 2; end-group; ");
  EXPECT_FALSE(cuda.giveUp(device));
  EXPECT_EQ(calls(), "");
  EXPECT_EQ(textOf(cuda.end(device, world)), "device 1 was given up");
}

/// With an empty library in its place.
TEST(OldCommunication, SaysWhichFunctionIsMissing) {
  cuda::WorldId id;
  EXPECT_THAT(textOf(table().makeWorldId(&id)),
              AllOf(StartsWith("cannot use libnccl.so.2, CUDA's library of collectives: "),
                    EndsWith("undefined symbol: ncclGetVersion; programs of several ranks need "
                             "it: NCCL 2.27.3 or later, as of nvidia-nccl-cu13")));
}

} // namespace
