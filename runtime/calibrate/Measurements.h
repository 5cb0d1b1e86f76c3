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
#include <string>

namespace weft::rt::calibrate {

/// What to measure.
struct Plan {
  /// Ranks that work at the same time, and threads of each.
  int64_t ranks = 1, threads = 1;
  /// Seconds that all of it may take, about.
  double seconds = 60;
};

struct ProductTime {
  Product product;
  Timing timing;
};

/// A kernel that touches `bytes`.
struct MemoryTime {
  int64_t bytes = 0;
  /// c = a; c = a + b; the sum of a. Each touches `bytes` in all.
  Timing copy, add, sum;
};

struct CollectiveTime {
  CollectiveKind kind = CollectiveKind::AllReduce;
  int64_t ranks = 0, bytes = 0;
  Timing timing;
};

struct Measurements {
  std::vector<ProductTime> products;
  std::vector<MemoryTime> memory;
  std::vector<CollectiveTime> collectives;
  /// A team's job without work; all ranks meeting without moving anything (none if there is one).
  Timing launch, rendezvous;
};

/// Measures on this machine, and tells `progress` in a few words what it is about to do. Products
/// are those of `core/PreparedProduct.h`, cut for a team as a program's are; collectives run on the local
/// backend, between groups of all sizes that divide the number of ranks. Fails if memory is short.
bool measure(const Plan &plan, const std::function<void(const std::string &)> &progress,
             Measurements &measurements, std::string &error);

/// As one JSON object, for `weft calibrate`.
std::string toJson(const Plan &plan, const Measurements &measurements);

} // namespace weft::rt::calibrate

#endif // WEFT_RT_CALIBRATE_MEASUREMENTS_H
