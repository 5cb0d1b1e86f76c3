//===- Measurements.h - measures the speed of a host ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_MEASUREMENTS_H
#define WEFT_RT_CALIBRATE_MEASUREMENTS_H

#include "calibrate/Sampler.h"
#include "weft-rt/Status.h"

#include <functional>
#include <optional>
#include <string>

namespace weft::rt::calibrate {

/// The settings of measurements.
struct Plan {
  /// The ranks, which work at the same time, and the threads of each.
  int64_t ranks = 1, threads = 1;
  /// The approximate seconds for all measurements.
  double seconds = 60;
};

struct MatmulTime {
  Matmul matmul;
  Timing timing;
};

/// A matmul that the library refuses, and its reason in one line.
struct RefusedMatmul {
  Matmul matmul;
  std::string reason;
};

/// A kernel that touches `bytes`.
struct MemoryTime {
  int64_t bytes = 0;
  /// The kernels c = a, c = a + b, and the sum of a. Each touches `bytes` in all. `add` and `sum`
  /// are 0 if only the copy was measured.
  Timing copy, add, sum;
};

struct CollectiveTime {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 0, bytes = 0;
  Timing timing;
};

/// The properties of the ranks' devices, if ranks are not parts of this host.
struct DeviceNotes {
  std::string name;
  int64_t multiprocessors = 0;
  /// The device memory that is taken before anything is allocated, on the device where that is
  /// least; that of the library of matmuls; that of a communicator of all ranks, if there are
  /// several. They include memory that other processes take meanwhile.
  uint64_t contextBytes = 0, libraryBytes = 0, communicatorBytes = 0;
};

struct Measurements {
  /// The memory of each rank.
  uint64_t memoryBytes = 0;
  /// The name and version of the library of matmuls.
  std::string library;
  std::optional<DeviceNotes> device = {};
  std::vector<MatmulTime> matmuls;
  std::vector<RefusedMatmul> refused;
  std::vector<MemoryTime> memory;
  std::vector<CollectiveTime> collectives;
  /// `launch`: a team's empty job, or the smallest work of a device. `rendezvous`: a collective of
  /// all ranks that moves no data (none for one rank).
  Timing launch, rendezvous;
};

/// Measures this machine. Calls `progress` with a short text before each measurement. Matmuls are
/// those of `PreparedMatmul.h`, cut for a team as in programs; collectives run on the local
/// backend, in groups of the sizes of `groupSizes`. Fails if memory is missing.
Result<Measurements> measure(const Plan &plan,
                             const std::function<void(const std::string &)> &progress);

// For measurements of both hosts and devices.

/// Returns the number of cases for the plan's time: `fewest` below 2 s, `few` below 20 s, else
/// `all`.
template <typename T> T byTime(const Plan &plan, T fewest, T few, T all) {
  return plan.seconds < 2 ? fewest : plan.seconds < 20 ? few : all;
}

/// Returns the matmul C = A B, row-major.
Matmul makeMatmul(ElementType type, int64_t m, int64_t n, int64_t k);
/// Returns the group sizes to measure: the number of ranks and the powers of 2 that divide it, but
/// not 1.
std::vector<int64_t> groupSizes(const Plan &plan);
/// Returns the group of `rank`, of `size` consecutive ranks.
RankGroup groupOf(int64_t rank, int64_t size);
/// Returns a collective in groups of `group` ranks, with an operand of `bytes` or slightly less.
Collective makeCollective(CollectiveKind kind, int64_t group, int64_t bytes);
int64_t bytesOf(const Collective &collective);

/// Returns the measurements as one JSON object, for `weft calibrate`.
std::string toJson(const Plan &plan, const Measurements &measurements);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEASUREMENTS_H
