//===- CudaExecutorTest.cpp - failures of devices --------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// BufferViewTest.cpp tests that runs on devices equal those on the host. Here every call
// fails once: the run then ends with an error that names the call.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/CudaExecutor.h"
#include "executable/Executable.h"
#include "support/Text.h"
#include "testing/Simulator.h"
#include "tests/ErrorOf.h"
#include "tests/TemporaryFolder.h"
#include "tests/Toy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

class CudaExecutorTest : public testing::Test {
protected:
  struct End {
    int code = 0;
    std::string errors, output = {};
  };

  End run(const Simulator &simulator, std::vector<DeviceImage> images = {{80, true, "", 1}},
          const char *timeout = "60", const CudaOptions &onDevices = {}) {
    return run(simulator.library(), images, timeout, onDevices);
  }

  End run(const DriverTable &library, std::vector<DeviceImage> images = {{80, true, "", 1}},
          const char *timeout = "60", CudaOptions onDevices = {}) {
    onDevices.usesGraphs |= usesGraphs;
    auto make = [&](const Program &program, const KernelCode *kernels, int64_t rank, int64_t) {
      return std::make_unique<CudaExecutor>(program, kernels, rank, library, rank,
                                            std::span<const DeviceImage>(images), onDevices);
    };
    auto find = [&]() -> Result<MakeExecutor> { return MakeExecutor(make); };
    std::vector<const char *> arguments = {"--data", data.c_str(), "--steps",
                                           "2",      "--timeout",  timeout};
    if (isInLine) {
      arguments.push_back("--no-overlap");
    }
    Result<Options> options = parseOptions(program, arguments);
    EXPECT_EQ(errorOf(options), "");
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int code = int(train({&program, 1}, kToyKernels, *options, find));
    std::string output = testing::internal::GetCapturedStdout();
    return {code, testing::internal::GetCapturedStderr(), output};
  }

  void everyCallThatFailsEndsTheRun(std::vector<const char *> more);

  SimulatorSettings settings() const { return {.seed = 5, .devices = 2}; }

  /// Returns device uses whose communicators, code and stacks are unknown.
  static std::vector<DeviceUse> deviceUses(uint64_t context) {
    return {{DevicePart::Context, context},  {DevicePart::Libraries, 0},
            {DevicePart::Communicators, {}}, {DevicePart::Inputs, 0},
            {DevicePart::Code, {}},          {DevicePart::Stacks, {}}};
  }

  bool usesGraphs = false, isInLine = false;
  Program program = makeToy(2, 1);
  TemporaryFolder folder;
  std::string data = folder.write("data", std::string(4000, 'x'));
};

/// Tests the calls that every program makes, and `more`.
void CudaExecutorTest::everyCallThatFailsEndsTheRun(std::vector<const char *> more) {
  std::map<std::string, int64_t> counts;
  {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    ASSERT_EQ(run(simulator).code, 0);
    for (const char *name : {"open",
                             "close",
                             "allocate",
                             "free",
                             "allocatePinned",
                             "freePinned",
                             "makeStream",
                             "makeUrgentStream",
                             "freeStream",
                             "makeEvent",
                             "freeEvent",
                             "record",
                             "await",
                             "wait",
                             "copyToDevice",
                             "copyToHost",
                             "zero",
                             "load",
                             "unload",
                             "entry",
                             "freeMemory",
                             "localBytes",
                             "reserveLocal",
                             "launch",
                             "seal",
                             "unseal",
                             "makeWorldId",
                             "join",
                             "ready",
                             "registerMemory",
                             "isRegistered",
                             "allReduce",
                             "unregister",
                             "end",
                             "freeCommunicator",
                             "allocateShared",
                             "freeShared",
                             "reached",
                             "writeProgress"}) {
      more.push_back(name);
    }
    for (const char *name : more) {
      counts[name] = simulator.calls(name);
      EXPECT_GT(counts[name], 0) << name;
    }
  }
  // Calls at the end of a successful run may fail.
  for (const char *name : {"close", "free", "freePinned", "freeStream", "freeEvent", "unload",
                           "unseal", "seal", "freeShared", "registerMemory", "freeGraph"}) {
    counts.erase(name);
  }
  // The number of these calls depends on the time that other ranks take.
  counts["ready"] = counts["reached"] = 8;
  for (const auto &[name, count] : counts) {
    // The last calls are those at the end of the run: of two streams on two devices.
    bool endsToo = name == "record" || name == "await";
    // The program makes these calls for instructions only.
    bool isForInstructions = name == "launch" || name == "entry" || name == "localBytes" ||
                             name == "allReduce" || name == "launchGraph";
    for (int64_t number = 1; number <= count - (endsToo ? 4 : 0); number += 1 + count / 40) {
      Simulator simulator(settings(), {{&program, 1}, kToyKernels});
      simulator.failAt(name, number, "it is lost");
      End end = run(simulator);
      EXPECT_EQ(end.code, 1) << name << " " << number;
      EXPECT_THAT(end.errors, testing::ContainsRegex("error: device [01] of rank [01].*: .*" +
                                                     name + ".*it is lost"))
          << name << " " << number;
      if (isForInstructions) {
        EXPECT_THAT(end.errors, testing::ContainsRegex("(in|for) (init|step|evaluate) instruction"))
            << name << " " << number;
      }
    }
  }
}

TEST_F(CudaExecutorTest, EveryCallThatFailsEndsTheRun) { everyCallThatFailsEndsTheRun({}); }

TEST_F(CudaExecutorTest, WithGraphsToo) {
  usesGraphs = true;
  everyCallThatFailsEndsTheRun(
      {"beginCapture", "endCapture", "launchGraph", "freeGraph", "countProgress"});
}

TEST_F(CudaExecutorTest, TimesAreTheDevicesWhereTheyAreAskedFor) {
  int64_t timers = 0, elapsed = 0;
  {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    EXPECT_THAT(
        run(simulator).output,
        testing::HasSubstr(" on 2 ranks, until it was issued: --profile asks the devices:"));
    EXPECT_EQ(simulator.calls("makeTimer"), 0);
  }
  {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    CudaOptions both = {.usesGraphs = true, .takesTimes = true};
    End end = run(simulator, {{80, true, "", 1}}, "60", both);
    EXPECT_EQ(end.errors, "note: --profile and --timeline take times on the devices, one after "
                          "another, so there are no graphs\n");
    EXPECT_EQ(simulator.calls("beginCapture"), 0);
  }
  {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    End end = run(simulator, {{80, true, "", 1}}, "60", {.takesTimes = true});
    EXPECT_EQ(end.code, 0) << end.errors;
    EXPECT_THAT(end.output,
                testing::HasSubstr(" on 2 ranks, by the devices' clocks, one after another:"));
    timers = simulator.calls("makeTimer");
    elapsed = simulator.calls("elapsed");
    EXPECT_EQ(timers, 2 * int64_t(program.stepBody().size() + 1));
    // Two steps, each also as a whole.
    EXPECT_EQ(elapsed, 2 * 2 * int64_t(program.stepBody().size() + 1));
  }
  for (auto [name, number] : {std::pair("makeTimer", int64_t(1)), std::pair("makeTimer", timers),
                              std::pair("elapsed", int64_t(1)), std::pair("elapsed", elapsed)}) {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    simulator.failAt(name, number, "it is lost");
    End end = run(simulator, {{80, true, "", 1}}, "60", {.takesTimes = true});
    EXPECT_EQ(end.code, 1) << name << " " << number;
    EXPECT_THAT(end.errors,
                testing::ContainsRegex(std::string("error: device [01] of rank [01].*: ") + name +
                                       ".*it is lost"));
  }
}

/// Collectives are slower then.
TEST_F(CudaExecutorTest, MemoryThatIsNotRegisteredIsSaidOnly) {
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  for (int64_t number : {1, 2, 3, 4}) {
    simulator.failAt("registerMemory", number, "it is not supported");
  }
  End end = run(simulator);
  EXPECT_EQ(end.code, 0);
  EXPECT_EQ(end.errors,
            "note: collectives copy through their library's own memory: registerMemory: "
            "it is not supported\n");
}

/// NCCL has then lost the communicator, so that only another run can go without windows.
TEST_F(CudaExecutorTest, AWindowThatFailsIsSaidWithAWayOut) {
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  DriverTable library = simulator.library();
  static thread_local bool isLost = false; // Of each rank.
  static decltype(library.registerMemory) registerMemory;
  static decltype(library.ready) ready;
  registerMemory = library.registerMemory;
  ready = library.ready;
  library.registerMemory = [](uint64_t device, uint64_t communicator, uint64_t at, uint64_t bytes,
                              bool asWindow, uint64_t *registered) {
    isLost = asWindow;
    return registerMemory(device, communicator, at, bytes, asWindow, registered);
  };
  library.ready = [](uint64_t device, uint64_t communicator, bool *isReady) -> DriverTable::Result {
    return isLost ? "NCCL: it is lost" : ready(device, communicator, isReady);
  };
  End end = run(library);
  EXPECT_EQ(end.code, 1);
  EXPECT_THAT(end.errors, testing::HasSubstr("NCCL: it is lost; with NCCL_WIN_ENABLE=0 in the "
                                             "environment collectives go without windows\n"));
}

/// A stream waits forever for a lost rank.
TEST_F(CudaExecutorTest, APartnerThatIsLostIsNoticedAtOnce) {
  SimulatorSettings stuck = settings();
  stuck.stuck = {.device = 1, .after = 30};
  Simulator simulator(stuck, {{&program, 1}, kToyKernels});
  DriverTable library = simulator.library();
  static std::atomic<int> waits;
  static decltype(library.reached) reached;
  static decltype(library.ready) ready;
  waits = 0;
  reached = library.reached;
  ready = library.ready;
  library.reached = [](uint64_t device, uint64_t event, bool *isReached) {
    DriverTable::Result result = reached(device, event, isReached);
    waits = *isReached ? 0 : waits + 1;
    return result;
  };
  library.ready = [](uint64_t device, uint64_t communicator, bool *isReady) -> DriverTable::Result {
    return waits > 500 ? "NCCL: it is lost" : ready(device, communicator, isReady);
  };
  End end = run(library, {{80, true, "", 1}}, "60");
  EXPECT_EQ(end.code, 1) << "or it took until it is stuck";
  EXPECT_THAT(end.errors, testing::ContainsRegex("device [01] of rank [01].*: NCCL: it is lost"));
}

TEST_F(CudaExecutorTest, WithoutWindowsMemoryIsRegisteredPlainly) {
  SimulatorSettings plain = settings();
  plain.hasWindows = false;
  Simulator simulator(plain, {{&program, 1}, kToyKernels});
  EXPECT_EQ(run(simulator).code, 0);
  EXPECT_EQ(simulator.calls("registerMemory"), 4);
}

/// Work fails some time after it was enqueued.
TEST_F(CudaExecutorTest, WorkThatFailsEndsTheRun) {
  for (int64_t number = 1; number < 45; number += 6) {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    simulator.failWorkAt(number, "an illegal address");
    End end = run(simulator);
    EXPECT_EQ(end.code, 1) << number;
    EXPECT_THAT(end.errors, testing::HasSubstr("an illegal address")) << number;
  }
}

TEST_F(CudaExecutorTest, InLineThereIsNothingToWaitFor) {
  isInLine = true;
  ASSERT_EQ(program.stepBody()[2].stream, Stream::Communication);
  for (uint32_t number : {2, 4}) {
    ASSERT_EQ(program.stepBody()[number].waits.size(), 1u);
    program.stepBody()[number].waits.clear();
  }
  for (bool records : {false, true}) {
    usesGraphs = records;
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    End end = run(simulator);
    EXPECT_EQ(end.code, 0) << end.errors;
  }
}

/// The sum of gradients is on the communication stream: it waits for the kernel that computes them,
/// and the observation waits for the sum.
TEST_F(CudaExecutorTest, AWaitThatIsMissingIsARace) {
  ASSERT_EQ(program.stepBody()[2].stream, Stream::Communication);
  // The sum of losses goes through the host, which then knows that the kernel has ended.
  std::swap(program.stepBody()[1], program.stepBody()[2]);
  program.stepBody()[4].waits = {1};
  for (auto [number, text] : {std::pair(1, "allReduce: a race: writes the operand, "),
                              std::pair(4, "launch: a race: reads operand 0, ")}) {
    Program broken = program;
    ASSERT_EQ(broken.stepBody()[size_t(number)].waits.size(), 1u);
    broken.stepBody()[size_t(number)].waits.clear();
    std::swap(program, broken);
    {
      Simulator simulator(settings(), {{&program, 1}, kToyKernels});
      End end = run(simulator);
      EXPECT_EQ(end.code, 1) << number;
      EXPECT_THAT(end.errors, testing::ContainsRegex(concat(text, ".*no event orders them")))
          << number;
    }
    std::swap(program, broken);
  }
}

/// As if a launcher showed all processes the same device.
TEST_F(CudaExecutorTest, OneDeviceForTwoRanksIsSaid) {
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  DriverTable library = simulator.library();
  static decltype(library.open) open;
  open = library.open;
  library.open = [](int64_t number, uint64_t *device, DeviceFacts *facts) {
    DriverTable::Result result = open(number, device, facts);
    std::fill(std::begin(facts->identity), std::end(facts->identity), 7);
    return result;
  };
  End end = run(library);
  EXPECT_EQ(end.code, 1);
  EXPECT_EQ(end.errors, "error: ranks 0 and 1 are given one device, expected one for each\n");
}

TEST_F(CudaExecutorTest, TooLittleMemoryIsSaid) {
  SimulatorSettings small = settings();
  small.memoryBytes = 4096;
  Simulator simulator(small, {{&program, 1}, kToyKernels});
  End end = run(simulator);
  EXPECT_EQ(end.code, int(ExitCode::OutOfMemory));
  EXPECT_THAT(
      end.errors,
      testing::MatchesRegex(
          "error: rank [01] needs [0-9.]+ KiB of device [01], a simulator that has 4.00 KiB "
          "free of 4.00 KiB\n"
          "memory of each rank: .* at the peak .*:\n  parameter .*\n"));
  EXPECT_EQ(simulator.calls("allocate") + simulator.calls("allocatePinned"), 0);
}

/// The memory of code is measured, not predicted.
TEST_F(CudaExecutorTest, MemoryForCodeCounts) {
  SimulatorSettings tight = settings();
  tight.memoryBytes = program.arenaBytes + 8192;
  EXPECT_EQ(run(Simulator(tight, {{&program, 1}, kToyKernels})).code, 0);
  for (int kind : {0, 1, 2}) {
    SimulatorSettings other = tight;
    other.moduleBytes = kind == 0 ? 8192 + 256 : 0;
    other.local = {"phase_0", kind == 1 ? 256u : 0u};
    other.communicationBytes = kind == 2 ? 16384 : 0;
    Simulator simulator(other, {{&program, 1}, kToyKernels});
    End end = run(simulator);
    EXPECT_EQ(end.code, int(ExitCode::OutOfMemory)) << kind;
    EXPECT_THAT(end.errors,
                testing::ContainsRegex(
                    kind < 2 ? "needs .* of device [01], .* free of .*, beside [0-9.]+ KiB that "
                               "its code has\nmemory of each rank"
                             : "needs 2[0-9.]+ KiB of device"))
        << kind;
    EXPECT_EQ(simulator.calls("allocateShared"), 0) << kind;
  }
}

TEST_F(CudaExecutorTest, MemoryThatCodeAloneDoesNotFindIsSaid) {
  for (bool isLocal : {false, true}) {
    SimulatorSettings small = settings();
    small.moduleBytes = isLocal ? 0 : small.memoryBytes + 1;
    small.local = {"phase_0", isLocal ? 512u << 10 : 0};
    Simulator simulator(small, {{&program, 1}, kToyKernels});
    End end = run(simulator);
    EXPECT_EQ(end.code, int(ExitCode::OutOfMemory));
    EXPECT_THAT(end.errors, testing::MatchesRegex(
                                concat("error: device [01] of rank [01], a simulator, has too "
                                       "little memory for the program's kernels",
                                       isLocal ? ", of which one keeps 512 KiB a thread" : "",
                                       "\nmemory of each rank: .*\n  parameter .*\n")));
  }
}

/// Predicted memory beside the arena counts, except for the context, which exists already.
TEST_F(CudaExecutorTest, WhatIsBesideTheArenaIsNeededToo) {
  SimulatorSettings some = settings();
  program.deviceUses = deviceUses(uint64_t(1) << 40);
  program.deviceUses.back().bytes = some.memoryBytes - program.arenaBytes - 65536;
  {
    Simulator simulator(some, {{&program, 1}, kToyKernels});
    EXPECT_EQ(run(simulator).code, 0);
  }
  program.deviceUses[1].bytes = 65537;
  Simulator simulator(some, {{&program, 1}, kToyKernels});
  End end = run(simulator);
  EXPECT_EQ(end.code, int(ExitCode::OutOfMemory));
  EXPECT_THAT(end.errors, testing::HasSubstr("; not known: communicators, code"));
}

/// The prediction for the context does not count for later memory.
TEST_F(CudaExecutorTest, TellsWhatTheDeviceHasTaken) {
  program.deviceUses = deviceUses(uint64_t(1) << 40);
  program.deviceUses[1].bytes = 4096;
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  EXPECT_THAT(run(simulator).output,
              testing::ContainsRegex(concat(
                  "device 0 of rank 0: ([0-9.]+ KiB) of 1.00 MiB taken, by anybody; 0 bytes before "
                  "the run and by its context, [0-9.]+ KiB since then, predicted ",
                  bytesText(program.arenaBytes + 4096), "\n")));
}

/// After the check, a library may take more memory than there is.
TEST_F(CudaExecutorTest, MemoryThatIsMissingLateIsSaidWithTheTable) {
  for (const char *function : {"endCapture", "join", "registerMemory", "allReduce", "launch"}) {
    usesGraphs = function == std::string("endCapture");
    SimulatorSettings tight = settings();
    tight.taking = {function, tight.memoryBytes};
    Simulator simulator(tight, {{&program, 1}, kToyKernels});
    End end = run(simulator);
    bool isRefused = function == std::string("registerMemory"); // And done without.
    EXPECT_EQ(end.code, isRefused ? 0 : int(ExitCode::OutOfMemory)) << function << end.errors;
    EXPECT_THAT(end.errors,
                testing::ContainsRegex(concat(function,
                                              ": of [0-9]+ bytes that nobody has 1048576 "
                                              "are wanted",
                                              isRefused ? "" : "\nmemory of each rank: ")));
  }
}

TEST_F(CudaExecutorTest, ARecordingThatFailsIsEnded) {
  usesGraphs = true;
  program = makeToy(1, 1);
  std::map<std::string, int64_t> counts;
  {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    ASSERT_EQ(run(simulator).code, 0);
    counts = simulator.allCalls();
  }
  for (const char *name : {"beginCapture", "countProgress", "endCapture"}) {
    for (int64_t number = 1; number <= counts[name]; ++number) {
      Simulator simulator(settings(), {{&program, 1}, kToyKernels});
      simulator.failAt(name, number, "it is lost");
      End end = run(simulator);
      EXPECT_EQ(end.code, 1) << name << " " << number;
      EXPECT_THAT(end.errors, testing::HasSubstr("it is lost"));
      bool isBegun = name != std::string("beginCapture");
      EXPECT_EQ(simulator.calls("endCapture"), simulator.calls("beginCapture") - (isBegun ? 0 : 1))
          << name << " " << number;
    }
  }
}

/// Other processes may take memory in the meantime.
TEST_F(CudaExecutorTest, MemoryThatIsGoneWhenItIsAskedForIsSaid) {
  SimulatorSettings enough = settings();
  Simulator simulator(enough, {{&program, 1}, kToyKernels});
  simulator.failAt("allocate", 1, "it is lost");
  EXPECT_EQ(run(simulator).code, int(ExitCode::Error));
}

TEST_F(CudaExecutorTest, ADeviceThatIsStuckEndsTheRun) {
  for (int64_t after : {3, 12, 40, 25}) {
    SimulatorSettings stuck = settings();
    usesGraphs = after == 25;
    stuck.stuck = {.device = 1, .after = after};
    Simulator simulator(stuck, {{&program, 1}, kToyKernels});
    End end = run(simulator, {{80, true, "", 1}}, "3");
    EXPECT_EQ(end.code, int(ExitCode::Stuck)) << after;
    EXPECT_THAT(end.errors,
                testing::MatchesRegex(
                    "error: rank 1 is stuck: its device has been for [0-9.]+ m?s in "
                    "(a copy that its rank waits for|(init|step) instructions? [0-9]+.*), place "
                    "[0-9]+ of its work.*\n"))
        << after;
  }
}

TEST_F(CudaExecutorTest, ADeviceThatIsSlowEndsTheRun) {
  SimulatorSettings slow = settings();
  slow.slow = {.device = 1, .after = 30};
  // Work between two collectives takes more than the 3 s that a rank may be late, from 450 ms on,
  // and that between two words, up to more than a second, less.
  slow.slowness = std::chrono::milliseconds(600);
  Simulator simulator(slow, {{&program, 1}, kToyKernels});
  End end = run(simulator, {{80, true, "", 1}}, "4");
  EXPECT_EQ(end.code, int(ExitCode::Slow));
  EXPECT_THAT(end.errors,
              testing::MatchesRegex("error: rank 0 waited .* m?s in .*; rank 1 is missing: it.*, "
                                    "and still moves, [0-9.]+ s ago for the last time\n"));
}

/// The device's properties count, not this machine's.
TEST_F(CudaExecutorTest, WhatTheHostHasDoesNotMatter) {
  program.arenaBytes = uint64_t(1) << 50;
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  EXPECT_THAT(run(simulator).errors,
              testing::ContainsRegex("needs 1.00 PiB of .* that has 1.00 MiB free of 1.00 MiB\n"));
}

TEST_F(CudaExecutorTest, AnArchitectureWithoutImagesIsSaid) {
  // The simulator's devices are of sm_90.
  for (DeviceImage image : {DeviceImage{100, true, "", 1}, DeviceImage{80, false, "", 0},
                            DeviceImage{100, false, "", 0}}) {
    Simulator simulator(settings(), {{&program, 1}, kToyKernels});
    EXPECT_THAT(
        run(simulator, {image}).errors,
        testing::ContainsRegex("error: device [01] of rank [01] is a simulator of sm_90, for "
                               "which the program has no kernels\n"));
  }
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  EXPECT_EQ(run(simulator, {{100, true, "", 1}, {90, false, "", 0}}).code, 0);
}

TEST_F(CudaExecutorTest, ADeviceWithoutFp8MatmulsIsSaid) {
  program.matmuls.push_back(kToyBytes);
  {
    SimulatorSettings old = settings();
    old.architecture = 80;
    Simulator simulator(old, {{&program, 1}, kToyKernels});
    EXPECT_THAT(run(simulator, {{80, true, "", 1}}).errors,
                testing::ContainsRegex(
                    "error: device [01] of rank [01], a simulator of sm_80, has no FP8 "
                    "matmuls, which sm_89 and later have: compile for a machine that has no "
                    "peak_flops of F8\n"));
  }
  Simulator simulator(settings(), {{&program, 1}, kToyKernels});
  EXPECT_EQ(run(simulator).code, 0);
}

} // namespace
