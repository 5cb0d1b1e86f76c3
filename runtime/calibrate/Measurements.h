//===- Measurements.h - what a host does how fast ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_CALIBRATE_MEASUREMENTS_H
#define WEFT_RT_CALIBRATE_MEASUREMENTS_H

#include "calibrate/Sampler.h"

#include <functional>
#include <optional>
#include <string>

namespace weft::rt::calibrate {

/// What to measure.
struct Plan {
  /// Ranks that work at the same time, and threads of each.
  int64_t ranks = 1, threads = 1;
  /// Seconds that all of it may take, about.
  double seconds = 60;
};

struct MatmulTime {
  Matmul matmul;
  Timing timing;
};

/// A matmul that the library does not compute, and why, in a line.
struct RefusedMatmul {
  Matmul matmul;
  std::string reason;
};

/// A kernel that touches `bytes`.
struct MemoryTime {
  int64_t bytes = 0;
  /// c = a; c = a + b; the sum of a. Each touches `bytes` in all. Where there is only a copy, the
  /// others are 0.
  Timing copy, add, sum;
};

struct CollectiveTime {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 0, bytes = 0;
  Timing timing;
};

/// What the ranks' devices are, where they are no parts of this host.
struct DeviceNotes {
  std::string name;
  int64_t multiprocessors = 0;
  /// What is gone of a device's memory when nothing was allocated, of the one where that is least;
  /// what the library of matmuls takes besides; what a communicator of all ranks does, if there
  /// are several. What others take meanwhile is in them.
  uint64_t contextBytes = 0, libraryBytes = 0, communicatorBytes = 0;
};

struct Measurements {
  /// Of each rank.
  uint64_t memoryBytes = 0;
  /// That of the matmuls, as it calls itself.
  std::string library;
  std::optional<DeviceNotes> device = {};
  std::vector<MatmulTime> matmuls;
  std::vector<RefusedMatmul> refused;
  std::vector<MemoryTime> memory;
  std::vector<CollectiveTime> collectives;
  /// A team's job without work, or the smallest work of a device; a rendezvous of all ranks without
  /// moving anything (none if there is one).
  Timing launch, rendezvous;
};

/// Measures on this machine, and tells `progress` in a few words what it is about to do. Matmuls
/// are those of `PreparedMatmul.h`, cut for a team as a program's are; collectives run on the
/// local backend, between groups of all sizes that divide the number of ranks. Fails if memory is
/// short.
bool measure(const Plan &plan, const std::function<void(const std::string &)> &progress,
             Measurements &measurements, std::string &error);

// What both kinds of ranks are asked for.

inline constexpr CollectiveKind kKinds[] = {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                            CollectiveKind::ReduceScatter, CollectiveKind::AllToAll,
                                            CollectiveKind::Permute};

/// With less time than this there are fewer cases, and with less than that hardly any.
template <typename T> T byTime(const Plan &plan, T fewest, T few, T all) {
  return plan.seconds < 2 ? fewest : plan.seconds < 20 ? few : all;
}

/// Row-major C = A B.
Matmul makeMatmul(ElementType type, int64_t m, int64_t n, int64_t k);
/// Powers of 2 that divide the number of ranks, and that itself; not 1.
std::vector<int64_t> groupSizes(const Plan &plan);
/// Of the mesh [ranks / group, group], with an operand of `bytes` or a little less.
Collective makeCollective(CollectiveKind kind, int64_t group, int64_t bytes);
int64_t bytesOf(const Collective &collective);

/// As one JSON object, for `weft calibrate`.
std::string toJson(const Plan &plan, const Measurements &measurements);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEASUREMENTS_H
