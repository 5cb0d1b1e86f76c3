//===- CudaCommunicationTest.cpp - communicators of the simulator -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The conformance suite tests the results of collectives. Here are tests of wrong uses that
// the simulator refuses, and of missing ranks.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/DeviceCollectives.h"
#include "backends/local/LocalBackend.h"
#include "tests/testing/CudaBench.h"
#include "weft-rt/Program.h"

#include <thread>

using namespace weft::rt;
using namespace weft::rt::cuda;
using testing::HasSubstr;

namespace {

constexpr uint64_t kShared = 1024;

/// One of two devices that a single thread uses here.
struct Rank {
  Handle device = 0, stream = 0, event = 0, world = 0;
  Address memory = 0;
};

struct Two {
  explicit Two(uint64_t seed, std::chrono::milliseconds patience = std::chrono::seconds(60))
      : simulator({.seed = seed, .devices = 2, .patience = patience}, {}) {
    Bench::ok(cuda.makeWorldId(&id));
    for (int64_t number : {0, 1}) {
      Rank &rank = ranks[number];
      DeviceFacts facts;
      Bench::ok(cuda.open(number, &rank.device, &facts));
      Bench::ok(cuda.makeStream(rank.device, &rank.stream));
      Bench::ok(cuda.makeEvent(rank.device, &rank.event));
      Bench::ok(cuda.allocateShared(rank.device, kShared, &rank.memory));
      Bench::ok(cuda.zero(rank.device, rank.stream, rank.memory, kShared));
      Bench::ok(cuda.join(rank.device, &id, 2, number, &rank.world));
    }
  }

  /// Asks until it is ready.
  void settle(const Rank &rank, Handle communicator) {
    for (bool isReady = false; !isReady;) {
      Bench::ok(cuda.ready(rank.device, communicator, &isReady));
    }
  }
  void settleAll() {
    settle(one, one.world);
    settle(two, two.world);
  }
  CallResult sum(const Rank &rank, Handle communicator, ElementType type = ElementType::F32,
                 uint64_t count = 4) {
    return cuda.allReduce(rank.device, rank.stream, communicator, ReductionKind::Sum, type,
                          rank.memory, rank.memory, count);
  }
  int64_t partnerOf(const Rank &rank) const { return &rank == &one ? 1 : 0; }
  CallResult send(const Rank &rank) {
    return cuda.send(rank.device, rank.stream, rank.world, ElementType::F32, rank.memory, 4,
                     partnerOf(rank));
  }
  CallResult receive(const Rank &rank, ElementType type = ElementType::F32, uint64_t count = 4) {
    return cuda.receive(rank.device, rank.stream, rank.world, type, rank.memory, count,
                        partnerOf(rank));
  }
  CallResult finish(const Rank &rank) {
    Bench::ok(cuda.record(rank.device, rank.event, rank.stream));
    return cuda.await(rank.device, rank.event);
  }
  /// Splits the communicators of both ranks, in the same order.
  std::pair<Handle, Handle> split() {
    Handle first = 0, second = 0;
    Bench::ok(cuda.split(one.device, one.world, 0, 0, &first));
    Bench::ok(cuda.split(two.device, two.world, 0, 1, &second));
    settleAll();
    settle(one, first);
    settle(two, second);
    return {first, second};
  }

  Simulator simulator;
  const DriverTable &cuda = simulator.library();
  WorldId id;
  Rank ranks[2];
  Rank &one = ranks[0], &two = ranks[1];
};

struct MisusedPair {
  const char *name, *text;
  CallResult (*run)(Two &two);
};

const MisusedPair kMisused[] = {
    {"RanksDisagree",
     "allReduce: ranks 0 and 1 of communicator 1 do not agree: all-reduce sum f32 "
     "of 4 and all-reduce sum f64 of 4",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.sum(two.one, two.one.world));
       return two.sum(two.two, two.two.world, ElementType::F64);
     }},
    {"CountsDisagree", "all-reduce sum f32 of 4 and all-reduce sum f32 of 5",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.sum(two.one, two.one.world));
       return two.sum(two.two, two.two.world, ElementType::F32, 5);
     }},
    {"GroupsOfDifferentSizes",
     "ranks 0 and 1 of communicator 1 do not agree: a group with 3 parts and one with 2",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.cuda.beginGroup(two.one.device));
       for (uint64_t offset : {0, 4, 8}) {
         Bench::ok(two.cuda.send(two.one.device, two.one.stream, two.one.world, ElementType::F32,
                                 two.one.memory + offset, 1, 1));
       }
       Bench::ok(two.cuda.endGroup(two.one.device));
       Bench::ok(two.cuda.beginGroup(two.two.device));
       for (uint64_t offset : {0, 4}) {
         Bench::ok(two.cuda.receive(two.two.device, two.two.stream, two.two.world, ElementType::F32,
                                    two.two.memory + offset, 1, 0));
       }
       return two.cuda.endGroup(two.two.device);
     }},
    {"RoundsDisagree", "ranks 0 and 1 of communicator 1 do not agree: a split and an end",
     [](Two &two) {
       two.settleAll();
       Handle made;
       Bench::ok(two.cuda.split(two.one.device, two.one.world, 0, 0, &made));
       return two.cuda.end(two.two.device, two.two.world);
     }},
    {"FirstOnceSealed",
     "communicator 1 has done no all-reduce sum f32 of 4 before device 0 was sealed, and would "
     "connect and allocate",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.sum(two.one, two.one.world, ElementType::F32, 5));
       two.settle(two.one, two.one.world);
       Bench::ok(two.cuda.seal(two.one.device));
       return two.sum(two.one, two.one.world);
     }},
    {"ChildBeforeItsParent",
     "communicator 1 came after 2, which was split off it and shares its buffers",
     [](Two &two) {
       two.settleAll();
       Handle child = two.split().first;
       Bench::ok(two.sum(two.one, child));
       two.settle(two.one, child);
       Bench::ok(two.sum(two.one, two.one.world));
       return two.cuda.seal(two.one.device);
     }},
    {"Nothing", "allReduce: expected at least 1 element, got 0",
     [](Two &two) {
       two.settleAll();
       return two.sum(two.one, two.one.world, ElementType::F32, 0);
     }},
    {"CountsOfATransferDisagree",
     "ranks 0 and 1 of communicator 1 do not agree: send f32 of 4 to 1 and receive f32 of 5 from 0",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.send(two.one));
       return two.receive(two.two, ElementType::F32, 5);
     }},
    {"TypesOfATransferDisagree",
     "ranks 1 and 0 of communicator 1 do not agree: receive f64 of 4 from 0 and send f32 of 4 to 1",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.receive(two.two, ElementType::F64, 4));
       return two.send(two.one);
     }},
    {"BothSend",
     "send: device 1 issues a transfer from rank 1 to rank 0 of communicator 1, where device 0 has "
     "issued a transfer from rank 0 to rank 1 of communicator 1: both take part in both",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.send(two.one));
       return two.send(two.two);
     }},
    {"TransferAfterTheSumAndBefore",
     "device 1 issues to communicator 1, where device 0 has issued a transfer from rank 0 to rank "
     "1 "
     "of communicator 1",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.send(two.one));
       return two.sum(two.two, two.two.world);
     }},
    {"SendToNobody", "send: expected a rank from 0 to before 2, got 2",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.cuda.beginGroup(two.one.device));
       return two.cuda.send(two.one.device, two.one.stream, two.one.world, ElementType::F32,
                            two.one.memory, 4, 2);
     }},
    // The library allows rank r's operand at r times its size within the result; the table does
    // not.
    {"GatherInPlace", "allGather: the operand and the result share bytes, and one is written",
     [](Two &two) {
       two.settleAll();
       return two.cuda.allGather(two.one.device, two.one.stream, two.one.world, ElementType::F32,
                                 two.one.memory, two.one.memory, 4);
     }},
    {"ScatterInPlace", "reduceScatter: the operand and the result share bytes, and one is written",
     [](Two &two) {
       two.settleAll();
       return two.cuda.reduceScatter(two.two.device, two.two.stream, two.two.world,
                                     ReductionKind::Sum, ElementType::F32, two.two.memory,
                                     two.two.memory + 16, 4);
     }},
    {"GatherBeyondTheResult",
     "allGather: the result: 64 bytes from byte 976 on end beyond an allocation of 1024 bytes",
     [](Two &two) {
       two.settleAll();
       return two.cuda.allGather(two.one.device, two.one.stream, two.one.world, ElementType::F32,
                                 two.one.memory, two.one.memory + kShared - 48, 8);
     }},
    {"GroupInGroup", "beginGroup: a group is not ended",
     [](Two &two) {
       Bench::ok(two.cuda.beginGroup(two.one.device));
       return two.cuda.beginGroup(two.one.device);
     }},
    {"NoGroup", "endGroup: no group was begun",
     [](Two &two) { return two.cuda.endGroup(two.one.device); }},
    {"GroupOverResults", "endGroup: two results of a group share bytes",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.cuda.beginGroup(two.one.device));
       for (uint64_t at : {0, 8}) {
         Bench::ok(two.cuda.receive(two.one.device, two.one.stream, two.one.world, ElementType::F32,
                                    two.one.memory + at, 4, 1));
       }
       return two.cuda.endGroup(two.one.device);
     }},
    {"GroupOnTwoStreams", "send: expected all of a group on one communicator and one stream",
     [](Two &two) {
       two.settleAll();
       Handle other;
       Bench::ok(two.cuda.makeStream(two.one.device, &other));
       Bench::ok(two.cuda.beginGroup(two.one.device));
       Bench::ok(two.cuda.receive(two.one.device, two.one.stream, two.one.world, ElementType::F32,
                                  two.one.memory, 4, 1));
       return two.cuda.send(two.one.device, other, two.one.world, ElementType::F32,
                            two.one.memory + 64, 4, 1);
     }},
    {"AskWithinAGroup", "ready: a group is not ended",
     [](Two &two) {
       bool isReady;
       Bench::ok(two.cuda.beginGroup(two.one.device));
       return two.cuda.ready(two.one.device, two.one.world, &isReady);
     }},
    {"NotReady", "allReduce: communicator 1 is not known to be ready",
     [](Two &two) { return two.sum(two.one, two.one.world); }},
    {"NotReadyAgain", "allReduce: communicator 1 is not known to be ready",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.sum(two.one, two.one.world));
       return two.sum(two.one, two.one.world);
     }},
    {"StreamBehindWhatIsNotReady",
     "record: stream 1 waits for work of communicator 1, which is not known to be ready",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.sum(two.one, two.one.world));
       return two.cuda.record(two.one.device, two.one.event, two.one.stream);
     }},
    {"OtherOrderOfIssue", "may wait for each other for ever",
     [](Two &two) {
       two.settleAll();
       auto [first, second] = two.split();
       Bench::ok(two.sum(two.one, two.one.world));
       two.settle(two.one, two.one.world);
       Bench::ok(two.sum(two.one, first));
       return two.sum(two.two, second);
     }},
    {"JoinTwice", "join: rank 0 has joined already",
     [](Two &two) {
       Handle made;
       return two.cuda.join(two.one.device, &two.id, 2, 0, &made);
     }},
    {"WorldsOfDifferentSizes", "join: ranks do not agree: a world of 2 and one of 3",
     [](Two &two) {
       Handle made;
       return two.cuda.join(two.one.device, &two.id, 3, 2, &made);
     }},
    {"IdThatWasNotMade", "join: expected an id that was made, got another",
     [](Two &two) {
       Handle made;
       WorldId id = {};
       return two.cuda.join(two.one.device, &id, 2, 0, &made);
     }},
    {"NoSuchRank", "join: expected a rank from 0 to before 2, got 2",
     [](Two &two) {
       Handle made;
       return two.cuda.join(two.one.device, &two.id, 2, 2, &made);
     }},
    {"NoColor", "split: expected a color of 0 or more, got -1",
     [](Two &two) {
       two.settleAll();
       Handle made;
       return two.cuda.split(two.one.device, two.one.world, -1, 0, &made);
     }},
    {"RegisterOtherMemory", "registerMemory: expected memory of allocateShared, got other",
     [](Two &two) {
       two.settleAll();
       Address other;
       Handle made;
       Bench::ok(two.cuda.allocate(two.one.device, 64, &other));
       return two.cuda.registerMemory(two.one.device, two.one.world, other, 64, false, &made);
     }},
    {"FreeWhatIsRegistered", "freeShared: the allocation of 1024 bytes is still registered",
     [](Two &two) {
       two.settleAll();
       Handle made;
       Bench::ok(two.cuda.registerMemory(two.one.device, two.one.world, two.one.memory, kShared,
                                         false, &made));
       return two.cuda.freeShared(two.one.device, two.one.memory);
     }},
    {"EndWithRegistrations", "end: communicator 1 still has 1 registrations",
     [](Two &two) {
       two.settleAll();
       Handle made;
       Bench::ok(two.cuda.registerMemory(two.one.device, two.one.world, two.one.memory, kShared,
                                         false, &made));
       return two.cuda.end(two.one.device, two.one.world);
     }},
    {"FreeSharedAsOther", "free: expected memory of allocate, got that of allocateShared",
     [](Two &two) { return two.cuda.free(two.one.device, two.one.memory); }},
    {"FreeOtherAsShared", "freeShared: expected memory of allocateShared, got other",
     [](Two &two) {
       Address other;
       Bench::ok(two.cuda.allocate(two.one.device, 64, &other));
       return two.cuda.freeShared(two.one.device, other);
     }},
    {"EndWhatIsInUse", "end: the communicator may still be in use",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.sum(two.one, two.one.world));
       two.settle(two.one, two.one.world);
       return two.cuda.end(two.one.device, two.one.world);
     }},
    {"FreeWhatHasNotEnded",
     "freeCommunicator: expected a communicator that has ended and is known to be ready",
     [](Two &two) {
       two.settleAll();
       return two.cuda.freeCommunicator(two.one.device, two.one.world);
     }},
    {"UseAfterTheEnd", "allReduce: communicator 1 has ended",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.cuda.end(two.one.device, two.one.world));
       Bench::ok(two.cuda.end(two.two.device, two.two.world));
       two.settleAll();
       return two.sum(two.one, two.one.world);
     }},
    {"UseAfterGivingUp", "allReduce: device 0 was given up",
     [](Two &two) {
       two.settleAll();
       Bench::ok(two.cuda.giveUp(two.one.device));
       return two.sum(two.one, two.one.world);
     }},
    {"LeftAtTheEnd", "communicator 1 of call",
     [](Two &two) { return two.cuda.close(two.one.device); }},
};

class CudaCommunicationMisuse : public testing::TestWithParam<MisusedPair> {};

TEST_P(CudaCommunicationMisuse, IsRefusedWhateverTheSeed) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Two two(seed);
    CallResult result = GetParam().run(two);
    ASSERT_NE(result, nullptr) << "seed " << seed;
    EXPECT_THAT(result, HasSubstr(GetParam().text));
  }
}

INSTANTIATE_TEST_SUITE_P(Communicators, CudaCommunicationMisuse, testing::ValuesIn(kMisused),
                         [](const auto &info) { return std::string(info.param.name); });

/// A thread that waits does the other device's work.
TEST(CudaCommunication, OneWaitsForBoth) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Two two(seed);
    two.settleAll();
    Bench::ok(two.sum(two.one, two.one.world));
    Bench::ok(two.sum(two.two, two.two.world));
    two.settleAll();
    EXPECT_EQ(two.finish(two.one), nullptr);
    EXPECT_EQ(two.finish(two.two), nullptr);
  }
}

TEST(CudaCommunication, WhoIsAloneIsNotReached) {
  Two two(1);
  two.settleAll();
  Bench::ok(two.sum(two.one, two.one.world));
  two.settle(two.one, two.one.world);
  Bench::ok(two.cuda.record(two.one.device, two.one.event, two.one.stream));
  for (int i = 0; i < 20; ++i) {
    bool isReached = true;
    Bench::ok(two.cuda.reached(two.one.device, two.one.event, &isReached));
    EXPECT_FALSE(isReached);
  }
  // Call it from another thread, as a monitor does.
  std::thread([&] { Bench::ok(two.cuda.giveUp(two.one.device)); }).join();
  EXPECT_THAT(two.cuda.await(two.one.device, two.one.event),
              testing::StrEq("await: device 0 was given up"));
}

/// A send without a group on one device, a receive on the other.
TEST(CudaCommunication, TransfersInBothDirections) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Two two(seed);
    two.settleAll();
    Bench::ok(two.send(two.one));
    Bench::ok(two.receive(two.two));
    two.settleAll();
    Bench::ok(two.receive(two.one));
    Bench::ok(two.send(two.two));
    two.settleAll();
    EXPECT_EQ(two.finish(two.two), nullptr);
    EXPECT_EQ(two.finish(two.one), nullptr);
  }
}

TEST(CudaCommunication, WhatNobodyComesToIsNamed) {
  for (bool sends : {true, false}) {
    Two two(1, std::chrono::milliseconds(50));
    two.settleAll();
    Bench::ok(sends ? two.send(two.one) : two.receive(two.one));
    two.settle(two.one, two.one.world);
    EXPECT_THAT(two.finish(two.one),
                testing::StrEq(std::string("await: a collective is awaited that other devices do "
                                           "not come to: ") +
                               (sends ? "send f32 of 4 to 1" : "receive f32 of 4 from 1")));
  }
}

/// One rank of a world of four whose other ranks are unreachable.
TEST(CudaCommunication, WhoIsTheWorldBringsForAll) {
  Simulator simulator({.seed = 1, .devices = 4, .isAlone = true}, {});
  const DriverTable &cuda = simulator.library();
  WorldId id = {};
  Handle device = 0, stream = 0, event = 0, world = 0, part = 0;
  DriverTable::Address memory = 0;
  void *pinned = nullptr;
  DeviceFacts facts;
  Bench::ok(cuda.open(2, &device, &facts));
  Bench::ok(cuda.makeStream(device, &stream));
  Bench::ok(cuda.makeEvent(device, &event));
  Bench::ok(cuda.allocateShared(device, kShared, &memory));
  Bench::ok(cuda.allocatePinned(device, 16, &pinned));
  auto *numbers = static_cast<float *>(pinned);
  std::fill_n(numbers, 4, 1.5f);
  Bench::ok(cuda.copyToDevice(device, stream, memory, pinned, 16));
  Bench::ok(cuda.join(device, &id, 4, 2, &world));
  auto settle = [&] {
    for (bool isReady = false; !isReady;) {
      Bench::ok(cuda.ready(device, world, &isReady));
    }
  };
  settle();
  Bench::ok(cuda.allReduce(device, stream, world, ReductionKind::Sum, ElementType::F32, memory,
                           memory, 4));
  settle();
  Bench::ok(cuda.beginGroup(device));
  Bench::ok(cuda.send(device, stream, world, ElementType::F32, memory, 1, 3));
  Bench::ok(cuda.receive(device, stream, world, ElementType::F32, memory + 4, 1, 1));
  Bench::ok(cuda.endGroup(device));
  settle();
  Bench::ok(cuda.copyToHost(device, stream, pinned, memory, 16));
  Bench::ok(cuda.record(device, event, stream));
  Bench::ok(cuda.await(device, event));
  EXPECT_EQ(numbers[0], 6);
  EXPECT_EQ(numbers[1], 6);
  EXPECT_THAT(cuda.split(device, world, 0, 0, &part),
              testing::StrEq("split: a device that is alone has no ranks to split"));
}

/// Lets both ranks join by the table `changed`; returns the error of the run.
std::string
joinBy(const DriverTable &changed, const std::function<bool()> &isBusy = [] { return false; }) {
  auto backend = makeLocalBackend(2, {});
  RunResult run = backend->run([&](Communicator &link) {
    Handle device = 0;
    DeviceFacts facts;
    Bench::ok(changed.open(link.rank(), &device, &facts));
    DeviceCollectives collectives(changed, link.rank(), device, link, 2, allRanks(2),
                                  std::chrono::milliseconds(50));
    collectives.watchBy(isBusy);
    (void)collectives.join(); // One may have joined before the other fails.
  });
  return run.failure ? run.failure->message : "";
}

TEST(DeviceCollectives, WhatNeverGetsReadyIsSaid) {
  Simulator simulator({.devices = 2}, {});
  DriverTable library = simulator.library();
  library.ready = [](Handle, Handle, bool *isReady) -> CallResult {
    *isReady = false;
    return nullptr;
  };
  EXPECT_THAT(joinBy(library),
              testing::ContainsRegex("rank [01] waited 0.05 s to set up communication between the "
                                     "devices of ranks .*0.*1"));
}

/// A monitor watches the device, which new work may have to wait for.
TEST(DeviceCollectives, TimeOfADeviceThatIsBusyDoesNotCount) {
  Simulator simulator({.devices = 2}, {});
  DriverTable library = simulator.library();
  library.ready = [](Handle, Handle, bool *isReady) -> CallResult {
    *isReady = false;
    return nullptr;
  };
  using Clock = std::chrono::steady_clock;
  auto begun = Clock::now();
  std::string message =
      joinBy(library, [begun] { return Clock::now() < begun + std::chrono::milliseconds(300); });
  EXPECT_THAT(message, HasSubstr("waited 0.05 s to set up communication"));
  EXPECT_GE(Clock::now() - begun, std::chrono::milliseconds(300));
}

TEST(DeviceCollectives, WhatFailsMeanwhileIsSaid) {
  Simulator simulator({.devices = 2}, {});
  simulator.failAt("ready", 1, "a remote process has exited");
  EXPECT_THAT(
      joinBy(simulator.library()),
      testing::ContainsRegex("device [01] of rank [01]: ready: a remote process has exited"));
}

/// The ranks number a sum over both and two transfers in different orders.
TEST(DeviceCollectives, TransfersNeedNoCommunicatorAndFirstRunInOneOrder) {
  Simulator simulator({.devices = 2}, {});
  DriverTable library = simulator.library();
  library.split = [](Handle, Handle, int64_t, int64_t, Handle *) -> CallResult {
    return "there should be no split";
  };
  Collective sum = {.shape = {4}}, moved = {.kind = CollectiveKind::Transfer, .shape = {4}};
  RunResult run = makeLocalBackend(2, {})->run([&](Communicator &link) {
    Rank rank;
    DeviceFacts facts;
    Bench::ok(library.open(link.rank(), &rank.device, &facts));
    Bench::ok(library.makeStream(rank.device, &rank.stream));
    Bench::ok(library.makeEvent(rank.device, &rank.event));
    Bench::ok(library.allocateShared(rank.device, kShared, &rank.memory));
    Bench::ok(library.zero(rank.device, rank.stream, rank.memory, kShared));
    DeviceCollectives collectives(library, link.rank(), rank.device, link, 2, allRanks(2),
                                  std::chrono::seconds(60));
    bool isFirst = link.rank() == 0;
    ASSERT_TRUE(collectives.join() &&
                collectives.prepare(moved, isFirst ? pairOf(0, 1) : pairOf(1, 0)) &&
                collectives.prepare(moved, isFirst ? pairOf(1, 0) : pairOf(0, 1)) &&
                collectives.prepare(sum, allRanks(2)));
    EXPECT_THAT(collectives.firstOrder(),
                isFirst ? testing::ElementsAre(2, 0, 1) : testing::ElementsAre(2, 1, 0));
    for (uint32_t number : collectives.firstOrder()) {
      bool isSum = number == 2, sends = number == 0;
      ASSERT_TRUE(collectives.run(number, rank.stream, isSum || sends ? rank.memory : 0,
                                  isSum || !sends ? rank.memory + 256 : 0));
    }
    Bench::ok(library.record(rank.device, rank.event, rank.stream));
    EXPECT_TRUE(collectives.await(rank.event) && collectives.end());
    Bench::ok(library.freeShared(rank.device, rank.memory));
    Bench::ok(library.freeEvent(rank.device, rank.event));
    Bench::ok(library.freeStream(rank.device, rank.stream));
    Bench::ok(library.close(rank.device));
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

/// Only the second class, of four ranks, makes a communicator for pairs; all end together.
TEST(DeviceCollectives, ClassesMayHaveDifferentGroups) {
  Simulator simulator({.devices = 8}, {});
  DriverTable library = simulator.library();
  RunResult run = makeLocalBackend(8, {})->run([&](Communicator &link) {
    Handle device = 0;
    DeviceFacts facts;
    Bench::ok(library.open(link.rank(), &device, &facts));
    const int64_t first = link.rank() < 4 ? 0 : 4, pair = link.rank() / 2 * 2;
    DeviceCollectives collectives(library, link.rank(), device, link, 8,
                                  RankGroup{{first, first + 1, first + 2, first + 3}, 1},
                                  std::chrono::seconds(60));
    Collective sum = {.shape = {4}};
    EXPECT_TRUE(collectives.join() &&
                (first == 0 || collectives.prepare(sum, {{pair, pair + 1}, 2})) &&
                collectives.end());
    Bench::ok(library.close(device));
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

} // namespace
