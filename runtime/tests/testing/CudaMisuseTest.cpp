//===- CudaMisuseTest.cpp - wrong uses that the simulator refuses -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/testing/CudaBench.h"

#include <functional>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

class CudaMisuseTest : public testing::TestWithParam<Misused> {};

TEST_P(CudaMisuseTest, IsRefusedWhateverTheSeed) { expectRefused(GetParam()); }

const Misused kHandles[] = {
    {"DeviceOfNothing", "allocate: expected a handle of a device, got 0, which is none",
     [](Bench &bench) {
       Address made;
       return bench.cuda.allocate(0, 64, &made);
     }},
    {"DeviceNeverOpened", "allocate: device 1 was never opened",
     [](Bench &bench) {
       Address made;
       return bench.cuda.allocate(bench.device + (uint64_t(1) << 48), 64, &made);
     }},
    {"DeviceClosed", "makeStream: device 1 is closed",
     [](Bench &bench) {
       Handle second = bench.openSecond(), made;
       Bench::ok(bench.cuda.close(second));
       return bench.cuda.makeStream(second, &made);
     }},
    {"DeviceOfAnEarlierOpening", "makeStream: device 1 is closed",
     [](Bench &bench) {
       Handle second = bench.openSecond(), made;
       Bench::ok(bench.cuda.close(second));
       bench.openSecond();
       return bench.cuda.makeStream(second, &made);
     }},
    {"DeviceOpenAlready", "open: device 0 is open already",
     [](Bench &bench) {
       Handle opened;
       return bench.cuda.open(0, &opened, &bench.facts);
     }},
    {"DeviceThatIsNotThere", "open: expected a device from 0 to before 2, got 2",
     [](Bench &bench) {
       Handle opened;
       return bench.cuda.open(2, &opened, &bench.facts);
     }},
    {"DeviceOfAnotherThread", "zero: expected the thread that has opened device 0, got another",
     [](Bench &bench) {
       static std::string text;
       std::thread([&] { text = bench.zero(bench.stream, bench.a); }).join();
       return text.c_str();
     }},
    {"StreamOfNothing", "zero: expected a handle of a stream, got 0, which is none",
     [](Bench &bench) { return bench.zero(0, bench.a); }},
    {"StreamNeverMade", "zero: stream 3 was never made",
     [](Bench &bench) { return bench.zero(bench.other + 1, bench.a); }},
    {"StreamFreed", "zero: stream 2 is freed",
     [](Bench &bench) {
       Bench::ok(bench.cuda.freeStream(bench.device, bench.other));
       return bench.zero(bench.other, bench.a);
     }},
    {"StreamFreedTwice", "freeStream: stream 2 is freed",
     [](Bench &bench) {
       Bench::ok(bench.cuda.freeStream(bench.device, bench.other));
       return bench.cuda.freeStream(bench.device, bench.other);
     }},
    {"EventForStream", "zero: expected a handle of a stream, got one of an event",
     [](Bench &bench) { return bench.zero(bench.event, bench.a); }},
    {"StreamOfAnotherDevice", "zero: expected a stream of device 0, got one of device 1",
     [](Bench &bench) {
       Handle made;
       Bench::ok(bench.cuda.makeStream(bench.openSecond(), &made));
       return bench.zero(made, bench.a);
     }},
    {"EventOfAnotherDevice", "record: expected an event of device 0, got one of device 1",
     [](Bench &bench) {
       Handle made;
       Bench::ok(bench.cuda.makeEvent(bench.openSecond(), &made));
       return bench.cuda.record(bench.device, made, bench.stream);
     }},
    {"EventFreed", "record: event 1 is freed",
     [](Bench &bench) {
       Bench::ok(bench.cuda.freeEvent(bench.device, bench.event));
       return bench.cuda.record(bench.device, bench.event, bench.stream);
     }},
    {"ModuleUnloaded", "entry: module 1 is freed",
     [](Bench &bench) {
       Handle found;
       Bench::ok(bench.cuda.unload(bench.device, bench.module));
       return bench.cuda.entry(bench.device, bench.module, "scale_phase_0", &found);
     }},
    {"EntryOfAModuleUnloaded", "launch: entry 1 is of a module that is unloaded",
     [](Bench &bench) {
       Bench::ok(bench.cuda.unload(bench.device, bench.module));
       return bench.launch(bench.stream, bench.a, bench.b);
     }},
    {"MatmulFreed", "runMatmul: matmul 1 is freed",
     [](Bench &bench) {
       Handle matmul = bench.prepareMatmul();
       Bench::ok(bench.cuda.freeMatmul(bench.device, matmul));
       return bench.runMatmul(bench.stream, matmul, bench.a, bench.b, bench.c, 0);
     }},
};

/// Returns the result of `elapsed` for two timers, one recorded before `between` and one after.
CallResult elapsedOver(Bench &bench, const std::function<void(Handle, Handle)> &between) {
  Handle from = 0, to = 0;
  double seconds = 0;
  Bench::ok(bench.cuda.makeTimer(bench.device, &from));
  Bench::ok(bench.cuda.makeTimer(bench.device, &to));
  Bench::ok(bench.cuda.record(bench.device, from, bench.stream));
  between(from, to);
  return bench.cuda.elapsed(bench.device, from, to, &seconds);
}

const Misused kTimers[] = {
    {"TimeOfAnEvent", "elapsed: expected an event of makeTimer, got event 1, which keeps no time",
     [](Bench &bench) {
       double seconds = 0;
       Bench::ok(bench.cuda.record(bench.device, bench.event, bench.stream));
       bench.drain(bench.stream);
       return bench.cuda.elapsed(bench.device, bench.event, bench.event, &seconds);
     }},
    {"TimerNeverRecorded", "elapsed: expected an event that has been recorded, got event",
     [](Bench &bench) {
       return elapsedOver(bench, [&](Handle, Handle) { bench.drain(bench.stream); });
     }},
    {"TimerNotAwaited", "elapsed: the timer may still be in use",
     [](Bench &bench) {
       return elapsedOver(bench, [&](Handle, Handle to) {
         bench.drain(bench.stream);
         Bench::ok(bench.cuda.record(bench.device, to, bench.stream));
       });
     }},
    {"TimerOnASealedDevice", "makeTimer: nothing may be made on a sealed device",
     [](Bench &bench) {
       Handle made = 0;
       Bench::ok(bench.cuda.seal(bench.device));
       return bench.cuda.makeTimer(bench.device, &made);
     }},
};

const Misused kMemory[] = {
    {"NoBytes", "allocate: expected at least 1 byte, got 0",
     [](Bench &bench) {
       Address made;
       return bench.cuda.allocate(bench.device, 0, &made);
     }},
    {"NoPinnedBytes", "allocatePinned: expected at least 1 byte, got 0",
     [](Bench &bench) {
       void *made;
       return bench.cuda.allocatePinned(bench.device, 0, &made);
     }},
    {"FreeInside", "free: expected the beginning of an allocation, got byte 64 of one",
     [](Bench &bench) { return bench.cuda.free(bench.device, bench.a + 64); }},
    {"FreeNothing", "free: address 0 is in no allocation",
     [](Bench &bench) { return bench.cuda.free(bench.device, 0); }},
    {"FreeTwice", "is in an allocation that is freed",
     [](Bench &bench) {
       Bench::ok(bench.cuda.free(bench.device, bench.a));
       return bench.cuda.free(bench.device, bench.a);
     }},
    {"FreePinnedOfOthers", "is not pinned",
     [](Bench &bench) { return bench.cuda.freePinned(bench.device, &bench); }},
    {"FreePinnedTwice", "is in an allocation that is freed",
     [](Bench &bench) {
       Bench::ok(bench.cuda.freePinned(bench.device, bench.pinned));
       return bench.cuda.freePinned(bench.device, bench.pinned);
     }},
    {"TargetBeyondTheEnd",
     "zero: the target: 512 bytes from byte 64 on end beyond an allocation of 512 bytes",
     [](Bench &bench) { return bench.zero(bench.stream, bench.a + 64); }},
    {"SourceBeyondTheEnd",
     "copy: the source: 512 bytes from byte 8 on end beyond an allocation of 512 bytes",
     [](Bench &bench) { return bench.copy(bench.stream, bench.a, bench.b + 8); }},
    {"SizeThatOverflows", "bytes from byte 64 on end beyond an allocation of 512 bytes",
     [](Bench &bench) {
       return bench.cuda.zero(bench.device, bench.stream, bench.a + 64, UINT64_MAX);
     }},
    {"TargetFreed", "zero: the target: address",
     [](Bench &bench) {
       Bench::ok(bench.cuda.free(bench.device, bench.a));
       return bench.zero(bench.stream, bench.a);
     }},
    {"AddressOfAnotherDevice",
     "zero: the target: expected an address of device 0, got one of device 1",
     [](Bench &bench) {
       Address made;
       Bench::ok(bench.cuda.allocate(bench.openSecond(), 64, &made));
       return bench.zero(bench.stream, made);
     }},
    {"SourceNotPinned", "copyToDevice: the host's memory at",
     [](Bench &bench) {
       static const char own[8] = {};
       return bench.cuda.copyToDevice(bench.device, bench.stream, bench.a, own, 8);
     }},
    {"TargetNotPinned", "copyToHost: the host's memory at",
     [](Bench &bench) {
       static char own[8] = {};
       return bench.cuda.copyToHost(bench.device, bench.stream, own, bench.a, 8);
     }},
    {"PinnedBeyondTheEnd",
     "copyToDevice: 512 bytes from byte 8 on end beyond an allocation of 512 bytes",
     [](Bench &bench) {
       return bench.cuda.copyToDevice(bench.device, bench.stream, bench.a, bench.pinned + 8,
                                      kBenchBytes);
     }},
    {"CopyOntoItself", "copy: the source and the target share bytes, and one is written",
     [](Bench &bench) {
       return bench.cuda.copy(bench.device, bench.stream, bench.a, bench.a + 64, 128);
     }},
    {"CopyOfBlankMemory", "copy: the source is read, but not all of it was ever written",
     [](Bench &bench) { return bench.copy(bench.stream, bench.a, bench.blank); }},
    {"FetchOfBlankMemory", "copyToHost: the source is read, but not all of it was ever written",
     [](Bench &bench) {
       Bench::ok(bench.cuda.zero(bench.device, bench.stream, bench.blank, 256));
       Bench::ok(bench.cuda.zero(bench.device, bench.stream, bench.blank + 264, 248));
       return bench.fetch(bench.stream, bench.blank);
     }},
    {"KernelReadsBlankMemory", "launch: operand 0 is read, but not all of it was ever written",
     [](Bench &bench) { return bench.launch(bench.stream, bench.blank, bench.b); }},
    {"FirstPhaseForgotten", "launch: operand 0 is read, but not all of it was ever written",
     [](Bench &bench) {
       const uint64_t arguments[] = {bench.c, bench.blank};
       return bench.cuda.launch(bench.device, bench.stream, bench.entry("late_phase_1"), 1, 1,
                                arguments, 2);
     }},
    {"HostWritesTooMuch", "freePinned: memory around an allocation of 512 bytes was written",
     [](Bench &bench) {
       bench.pinned[kBenchBytes] = 0;
       return bench.cuda.freePinned(bench.device, bench.pinned);
     }},
    {"HostWritesToWhatIsFreed", "close: an allocation of 64 bytes was written after it was freed",
     [](Bench &bench) {
       Handle second = bench.openSecond();
       void *place;
       Bench::ok(bench.cuda.allocatePinned(second, 64, &place));
       Bench::ok(bench.cuda.freePinned(second, place));
       *static_cast<char *>(place) = 0;
       return bench.cuda.close(second);
     }},
    {"MatmulReadsBlankMemory", "runMatmul: operand B is read, but not all of it was ever written",
     [](Bench &bench) {
       return bench.runMatmul(bench.stream, bench.prepareMatmul(), bench.a, bench.blank, bench.c,
                              0);
     }},
    {"KernelWritesTooMuch", "failed: memory around an allocation of 512 bytes was written",
     [](Bench &bench) {
       const uint64_t arguments[] = {bench.c, bench.a};
       Bench::ok(bench.cuda.launch(bench.device, bench.stream, bench.entry("overrun_phase_0"), 1, 1,
                                   arguments, 2));
       return bench.finish(bench.stream);
     }},
    {"HostChangesWhatIsCopied", "failed: the host has changed its memory before it was copied",
     [](Bench &bench) {
       Bench::ok(bench.send(bench.stream, bench.a));
       bench.pinned[7] = 1;
       return bench.finish(bench.stream);
     }},
};

/// Uses that free an object without waiting for an event behind its last work.
const Misused kBusy[] = {
    {"Memory", "free: the allocation of 512 bytes may still be in use",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       return bench.cuda.free(bench.device, bench.a);
     }},
    {"MemoryOfAStreamThatWasNotAwaited", "free: the allocation of 512 bytes may still be in use",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       bench.drain(bench.other);
       return bench.cuda.free(bench.device, bench.a);
     }},
    {"Pinned", "freePinned: the allocation of 512 pinned bytes may still be in use",
     [](Bench &bench) {
       Bench::ok(bench.send(bench.stream, bench.a));
       return bench.cuda.freePinned(bench.device, bench.pinned);
     }},
    {"Stream", "freeStream: the stream may still be in use",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.other, bench.a));
       return bench.cuda.freeStream(bench.device, bench.other);
     }},
    {"Event", "freeEvent: the event may still be in use",
     [](Bench &bench) {
       Bench::ok(bench.zero(bench.stream, bench.a));
       bench.order(bench.stream, bench.other);
       return bench.cuda.freeEvent(bench.device, bench.event);
     }},
    {"Module", "unload: the module may still be in use",
     [](Bench &bench) {
       Bench::ok(bench.launch(bench.stream, bench.a, bench.b));
       return bench.cuda.unload(bench.device, bench.module);
     }},
    {"Matmul", "freeMatmul: the matmul may still be in use",
     [](Bench &bench) {
       Handle matmul = bench.prepareMatmul();
       Bench::ok(bench.runMatmul(bench.stream, matmul, bench.a, bench.b, bench.c, 0));
       return bench.cuda.freeMatmul(bench.device, matmul);
     }},
};

const Misused kEvents[] = {
    {"WaitForNothing", "wait: expected an event that has been recorded, got event 1, which never",
     [](Bench &bench) { return bench.cuda.wait(bench.device, bench.stream, bench.event); }},
    {"AwaitNothing", "await: expected an event that has been recorded, got event 1, which never",
     [](Bench &bench) { return bench.cuda.await(bench.device, bench.event); }},
    {"AskForNothing", "reached: expected an event that has been recorded, got event 1, which never",
     [](Bench &bench) {
       bool isReached;
       return bench.cuda.reached(bench.device, bench.event, &isReached);
     }},
};

INSTANTIATE_TEST_SUITE_P(Handles, CudaMisuseTest, testing::ValuesIn(kHandles), nameOfMisused);
INSTANTIATE_TEST_SUITE_P(Memory, CudaMisuseTest, testing::ValuesIn(kMemory), nameOfMisused);
INSTANTIATE_TEST_SUITE_P(Busy, CudaMisuseTest, testing::ValuesIn(kBusy), nameOfMisused);
INSTANTIATE_TEST_SUITE_P(Events, CudaMisuseTest, testing::ValuesIn(kEvents), nameOfMisused);
INSTANTIATE_TEST_SUITE_P(Timers, CudaMisuseTest, testing::ValuesIn(kTimers), nameOfMisused);

} // namespace
