//===- DeviceMeasurements.cpp - measures the speed of CUDA devices ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "calibrate/DeviceMeasurements.h"

#include "backends/cuda/Devices.h"
#include "backends/local/LocalBackend.h"
#include "calibrate/MeasuredDevice.h"
#include "support/Text.h"

using namespace weft::rt;
using namespace weft::rt::calibrate;

namespace {

/// The shares of the time.
constexpr double kMatmulShare = 0.6, kMemoryShare = 0.15, kCollectiveShare = 0.2;
constexpr auto kTimeout = std::chrono::seconds(60);

/// Returns the workspace that programs give a matmul (`weft::workspaceBytes`).
uint64_t workspaceOf(const Matmul &matmul) {
  double bytes = std::ceil(double(matmul.k) / 64) * double(matmul.m) * double(matmul.n) *
                 double(std::max(sizeOf(matmul.type), sizeof(float)));
  return uint64_t(std::min(double(32 << 20), bytes));
}

std::vector<int64_t> sidesOfMatmuls(const Plan &plan) {
  return byTime<std::vector<int64_t>>(plan, {64, 128}, {512, 2048, 8192}, {128, 512, 2048, 8192});
}

std::vector<Matmul> casesOfAllSides(const Plan &plan, ElementType type) {
  std::vector<int64_t> sides = sidesOfMatmuls(plan);
  std::vector<Matmul> cases;
  for (int64_t m : sides) {
    for (int64_t n : sides) {
      for (int64_t k : sides) {
        cases.push_back(makeMatmul(type, m, n, k));
      }
    }
  }
  return cases;
}

std::vector<Matmul> matmulCases(const Plan &plan) {
  std::vector<Matmul> cases = casesOfAllSides(plan, ElementType::BF16);
  std::vector<int64_t> sides = sidesOfMatmuls(plan);
  // One with rows that do not begin at multiples of 16 bytes, for which libraries are slower.
  cases.push_back(makeMatmul(ElementType::BF16, sides.back(), sides.back() - 1, sides.back()));
  // Types that are rarely used for training have few cases.
  for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::F16}) {
    for (int64_t side : sides) {
      cases.push_back(makeMatmul(type, side, side, side));
    }
  }
  for (int64_t side : sides) {
    cases.push_back(makeMatmul(ElementType::F32, side, side, side));
    cases.back().isTF32 = true;
  }
  return cases;
}

std::vector<Matmul> byteCases(const Plan &plan) {
  std::vector<Matmul> cases = casesOfAllSides(plan, ElementType::F8E4M3);
  for (Matmul &matmul : cases) {
    matmul.transposeB = true;
    matmul.ldb = matmul.k;
  }
  return cases;
}

/// Returns sizes up to more than any device's caches.
std::vector<int64_t> memoryCases(const Plan &plan) {
  std::vector<int64_t> sizes;
  for (int64_t bytes = 4 << 10; bytes <= byTime(plan, 1 << 20, 256 << 20, 1 << 30); bytes *= 4) {
    sizes.push_back(bytes);
  }
  return sizes;
}

/// One rank's part of decisions of all ranks.
class Agreement {
public:
  Agreement(Communicator &link, int64_t ranks) : link(link) {
    agreeing = link.prepare({.type = ElementType::I32}, allRanks(ranks),
                            {"calibration", 2, "what all devices can do"});
  }

  /// Sets `result` to true if `isSo` is true on all ranks. Returns false if the run has failed.
  bool areAll(bool isSo, bool &result) {
    auto isNot = int32_t(!isSo), count = int32_t(0);
    bool isGood = link.run(agreeing, &isNot, &count);
    result = count == 0;
    return isGood;
  }

private:
  Communicator &link;
  Communicator::Handle agreeing = 0;
};

class DeviceRun {
public:
  DeviceRun(const Plan &plan, const cuda::DriverTable &library,
            const std::function<void(const std::string &)> &progress, Measurements &measurements)
      : plan(plan), library(library), progress(progress), measurements(measurements) {}

  Status all() {
    progress("the smallest work, matmuls and memory");
    Status status =
        onRanks(secondsOfEach(plan, false),
                [&](Sampler &sampler, MeasuredDevice &device) { return alone(sampler, device); });
    if (!status) {
      return status;
    }
    for (const RefusedMatmul &entry : measurements.refused) {
      const Matmul &p = entry.matmul;
      progress(concat("refused: a matmul of ", nameOf(p.type), ", ", p.m, " x ", p.n, " x ", p.k,
                      ": ", entry.reason));
    }
    std::vector<int64_t> groups = groupSizes(plan), bytes = collectiveCases();
    for (int64_t group : groups) {
      progress(concat("collectives of ", group, " ranks"));
      double each = plan.seconds * kCollectiveShare /
                    double(1 + groups.size() * bytes.size() * std::size(kGroupKinds));
      status = onRanks(each, [&](Sampler &sampler, MeasuredDevice &device) {
        return together(sampler, device, group, bytes);
      });
      if (!status) {
        return status;
      }
    }
    return {};
  }

private:
  using Body = std::function<bool(Sampler &, MeasuredDevice &)>;

  /// Runs `body` on every rank, with its device.
  Status onRanks(double secondsPerCase, const Body &body) {
    Shared shared(plan.ranks);
    RunResult result = makeLocalBackend(plan.ranks, {})->run([&](Communicator &link) {
      Sampler sampler(link, plan.ranks, 1, secondsPerCase, shared);
      MeasuredDevice device(library, link);
      (void)(device.open() && body(sampler, device) && device.close()); // The result says the rest.
    });
    return result.failure ? makeError(result.failure->message) : Status();
  }

  std::vector<int64_t> collectiveCases() const {
    std::vector<int64_t> sizes;
    for (int64_t bytes = 1 << 10; bytes <= byTime(plan, 1 << 14, 64 << 20, 256 << 20);
         bytes *= byTime(plan, 16, 16, 4)) {
      sizes.push_back(bytes);
    }
    return sizes;
  }

  /// Calls `keep` on rank 0.
  template <typename Keep> static void onFirst(Sampler &sampler, Keep &&keep) {
    if (sampler.communicator().rank() == 0) {
      keep();
    }
  }

  /// Measures a device's own work, while the others do the same.
  bool alone(Sampler &sampler, MeasuredDevice &device) {
    Agreement agreement(sampler.communicator(), plan.ranks);
    bool areWithBytes = false;
    if (!agreement.areAll(device.facts.multipliesBytes(), areWithBytes)) {
      return false;
    }
    sampler.allow(secondsOfEach(plan, areWithBytes));
    DeviceNotes notes{device.facts.name, device.facts.multiprocessors, 0, 0, 0};
    MeasuredDevice::Address little = device.allocate(256);
    if (!little || !leastTaken(sampler.communicator(), device, notes.contextBytes)) {
      return false;
    }
    Timing launch = device.measure(sampler, [&] {
      return device.check(library.zero(device.device, device.stream, little, 4));
    });
    uint64_t before = device.countFree();
    const char *name = nullptr;
    if (!device.check(library.nameMatmuls(device.device, &name)) ||
        !matmulTimes(sampler, device, matmulCases(plan), agreement) ||
        (areWithBytes && !matmulTimes(sampler, device, byteCases(plan), agreement))) {
      return false;
    }
    notes.libraryBytes = before - std::min(before, device.countFree());
    onFirst(sampler, [&] {
      measurements.memoryBytes = device.facts.memoryBytes;
      measurements.library = name;
      measurements.launch = launch;
      measurements.device = notes;
    });
    return memoryTimes(sampler, device, memoryCases(plan));
  }

  /// Records on rank 0 the memory that was taken when a device was opened: the least of all ranks,
  /// since other processes only add to it.
  static bool leastTaken(Communicator &link, const MeasuredDevice &device, uint64_t &least) {
    uint64_t taken = device.facts.memoryBytes - device.facts.freeBytes;
    least = taken;
    std::span<const char> own(reinterpret_cast<const char *>(&taken), sizeof taken);
    return link.collect(own, [&](int64_t, std::span<const char> bytes) {
      uint64_t other = 0;
      std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char *>(&other));
      least = std::min(least, other);
    });
  }

  /// Prepares `matmul` on all ranks. If some rank refuses an FP8 matmul, records the refusal and
  /// sets `isMeasured` to false on all. A failed device seems to refuse; the next call reports its
  /// failure.
  bool prepare(Communicator &link, MeasuredDevice &device, const Matmul &matmul,
               Agreement &agreement, MeasuredDevice::Handle &prepared, bool &isMeasured) {
    cuda::MatmulAlgorithm way = {};
    cuda::DriverTable::Result failed =
        library.prepareMatmul(device.device, &matmul, &way, &prepared);
    if (!matmul.isFp8()) {
      isMeasured = true;
      return device.check(failed);
    }
    std::string reason = failed ? failed : "";
    if (!agreement.areAll(reason.empty(), isMeasured)) {
      return false;
    }
    return isMeasured ||
           ((!reason.empty() || device.check(library.freeMatmul(device.device, prepared))) &&
            noteRefused(link, matmul, reason));
  }

  /// Records a refusal on rank 0, with the first reason that a rank has.
  bool noteRefused(Communicator &link, const Matmul &matmul, std::string_view reason) {
    std::string first;
    bool isGood = link.collect(
        std::span(reason.data(), reason.size()), [&](int64_t rank, std::span<const char> text) {
          if (first.empty() && !text.empty()) {
            first = concat("device ", rank, ": ", std::string_view(text.data(), text.size()));
          }
        });
    if (isGood && link.rank() == 0) {
      measurements.refused.push_back({matmul, first});
    }
    return isGood;
  }

  /// Measures matmuls. REQUIRES: all of `cases` have FP8 operands, or none.
  bool matmulTimes(Sampler &sampler, MeasuredDevice &device, const std::vector<Matmul> &cases,
                   Agreement &agreement) {
    uint64_t most = 0, workspace = 0;
    for (const Matmul &matmul : cases) {
      for (int64_t count : {matmul.m * matmul.k, matmul.k * matmul.n, matmul.m * matmul.n}) {
        most = std::max(most, uint64_t(count) * sizeOf(matmul.resultType()));
      }
      workspace = std::max(workspace, workspaceOf(matmul));
    }
    cuda::MatmulPlaces places = {};
    places.a = device.allocate(most);
    places.b = places.a ? device.allocate(most) : 0;
    places.c = places.b ? device.allocate(most) : 0;
    places.factorA = places.c ? device.allocate(256) : 0; // Numbers of f32, as any there are.
    places.factorB = places.factorA;
    places.workspace = places.factorA ? device.allocate(workspace) : 0;
    if (!places.workspace) {
      return false;
    }
    if (cases.front().isFp8() &&
        !(device.fillWithBytes(places.a, most) && device.fillWithBytes(places.b, most))) {
      return false;
    }
    for (Matmul matmul : cases) {
      matmul.workspaceBytes = workspaceOf(matmul);
      MeasuredDevice::Handle prepared = 0;
      bool isMeasured = false;
      if (!prepare(sampler.communicator(), device, matmul, agreement, prepared, isMeasured)) {
        return false;
      }
      if (!isMeasured) {
        continue;
      }
      Timing timing = device.measure(sampler, [&] {
        return device.check(library.runMatmul(device.device, device.stream, prepared, &places));
      });
      if (!device.finish() || !device.check(library.freeMatmul(device.device, prepared))) {
        return false;
      }
      onFirst(sampler, [&] { measurements.matmuls.push_back({matmul, timing}); });
    }
    return device.free(places.workspace) && device.free(places.factorA) && device.free(places.c) &&
           device.free(places.b) && device.free(places.a);
  }

  bool memoryTimes(Sampler &sampler, MeasuredDevice &device, const std::vector<int64_t> &sizes) {
    uint64_t half = uint64_t(sizes.back()) / 2;
    MeasuredDevice::Address from = device.allocate(half), to = from ? device.allocate(half) : 0;
    if (!to) {
      return false;
    }
    for (int64_t bytes : sizes) {
      MemoryTime time;
      time.bytes = bytes;
      time.copy = device.measure(sampler, [&] {
        return device.check(
            library.copy(device.device, device.stream, to, from, uint64_t(bytes) / 2));
      });
      onFirst(sampler, [&] { measurements.memory.push_back(time); });
    }
    return true;
  }

  /// Measures collectives in groups of `group` devices, all groups at the same time.
  bool together(Sampler &sampler, MeasuredDevice &device, int64_t group,
                const std::vector<int64_t> &sizes) {
    Communicator &link = sampler.communicator();
    uint64_t most = uint64_t(sizes.back());
    MeasuredDevice::Address operand = device.allocate(most, true);
    MeasuredDevice::Address result = operand ? device.allocate(most * uint64_t(group), true) : 0;
    if (!result) {
      return false;
    }
    uint64_t before = device.countFree();
    cuda::DeviceCollectives collectives(library, link.rank(), device.device, link, plan.ranks,
                                        allRanks(plan.ranks), kTimeout);
    if (!collectives.join()) {
      return false;
    }
    device.communicateBy(&collectives);
    // The smallest comes first; its time counts as that of a rendezvous.
    std::vector<Collective> cases = {makeCollective(CollectiveKind::AllReduce, group, 4 * group)};
    for (int64_t bytes : sizes) {
      for (const CollectiveKindEntry &entry : kGroupKinds) {
        cases.push_back(makeCollective(entry.kind, group, bytes));
      }
    }
    for (const Collective &collective : cases) {
      if (!collectives.prepare(collective, groupOf(link.rank(), group))) {
        return false;
      }
    }
    if (!collectives.registerMemory(operand, most) ||
        !collectives.registerMemory(result, most * uint64_t(group))) {
      return false;
    }
    for (uint32_t number = 0; number < cases.size(); ++number) {
      Timing timing = device.measure(
          sampler, [&] { return collectives.run(number, device.stream, operand, result); });
      onFirst(sampler, [&] { keep(cases[number], number == 0, group, timing); });
    }
    // Only the communicator of all ranks counts.
    onFirst(sampler, [&] {
      if (group == plan.ranks) {
        measurements.device->communicatorBytes = before - std::min(before, device.countFree());
      }
    });
    bool isGood = !link.stopped() && device.finish() && collectives.end();
    device.communicateBy(nullptr);
    return isGood;
  }

  void keep(const Collective &collective, bool isRendezvous, int64_t group, const Timing &timing) {
    if (!isRendezvous) {
      measurements.collectives.push_back({collective.kind, group, bytesOf(collective), timing});
    } else if (group == plan.ranks) {
      measurements.rendezvous = timing;
    }
  }

  const Plan &plan;
  const cuda::DriverTable &library;
  const std::function<void(const std::string &)> &progress;
  Measurements &measurements;
};

} // namespace

double weft::rt::calibrate::secondsOfEach(const Plan &plan, bool areWithBytes) {
  size_t things = 1 + matmulCases(plan).size() + memoryCases(plan).size() +
                  (areWithBytes ? byteCases(plan).size() : 0);
  return plan.seconds * (kMatmulShare + kMemoryShare) / double(things);
}

Result<Measurements>
weft::rt::calibrate::measureDevices(Plan &plan,
                                    const std::function<void(const std::string &)> &progress) {
  Result<const cuda::DriverTable *> loaded = cuda::loadLibrary();
  if (!loaded) {
    return loaded.error();
  }
  const cuda::DriverTable *library = *loaded;
  Program program; // Of which a simulator needs to know how many ranks it has.
  program.mesh = {{"devices", std::max<int64_t>(plan.ranks, 1)}};
  if (library->standFor) {
    library->standFor(&program, 1, nullptr);
  }
  int64_t count = 0;
  if (cuda::DriverTable::Result reason = library->countDevices(&count)) {
    return makeError("CUDA devices cannot be measured: ", reason);
  }
  plan.ranks = plan.ranks ? plan.ranks : count;
  plan.threads = 1;
  if (count == 0 || plan.ranks > count) {
    return makeError("expected ", std::max<int64_t>(plan.ranks, 1),
                     " CUDA devices or more on this machine, got ", count);
  }
  Measurements measurements;
  if (Status status = DeviceRun(plan, *library, progress, measurements).all(); !status) {
    return status.error();
  }
  return measurements;
}
