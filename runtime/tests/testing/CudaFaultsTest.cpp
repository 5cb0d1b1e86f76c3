//===- CudaFaultsTest.cpp - failures of the simulator for CUDA --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/testing/CudaBench.h"
#include "weft-rt/Program.h"

#include <set>

using namespace weft::rt;
using namespace weft::rt::cuda;
using testing::HasSubstr;
using testing::StrEq;

namespace {

/// A call of a function of the table.
struct Called {
  const char *function;
  CallResult (*run)(Bench &bench);
};

/// Receives the objects that the table's functions make.
Handle made;
void *madePinned;
bool isReached;
int64_t count;

const Called kCalls[] = {
    {"countDevices", [](Bench &bench) { return bench.cuda.countDevices(&count); }},
    {"open", [](Bench &bench) { return bench.cuda.open(1, &made, &bench.facts); }},
    {"close", [](Bench &bench) { return bench.cuda.close(bench.device); }},
    {"freeMemory", [](Bench &bench) { return bench.cuda.freeMemory(bench.device, &made); }},
    {"allocate", [](Bench &bench) { return bench.cuda.allocate(bench.device, 64, &made); }},
    {"free", [](Bench &bench) { return bench.cuda.free(bench.device, bench.a); }},
    {"allocatePinned",
     [](Bench &bench) { return bench.cuda.allocatePinned(bench.device, 64, &madePinned); }},
    {"freePinned", [](Bench &bench) { return bench.cuda.freePinned(bench.device, bench.pinned); }},
    {"makeStream", [](Bench &bench) { return bench.cuda.makeStream(bench.device, &made); }},
    {"makeUrgentStream",
     [](Bench &bench) { return bench.cuda.makeUrgentStream(bench.device, &made); }},
    {"freeStream", [](Bench &bench) { return bench.cuda.freeStream(bench.device, bench.other); }},
    {"makeEvent", [](Bench &bench) { return bench.cuda.makeEvent(bench.device, &made); }},
    {"freeEvent", [](Bench &bench) { return bench.cuda.freeEvent(bench.device, bench.event); }},
    {"record",
     [](Bench &bench) { return bench.cuda.record(bench.device, bench.event, bench.stream); }},
    {"wait", [](Bench &bench) { return bench.cuda.wait(bench.device, bench.other, bench.event); }},
    {"reached",
     [](Bench &bench) { return bench.cuda.reached(bench.device, bench.event, &isReached); }},
    {"await", [](Bench &bench) { return bench.cuda.await(bench.device, bench.event); }},
    {"makeTimer",
     [](Bench &bench) {
       Handle made = 0;
       return bench.cuda.makeTimer(bench.device, &made);
     }},
    {"elapsed",
     [](Bench &bench) {
       double seconds = 0;
       return bench.cuda.elapsed(bench.device, bench.event, bench.event, &seconds);
     }},
    {"copyToDevice", [](Bench &bench) { return bench.send(bench.stream, bench.a); }},
    {"copyToHost", [](Bench &bench) { return bench.fetch(bench.stream, bench.a); }},
    {"copy", [](Bench &bench) { return bench.copy(bench.stream, bench.b, bench.a); }},
    {"zero", [](Bench &bench) { return bench.zero(bench.stream, bench.a); }},
    {"writeProgress",
     [](Bench &bench) {
       return bench.cuda.writeProgress(bench.device, bench.stream,
                                       reinterpret_cast<uint32_t *>(bench.pinned), 1);
     }},
    {"countProgress",
     [](Bench &bench) {
       return bench.cuda.countProgress(bench.device, bench.stream,
                                       reinterpret_cast<uint32_t *>(bench.pinned));
     }},
    {"beginCapture",
     [](Bench &bench) { return bench.cuda.beginCapture(bench.device, bench.stream); }},
    {"endCapture",
     [](Bench &bench) { return bench.cuda.endCapture(bench.device, bench.stream, &made); }},
    {"launchGraph",
     [](Bench &bench) { return bench.cuda.launchGraph(bench.device, bench.stream, 1); }},
    {"freeGraph", [](Bench &bench) { return bench.cuda.freeGraph(bench.device, 1); }},
    {"load", [](Bench &bench) { return bench.cuda.load(bench.device, "an image", &made); }},
    {"unload", [](Bench &bench) { return bench.cuda.unload(bench.device, bench.module); }},
    {"entry",
     [](Bench &bench) {
       return bench.cuda.entry(bench.device, bench.module, "scale_phase_0", &made);
     }},
    {"localBytes",
     [](Bench &bench) { return bench.cuda.localBytes(bench.device, bench.scale, &made); }},
    {"reserveLocal",
     [](Bench &bench) { return bench.cuda.reserveLocal(bench.device, 8, &isReached); }},
    {"launch", [](Bench &bench) { return bench.launch(bench.stream, bench.a, bench.b); }},
    {"nameMatmuls",
     [](Bench &bench) {
       const char *name = nullptr;
       return bench.cuda.nameMatmuls(bench.device, &name);
     }},
    {"prepareMatmul", [](Bench &bench) { return bench.prepare(kBenchMatmul, 0, &made); }},
    {"freeMatmul", [](Bench &bench) { return bench.cuda.freeMatmul(bench.device, 1); }},
    {"runMatmul",
     [](Bench &bench) { return bench.runMatmul(bench.stream, 1, bench.a, bench.b, bench.c, 0); }},
    {"prepareAttention",
     [](Bench &bench) {
       static const Attention attention;
       static const AttentionPart part;
       const char *refusal = nullptr;
       return bench.cuda.prepareAttention(bench.device, &attention, &part, false, &made, &refusal);
     }},
    {"freeAttention", [](Bench &bench) { return bench.cuda.freeAttention(bench.device, 1); }},
    {"runAttention",
     [](Bench &bench) {
       return bench.cuda.runAttention(bench.device, bench.stream, 1, &bench.a, 1);
     }},
    {"makeWorldId",
     [](Bench &bench) {
       static WorldId id;
       return bench.cuda.makeWorldId(&id);
     }},
    {"join",
     [](Bench &bench) {
       WorldId id;
       Bench::ok(bench.cuda.makeWorldId(&id));
       return bench.cuda.join(bench.device, &id, 1, 0, &made);
     }},
    {"split", [](Bench &bench) { return bench.cuda.split(bench.device, 1, 0, 0, &made); }},
    {"ready", [](Bench &bench) { return bench.cuda.ready(bench.device, 1, &isReached); }},
    {"end", [](Bench &bench) { return bench.cuda.end(bench.device, 1); }},
    {"freeCommunicator", [](Bench &bench) { return bench.cuda.freeCommunicator(bench.device, 1); }},
    {"giveUp", [](Bench &bench) { return bench.cuda.giveUp(bench.device); }},
    {"beginGroup", [](Bench &bench) { return bench.cuda.beginGroup(bench.device); }},
    {"endGroup", [](Bench &bench) { return bench.cuda.endGroup(bench.device); }},
    {"allReduce",
     [](Bench &bench) {
       return bench.cuda.allReduce(bench.device, bench.stream, 1, ReductionKind::Sum,
                                   ElementType::F32, bench.a, bench.b, 4);
     }},
    {"allGather",
     [](Bench &bench) {
       return bench.cuda.allGather(bench.device, bench.stream, 1, ElementType::F32, bench.a,
                                   bench.b, 4);
     }},
    {"reduceScatter",
     [](Bench &bench) {
       return bench.cuda.reduceScatter(bench.device, bench.stream, 1, ReductionKind::Sum,
                                       ElementType::F32, bench.a, bench.b, 4);
     }},
    {"send",
     [](Bench &bench) {
       return bench.cuda.send(bench.device, bench.stream, 1, ElementType::F32, bench.a, 4, 0);
     }},
    {"receive",
     [](Bench &bench) {
       return bench.cuda.receive(bench.device, bench.stream, 1, ElementType::F32, bench.a, 4, 0);
     }},
    {"allocateShared",
     [](Bench &bench) { return bench.cuda.allocateShared(bench.device, 64, &made); }},
    {"freeShared", [](Bench &bench) { return bench.cuda.freeShared(bench.device, bench.a); }},
    {"registerMemory",
     [](Bench &bench) {
       return bench.cuda.registerMemory(bench.device, 1, bench.a, 64, false, &made);
     }},
    {"isRegistered",
     [](Bench &bench) { return bench.cuda.isRegistered(bench.device, 1, &isReached); }},
    {"unregister", [](Bench &bench) { return bench.cuda.unregister(bench.device, 1); }},
    {"seal", [](Bench &bench) { return bench.cuda.seal(bench.device); }},
    {"unseal", [](Bench &bench) { return bench.cuda.unseal(bench.device); }},
};

class CudaFaultsTest : public testing::TestWithParam<Called> {};

TEST_P(CudaFaultsTest, FailsWhenItIsTold) {
  Bench bench(0);
  const std::string function = GetParam().function;
  bench.simulator.failAt(function, bench.simulator.calls(function) + 1,
                         "the device fell off the bus");
  EXPECT_THAT(GetParam().run(bench), StrEq(function + ": the device fell off the bus"));
  // Only that call fails.
  if (CallResult result = GetParam().run(bench)) {
    EXPECT_THAT(result, testing::Not(HasSubstr("bus")));
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, CudaFaultsTest, testing::ValuesIn(kCalls),
                         [](const auto &info) { return std::string(info.param.function); });

TEST(CudaFailureTest, CoversTheTable) {
  // All of its functions but `lacksMemory` and `name`, which cannot fail, and `standFor`, which is
  // not for callers.
  EXPECT_EQ(std::size(kCalls) + 3, sizeof(DriverTable) / sizeof(void (*)()));
}

TEST(CudaFailureTest, ACallThatFailsDoesNothing) {
  Bench bench(0);
  bench.simulator.failAt("zero", bench.simulator.calls("zero") + 1, "no");
  EXPECT_THAT(bench.zero(bench.stream, bench.blank), StrEq("zero: no"));
  EXPECT_THAT(bench.fetch(bench.stream, bench.blank), HasSubstr("not all of it was ever written"));
}

TEST(CudaFailureTest, WorkFailsWhenSomebodyWaits) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Bench bench(seed);
    bench.simulator.failWorkAt(5, "an illegal address");
    Bench::ok(bench.zero(bench.stream, bench.a));
    Bench::ok(bench.launch(bench.stream, bench.a, bench.b));
    EXPECT_THAT(bench.finish(bench.stream),
                StrEq("await: launch of 'scale_phase_0' (call 18) failed: an illegal address"));
  }
}

TEST(CudaFailureTest, WorkFailsWhenSomebodyAsks) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Bench bench(seed);
    bench.simulator.failWorkAt(4, "an illegal address");
    Bench::ok(bench.zero(bench.stream, bench.a));
    Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
    CallResult result = nullptr;
    for (int i = 0; i < 4 && !result; ++i) {
      isReached = false;
      result = bench.cuda.reached(bench.device, bench.event, &isReached);
      EXPECT_FALSE(isReached);
    }
    EXPECT_THAT(result, StrEq("reached: zero (call 17) failed: an illegal address"));
  }
}

TEST(CudaFailureTest, ADeviceThatHasFailedDoesNothingMore) {
  for (const Called &called : kCalls) {
    Bench bench(0);
    bench.simulator.failWorkAt(4, "an illegal address");
    Bench::ok(bench.zero(bench.stream, bench.a));
    Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
    EXPECT_NE(bench.cuda.await(bench.device, bench.event), nullptr);
    std::string function = called.function;
    // Functions without a device, or for a device that is stuck.
    const std::set<std::string> others = {"countDevices", "open", "makeWorldId", "giveUp"};
    if (!others.contains(function)) {
      EXPECT_THAT(called.run(bench),
                  StrEq(function + ": device 0 has failed before: zero (call 17) "
                                   "failed: an illegal address"));
    }
  }
}

constexpr std::string_view kGivenUpBefore = "await: device 0 was given up";

TEST(CudaFailureTest, WorkThatIsStuckEndsWhenTheDeviceIsGivenUp) {
  std::string told;
  // On a busy machine the device may be given up before it is waited for, which it says.
  for (int wait = 50; wait < 50000 && (told.empty() || told == kGivenUpBefore); wait *= 10) {
    // Behind the three of the bench.
    Bench bench(0, {.device = 0, .after = 4});
    Bench::ok(bench.zero(bench.stream, bench.a));
    Bench::ok(bench.zero(bench.stream, bench.b));
    Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(wait));
      Bench::ok(bench.cuda.giveUp(bench.device));
    });
    CallResult result = bench.cuda.await(bench.device, bench.event);
    told = result ? result : "success";
    other.join();
    EXPECT_THAT(bench.zero(bench.stream, bench.a), StrEq("zero: device 0 was given up"));
  }
  EXPECT_EQ(told, "await: zero (call 18) failed: it did not end until device 0 was given up");
}

TEST(CudaFailureTest, WordsTellHowFarAStreamHasCome) {
  Bench bench(0);
  auto *word = reinterpret_cast<uint32_t *>(bench.pinned);
  Bench::ok(bench.cuda.writeProgress(bench.device, bench.stream, word, 1));
  Bench::ok(bench.zero(bench.stream, bench.a));
  Bench::ok(bench.cuda.writeProgress(bench.device, bench.stream, word, 2));
  EXPECT_EQ(*word, 0u);
  bench.drain(bench.stream);
  EXPECT_EQ(*word, 2u);
  EXPECT_THAT(bench.cuda.writeProgress(bench.device, bench.stream,
                                       reinterpret_cast<uint32_t *>(bench.pinned + 2), 1),
              HasSubstr("at a multiple of 4 bytes"));
}

TEST(CudaFailureTest, OtherDevicesGoOn) {
  Bench bench(0);
  Handle second = bench.openSecond();
  bench.simulator.failWorkAt(4, "an illegal address");
  Bench::ok(bench.zero(bench.stream, bench.a));
  EXPECT_NE(bench.finish(bench.stream), nullptr);
  Bench::ok(bench.cuda.makeStream(second, &made));
}

} // namespace
