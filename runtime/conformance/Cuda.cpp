//===- Cuda.cpp - the suite on devices ----------------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Copies operands to a device and results back. By default the devices are those of a
// simulator, and the suite tests which calls of the library make up a collective. With
// WEFT_RT_CUDA they are those of that library, one for each rank, which may sum in any
// order. The host detects failures between ranks, so tests of its backends cover these.
//
//===----------------------------------------------------------------------===//

#include "backends/cuda/DeviceCollectives.h"
#include "backends/cuda/Devices.h"
#include "backends/local/LocalBackend.h"
#include "conformance/Conformance.h"
#include "testing/Simulator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace weft::rt;
using namespace weft::rt::cuda;

namespace {

using Address = DriverTable::Address;

/// A rank with a device.
class OnDevice : public Communicator {
public:
  OnDevice(Communicator &link, const DriverTable &library, int64_t ranks)
      : link(link), library(library) {
    DeviceFacts facts;
    isGood = check(library.open(link.rank(), &device, &facts)) &&
             check(library.makeStream(device, &stream)) && check(library.makeEvent(device, &event));
    collectives.emplace(library, link.rank(), device, link, ranks, allRanks(ranks),
                        std::chrono::seconds(60));
    isGood = isGood && (ranks == 1 || collectives->join());
  }

  ~OnDevice() override {
    for (const Prepared &one : prepared) {
      isGood = isGood && check(library.freePinned(device, one.operand)) &&
               check(library.freePinned(device, one.result));
    }
    isGood = isGood && !link.stopped() && collectives->end();
    for (const Prepared &one : prepared) {
      isGood = isGood && check(library.freeShared(device, one.memory));
    }
    isGood = isGood && check(library.freeEvent(device, event)) &&
             check(library.freeStream(device, stream)) && check(library.close(device));
  }

  int64_t rank() const override { return link.rank(); }

  uint32_t prepare(const Collective &collective, const RankGroup &group,
                   const CallSite &) override {
    Prepared &made = prepared.emplace_back();
    uint64_t elements = 1;
    for (int64_t size : collective.shape) {
      elements *= uint64_t(size);
    }
    made.operandBytes = elements * sizeOf(collective.type);
    made.resultBytes =
        conformance::resultElements(collective, group.ranks.size()) * sizeOf(collective.type);
    made.padded = (made.operandBytes + 255) / 256 * 256;
    uint64_t bytes = made.padded + made.resultBytes;
    void *operand = nullptr, *result = nullptr;
    isGood = isGood && check(library.allocateShared(device, bytes + 1, &made.memory)) &&
             check(library.allocatePinned(device, made.operandBytes + 1, &operand)) &&
             check(library.allocatePinned(device, made.resultBytes + 1, &result)) &&
             collectives->prepare(collective, group);
    made.operand = static_cast<char *>(operand);
    made.result = static_cast<char *>(result);
    return uint32_t(prepared.size() - 1);
  }

  bool issue(Communicator::Handle handle, const void *operand, void *result) override {
    Prepared &run = prepared[handle];
    // The result lies behind the operand, unless both are the same.
    Address from = run.memory, to = operand == result ? from : from + run.padded;
    // A transfer has only one of them on each rank.
    bool hasOperand = operand && run.operandBytes > 0, hasResult = result && run.resultBytes > 0;
    if (!isGood) {
      return false;
    }
    if (hasOperand) {
      std::copy_n(static_cast<const char *>(operand), run.operandBytes, run.operand);
    }
    run.target = result;
    // This collective may read the result of the one before.
    isGood =
        waitForAll() &&
        (!hasOperand ||
         check(library.copyToDevice(device, stream, from, run.operand, run.operandBytes))) &&
        collectives->run(handle, stream, operand ? from : 0, result ? to : 0) &&
        (!hasResult || check(library.copyToHost(device, stream, run.result, to, run.resultBytes)));
    pending.push_back(handle);
    return isGood;
  }

  bool wait(Communicator::Handle) override { return waitForAll(); }

  bool collect(std::span<const char> own, const Receiver &take) override {
    return link.collect(own, take);
  }
  bool fail(std::string message, ExitCode code) override {
    return link.fail(std::move(message), code);
  }
  bool stopped() const override { return link.stopped(); }
  void moved() override { link.moved(); }
  double waitedSeconds() const override { return link.waitedSeconds(); }

private:
  struct Prepared {
    uint64_t operandBytes = 0, resultBytes = 0, padded = 0;
    Address memory = 0;
    char *operand = nullptr, *result = nullptr;
    void *target = nullptr;
  };

  bool check(DriverTable::Result result) { return !result || link.fail(result); }

  bool waitForAll() {
    isGood = isGood && check(library.record(device, event, stream)) && collectives->await(event);
    for (uint32_t handle : pending) {
      const Prepared &run = prepared[handle];
      if (isGood && run.target) {
        std::copy_n(run.result, run.resultBytes, static_cast<char *>(run.target));
      }
    }
    pending.clear();
    return isGood;
  }

  Communicator &link;
  const DriverTable &library;
  DriverTable::Handle device = 0, stream = 0, event = 0;
  std::optional<DeviceCollectives> collectives;
  std::vector<Prepared> prepared;
  std::vector<uint32_t> pending;
  bool isGood = false;
};

/// Returns the library that WEFT_RT_CUDA names and the number of its devices; null if it is not
/// set.
const DriverTable *findLibrary(int64_t &devices) {
  static const char *named = std::getenv("WEFT_RT_CUDA");
  if (!named || !*named) {
    return nullptr;
  }
  static Program eight;
  static const Result<const DriverTable *> library = [] {
    Result<const DriverTable *> loaded = loadLibrary();
    if (loaded && (*loaded)->standFor) {
      eight.mesh = {{"all", 8}};
      (*loaded)->standFor(&eight, 1, nullptr);
    }
    return loaded;
  }();
  DriverTable::Result failed =
      library ? (*library)->countDevices(&devices) : library.error().message.c_str();
  EXPECT_EQ(failed, nullptr) << failed;
  return failed ? nullptr : *library;
}

class CudaBackend : public Backend {
public:
  /// Uses the devices of `found`, or of a simulator if it is null.
  CudaBackend(int64_t count, LocalOptions options, const DriverTable *found)
      : ranks(makeLocalBackend(count, options)) {
    library = found;
    if (library) {
      return;
    }
    static std::atomic<uint64_t> seed = 0;
    SimulatorSettings settings;
    settings.seed = ++seed;
    settings.devices = ranks->rankCount();
    settings.memoryBytes = settings.pinnedBytes = 64 << 20;
    simulator.emplace(settings, Counterparts());
    library = &simulator->library();
  }

  int64_t rankCount() const override { return ranks->rankCount(); }
  RankRange ranksHere() const override { return ranks->ranksHere(); }
  int64_t ranksOnHost() const override { return ranks->ranksOnHost(); }
  bool reportsErrors() override { return ranks->reportsErrors(); }
  Result<std::string> agree(const Result<std::string> &own) override { return ranks->agree(own); }
  RunResult run(const std::function<void(Communicator &)> &body) override {
    return ranks->run([&](Communicator &link) {
      OnDevice rank(link, *library, rankCount());
      body(rank);
    });
  }

private:
  std::unique_ptr<Backend> ranks;
  std::optional<Simulator> simulator;
  const DriverTable *library = nullptr;
};

} // namespace

bool conformance::isExact() {
  int64_t devices = 0;
  return !findLibrary(devices);
}

std::unique_ptr<Backend> conformance::makeBackendUnderTest(int64_t ranks,
                                                           std::chrono::milliseconds timeout) {
  LocalOptions options;
  options.timeout = timeout;
  int64_t devices = 0;
  const DriverTable *found = findLibrary(devices);
  auto backend = std::make_unique<CudaBackend>(ranks, options, found);
  if (found && backend->rankCount() > devices) {
    [&] { GTEST_SKIP() << backend->rankCount() << " ranks on " << devices << " devices"; }();
    return nullptr;
  }
  return backend;
}
