//===- Measurements.cpp - measures the speed of a host ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "calibrate/Measurements.h"

#include "backends/local/LocalBackend.h"
#include "calibrate/MemoryKernels.h"
#include "execution/PreparedMatmul.h"
#include "support/Json.h"
#include "support/Text.h"

#include <dnnl.hpp>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::calibrate;

namespace {

/// The shares of the time.
constexpr double kMatmulShare = 0.55, kMemoryShare = 0.2, kCollectiveShare = 0.2;
class Run {
public:
  Run(const Plan &plan, const std::function<void(const std::string &)> &progress,
      Measurements &measurements)
      : plan(plan), progress(progress), measurements(measurements) {}

  Status all() {
    progress("launches and rendezvous");
    Status status =
        onRanks(0.05 * plan.seconds / 2, [&](Sampler &sampler) { smallTimes(sampler); });
    progress("matmuls");
    std::vector<Matmul> matmuls = matmulCases();
    if (status) {
      status = onRanks(kMatmulShare * plan.seconds / double(matmuls.size()),
                       [&](Sampler &sampler) { matmulTimes(sampler, matmuls); });
    }
    progress("memory");
    std::vector<int64_t> sizes = memoryCases();
    if (status) {
      status = onRanks(kMemoryShare * plan.seconds / double(3 * sizes.size()),
                       [&](Sampler &sampler) { memoryTimes(sampler, sizes); });
    }
    std::vector<int64_t> groups = groupSizes(plan);
    for (int64_t group : groups) {
      progress(concat("collectives of ", group, " ranks"));
      std::vector<int64_t> bytes = collectiveCases();
      double cases = double(groups.size() * bytes.size() * std::size(kGroupKinds));
      if (status) {
        status = onRanks(kCollectiveShare * plan.seconds / cases,
                         [&](Sampler &sampler) { collectiveTimes(sampler, group, bytes); });
      }
    }
    return status;
  }

private:
  /// Runs `body` on every rank.
  Status onRanks(double secondsPerCase, const std::function<void(Sampler &)> &body) {
    Shared shared(plan.ranks);
    RunResult result = makeLocalBackend(plan.ranks, {})->run([&](Communicator &link) {
      Sampler sampler(link, plan.ranks, plan.threads, secondsPerCase, shared);
      body(sampler);
    });
    return result.failure ? makeError(result.failure->message) : Status();
  }

  std::vector<Matmul> matmulCases() const {
    std::vector<int64_t> sides =
        byTime<std::vector<int64_t>>(plan, {64, 128}, {64, 256, 1024}, {32, 128, 512, 2048});
    std::vector<Matmul> cases;
    for (int64_t m : sides) {
      for (int64_t n : sides) {
        for (int64_t k : sides) {
          cases.push_back(makeMatmul(ElementType::F32, m, n, k));
        }
      }
    }
    // Matmuls of bf16 have few cases.
    for (int64_t side : sides) {
      cases.push_back(makeMatmul(ElementType::BF16, side, side, side));
    }
    return cases;
  }

  std::vector<int64_t> memoryCases() const {
    std::vector<int64_t> sizes;
    for (int64_t bytes = 4 << 10; bytes <= byTime(plan, 1 << 20, 64 << 20, 256 << 20); bytes *= 4) {
      sizes.push_back(bytes);
    }
    return sizes;
  }

  std::vector<int64_t> collectiveCases() const {
    std::vector<int64_t> sizes;
    for (int64_t bytes = 1 << 10; bytes <= byTime(plan, 1 << 14, 4 << 20, 16 << 20); bytes *= 16) {
      sizes.push_back(bytes);
    }
    return sizes;
  }

  void smallTimes(Sampler &sampler) {
    Timing launch = sampler.measure([&] {
      sampler.team().run(cutIterations(1 << 20, sampler.team().size()).parts, [](int64_t) {});
    });
    Timing rendezvous = sampler.measure([&] { sampler.meet(); });
    if (sampler.communicator().rank() == 0) {
      measurements.launch = launch;
      measurements.rendezvous = rendezvous;
    }
  }

  void matmulTimes(Sampler &sampler, const std::vector<Matmul> &cases) {
    for (const Matmul &matmul : cases) {
      // Memory for the wider format. The numbers do not matter, unless they are subnormal.
      std::vector<float> a(size_t(matmul.m * matmul.k), 0.5), c(size_t(matmul.m * matmul.n));
      std::vector<float> b(size_t(matmul.k * matmul.n), 0.5);
      std::vector<std::unique_ptr<PreparedMatmul>> parts;
      for (const MatmulPart &part : cutMatmul(matmul, sampler.team().size())) {
        Result<std::unique_ptr<PreparedMatmul>> made = PreparedMatmul::make(part);
        if (!made) {
          sampler.communicator().fail(made.error().message);
          return;
        }
        parts.push_back(std::move(*made));
      }
      Timing timing = sampler.measure([&] {
        sampler.team().run(int64_t(parts.size()), [&](int64_t i) {
          // A library that could make the matmul has no reason to fail.
          (void)parts[size_t(i)]->run(a.data(), b.data(), c.data());
        });
      });
      if (sampler.communicator().rank() == 0) {
        measurements.matmuls.push_back({matmul, timing});
      }
    }
  }

  void memoryTimes(Sampler &sampler, const std::vector<int64_t> &sizes) {
    for (int64_t bytes : sizes) {
      std::vector<float> a(size_t(bytes) / sizeof(float), 1), b(a.size() / 3, 1), c(a.size() / 2);
      Team &team = sampler.team();
      auto timeOf = [&](int64_t count, auto &&kernel) {
        Cut cut = cutIterations(count, team.size());
        return sampler.measure([&] {
          team.run(cut.parts, [&](int64_t i) {
            int64_t begin = i * cut.length;
            kernel(begin, std::min(begin + cut.length, count));
          });
        });
      };
      MemoryTime time;
      time.bytes = bytes;
      int64_t count = int64_t(a.size());
      time.copy = timeOf(count / 2, [&](int64_t begin, int64_t end) {
        copyFloats(a.data() + begin, c.data() + begin, end - begin);
      });
      time.add = timeOf(count / 3, [&](int64_t begin, int64_t end) {
        addFloats(a.data() + begin, b.data() + begin, c.data() + begin, end - begin);
      });
      time.sum = timeOf(count, [&](int64_t begin, int64_t end) {
        c[size_t(begin) / 2] = sumFloats(a.data() + begin, end - begin);
      });
      if (sampler.communicator().rank() == 0) {
        measurements.memory.push_back(time);
      }
    }
  }

  void collectiveTimes(Sampler &sampler, int64_t group, const std::vector<int64_t> &sizes) {
    Communicator &link = sampler.communicator();
    // Buffers must live until the run ends, as the backend requires.
    std::vector<float> operand(size_t(sizes.back()) / sizeof(float), 1);
    std::vector<float> result(operand.size() * size_t(group));
    for (int64_t bytes : sizes) {
      for (const CollectiveKindEntry &entry : kGroupKinds) {
        Collective collective = makeCollective(entry.kind, group, bytes);
        Communicator::Handle handle =
            link.prepare(collective, groupOf(link.rank(), group), {"calibration", 1, entry.name});
        Timing timing = sampler.measure([&] { link.run(handle, operand.data(), result.data()); });
        if (link.rank() == 0) {
          measurements.collectives.push_back({entry.kind, group, bytesOf(collective), timing});
        }
      }
    }
  }

  const Plan &plan;
  const std::function<void(const std::string &)> &progress;
  Measurements &measurements;
};

uint64_t presentBytes() {
  return uint64_t(sysconf(_SC_PHYS_PAGES)) * uint64_t(sysconf(_SC_PAGESIZE));
}

nlohmann::json toJson(const Timing &timing) {
  return {{"seconds", timing.median}, {"spread", timing.spread}};
}

nlohmann::json toJson(const Matmul &p) {
  return {{"type", p.isTF32 ? "tf32" : nameOf(p.type)}, {"m", p.m}, {"n", p.n}, {"k", p.k}};
}

} // namespace

Matmul weft::rt::calibrate::makeMatmul(ElementType type, int64_t m, int64_t n, int64_t k) {
  Matmul matmul;
  matmul.type = type;
  matmul.m = m;
  matmul.n = n;
  matmul.k = k;
  matmul.lda = k;
  matmul.ldb = matmul.ldc = n;
  return matmul;
}

std::vector<int64_t> weft::rt::calibrate::groupSizes(const Plan &plan) {
  std::vector<int64_t> sizes;
  for (int64_t size = 2; size <= plan.ranks; ++size) {
    bool isPower = (size & (size - 1)) == 0;
    if (plan.ranks % size == 0 && (isPower || size == plan.ranks)) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

RankGroup weft::rt::calibrate::groupOf(int64_t rank, int64_t size) {
  RankGroup group = allRanks(size);
  for (int64_t &member : group.ranks) {
    member += rank - rank % size;
  }
  return group;
}

Collective weft::rt::calibrate::makeCollective(CollectiveKind kind, int64_t group, int64_t bytes) {
  Collective collective;
  collective.kind = kind;
  collective.shape = {group, bytes / int64_t(sizeof(float)) / group};
  collective.dim2 = 1;
  for (int64_t rank = 0; kind == CollectiveKind::Permute && rank < group; ++rank) {
    collective.sources.push_back(uint32_t((rank + 1) % group));
  }
  return collective;
}

int64_t weft::rt::calibrate::bytesOf(const Collective &collective) {
  return collective.shape[0] * collective.shape[1] * int64_t(sizeof(float));
}

Result<Measurements>
weft::rt::calibrate::measure(const Plan &plan,
                             const std::function<void(const std::string &)> &progress) {
  Measurements measurements;
  const dnnl_version_t &version = *dnnl::version();
  measurements.library = concat("oneDNN ", version.major, ".", version.minor, ".", version.patch);
  uint64_t present = presentBytes();
  measurements.memoryBytes = present / uint64_t(plan.ranks);
  // The largest case: three matrices of 2048 x 2048, or more for memory.
  uint64_t needed = uint64_t(plan.ranks) * (uint64_t(600) << 20);
  if (needed > present) {
    return makeError(plan.ranks, " ranks need ", bytesText(needed),
                     " of memory to calibrate, this machine has ", bytesText(present));
  }
  if (Status status = Run(plan, progress, measurements).all(); !status) {
    return status.error();
  }
  return measurements;
}

std::string weft::rt::calibrate::toJson(const Plan &plan, const Measurements &measurements) {
  nlohmann::json object = {{"ranks", plan.ranks},
                           {"threads", plan.threads},
                           {"memory_bytes", measurements.memoryBytes},
                           {"library", measurements.library},
                           {"launch", ::toJson(measurements.launch)},
                           {"rendezvous", ::toJson(measurements.rendezvous)},
                           {"products", nlohmann::json::array()},
                           {"memory", nlohmann::json::array()},
                           {"collectives", nlohmann::json::array()}};
  if (const std::optional<DeviceNotes> &device = measurements.device) {
    object["device"] = {{"name", device->name},
                        {"multiprocessors", device->multiprocessors},
                        {"context_bytes", device->contextBytes},
                        {"library_bytes", device->libraryBytes},
                        {"communicator_bytes", device->communicatorBytes}};
  }
  for (const MatmulTime &entry : measurements.matmuls) {
    nlohmann::json fields = ::toJson(entry.timing);
    fields.update(::toJson(entry.matmul));
    object["products"].push_back(std::move(fields));
  }
  for (const RefusedMatmul &entry : measurements.refused) {
    nlohmann::json fields = ::toJson(entry.matmul);
    fields.update({{"reason", entry.reason}});
    object["refused"].push_back(std::move(fields));
  }
  for (const MemoryTime &entry : measurements.memory) {
    nlohmann::json fields = {{"bytes", entry.bytes}, {"copy", ::toJson(entry.copy)}};
    if (entry.add.median > 0) {
      fields.update({{"add", ::toJson(entry.add)}, {"sum", ::toJson(entry.sum)}});
    }
    object["memory"].push_back(std::move(fields));
  }
  for (const CollectiveTime &entry : measurements.collectives) {
    nlohmann::json fields = ::toJson(entry.timing);
    fields.update({{"kind", nameOf(entry.kind)}, {"ranks", entry.ranks}, {"bytes", entry.bytes}});
    object["collectives"].push_back(std::move(fields));
  }
  return toJsonText(object) + "\n";
}
