//===- ModuleMemoryTest.cpp - tests of memory in modules -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels that do what none of ours may, as the Lower phase would leave them.
//
//===----------------------------------------------------------------------===//

#include "ModuleMemory.h"

#include "DeviceRunner.h"

#include <gtest/gtest-spi.h>
#include <limits>

#include "mlir/Parser/Parser.h"

namespace weft::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Runs a kernel of one block of 32 threads, which does `body`: each thread has its number in
/// `%self`, what it stores to `%slot` as the result in `%y`, and the addresses of 16 floats that
/// are shared, of as many that last, and of as many integers that do. Tells what fails.
std::vector<std::string> failuresOf(const std::string &body, double expected) {
  std::string text = R"(
    module {
      llvm.mlir.global private @shared() {addr_space = 3 : i32} : !llvm.array<16 x f32> {
        %0 = llvm.mlir.undef : !llvm.array<16 x f32>
        llvm.return %0 : !llvm.array<16 x f32>
      }
      llvm.mlir.global private @lasting() {addr_space = 1 : i32} : !llvm.array<16 x f32> {
        %0 = llvm.mlir.undef : !llvm.array<16 x f32>
        llvm.return %0 : !llvm.array<16 x f32>
      }
      llvm.mlir.global private @indices() {addr_space = 1 : i32} : !llvm.array<16 x i32> {
        %0 = llvm.mlir.undef : !llvm.array<16 x i32>
        llvm.return %0 : !llvm.array<16 x i32>
      }
      llvm.func @weft_device_barrier()
      llvm.func @weft_device_warp_barrier()
      llvm.func @weft_device_thread() -> i64
      llvm.func @kernel(%coordinates: !llvm.ptr, %y: !llvm.ptr, %phase: i64, %begin: i64, %end: i64)
          attributes {weft.iterations = array<i64: 1>, weft.threads = array<i64: 32>} {
        %shared = llvm.mlir.addressof @shared : !llvm.ptr<3>
        %lasting = llvm.mlir.addressof @lasting : !llvm.ptr<1>
        %indices = llvm.mlir.addressof @indices : !llvm.ptr<1>
        %one = llvm.mlir.constant(1.0 : f32) : f32
        %self = llvm.call @weft_device_thread() : () -> i64
        %slot = llvm.getelementptr %y[%self] : (!llvm.ptr, i64) -> !llvm.ptr, f32
)" + body + R"(
        llvm.return
      }
    })";
  std::unique_ptr<mlir::MLIRContext> context = makeContext();
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
  testing::TestPartResultArray results;
  {
    testing::ScopedFakeTestPartResultReporter reporter(
        testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &results);
    EXPECT_TRUE(module);
    if (module) {
      KernelCall call;
      call.text = text;
      call.results = {Array({32})};
      Array host({32});
      host.data.assign(32, expected);
      runOnBlocks(call, /*isF64=*/false, *module, {{}, {host}});
    }
  }
  std::vector<std::string> messages;
  for (int i = 0; i < results.size(); ++i) {
    messages.push_back(results.GetTestPartResult(i).message());
  }
  return messages;
}

/// Expects failures, all of which contain `text`.
void expectFailures(const std::string &text, const std::string &body, double expected) {
  std::vector<std::string> messages = failuresOf(body, expected);
  EXPECT_FALSE(messages.empty());
  for (const std::string &message : messages) {
    EXPECT_NE(message.find(text), std::string::npos) << message;
  }
}

constexpr char kShare[] = R"(
  llvm.store %one, %shared : f32, !llvm.ptr<3>
  llvm.call @weft_device_barrier() : () -> ()
  %got = llvm.load %shared : !llvm.ptr<3> -> f32
  llvm.store %got, %slot : f32, !llvm.ptr
)";

/// One thread writes what all read.
std::string shareByOne(const std::string &wait) {
  return R"(
    %zero = llvm.mlir.constant(0 : i64) : i64
    %isFirst = llvm.icmp "eq" %self, %zero : i64
    llvm.cond_br %isFirst, ^first, ^all
  ^first:
    llvm.store %one, %shared : f32, !llvm.ptr<3>
    llvm.br ^all
  ^all:
  )" + wait +
         R"(
    %got = llvm.load %shared : !llvm.ptr<3> -> f32
    llvm.store %got, %slot : f32, !llvm.ptr
  )";
}

TEST(ModuleMemoryTest, WhoWaitsMayShare) {
  for (const char *barrier : {"weft_device_barrier", "weft_device_warp_barrier"}) {
    std::string wait = std::string("llvm.call @") + barrier + "() : () -> ()";
    EXPECT_EQ(failuresOf(shareByOne(wait), 1), std::vector<std::string>());
  }
}

/// Though all write the same.
TEST(ModuleMemoryTest, ARaceFails) {
  expectFailures("of shared memory is written by thread", kShare, 1);
}

TEST(ModuleMemoryTest, AnUnwrittenReadFails) {
  expectFailures("differs from run to run", R"(
    %got = llvm.load %shared : !llvm.ptr<3> -> f32
    llvm.store %got, %slot : f32, !llvm.ptr
  )",
                 kNaN);
}

/// Shared memory must have been touched, here as it may be.
std::string touching(const std::string &body) {
  return "%any = llvm.load %shared : !llvm.ptr<3> -> f32\n" + body;
}

TEST(ModuleMemoryTest, AnUnwrittenIndexIsOneInRange) {
  expectFailures("differs from run to run", touching(R"(
    %index = llvm.load %indices : !llvm.ptr<1> -> i32
    %sixteen = llvm.mlir.constant(16 : i32) : i32
    %isIn = llvm.icmp "ult" %index, %sixteen : i32
    %got = llvm.uitofp %isIn : i1 to f32
    llvm.store %got, %slot : f32, !llvm.ptr
  )"),
                 0);
}

TEST(ModuleMemoryTest, ATouchBehindMemoryFails) {
  expectFailures("lasting was touched at byte 64", touching(R"(
    %behind = llvm.getelementptr %lasting[16] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %read = llvm.load volatile %behind : !llvm.ptr<1> -> f32
    llvm.store %one, %slot : f32, !llvm.ptr
  )"),
                 1);
}

TEST(ModuleMemoryTest, AReadBeforeMemoryFails) {
  expectFailures("differs from run to run", touching(R"(
    %before = llvm.getelementptr %lasting[-1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    %got = llvm.load %before : !llvm.ptr<1> -> f32
    llvm.store %got, %slot : f32, !llvm.ptr
  )"),
                 kNaN);
}

TEST(ModuleMemoryTest, AWriteBeforeMemoryFails) {
  expectFailures("lasting was written at byte -", touching(R"(
    %before = llvm.getelementptr %lasting[-1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
    llvm.store %one, %before : f32, !llvm.ptr<1>
    llvm.store %one, %slot : f32, !llvm.ptr
  )"),
                 1);
}

TEST(ModuleMemoryTest, ATouchBeforeSharedMemoryFails) {
  expectFailures("what is no shared memory", R"(
    %before = llvm.getelementptr %shared[-1] : (!llvm.ptr<3>) -> !llvm.ptr<3>, f32
    %read = llvm.load volatile %before : !llvm.ptr<3> -> f32
    llvm.store %one, %slot : f32, !llvm.ptr
  )",
                 1);
}

TEST(ModuleMemoryTest, SharedMemoryThatNobodyTouchesFails) {
  expectFailures("nobody is seen to touch shared memory", "llvm.store %one, %slot : f32, !llvm.ptr",
                 1);
}

} // namespace
} // namespace weft::test
