//===- Measured.cpp - checks the measurements of a machine ----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measured.h"

#include "Text.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

namespace weft::desc {

// The schema lists the kinds in the same order.
static_assert(std::size(rt::kGroupKinds) == proto::CollectiveTime::Kind_ARRAYSIZE);

const char *wordOf(rt::CollectiveKind kind) {
  return proto::CollectiveTime::Kind_Name(proto::CollectiveTime::Kind(kind)).c_str();
}

namespace detail {

/// The bounds of data sheets' rates.
static constexpr Bounds rate{.low = 0, .high = 1e18, .above = true};
static constexpr int64_t longestSide = int64_t(1) << 31, mostBytes = int64_t(1) << 50,
                         mostNodes = 1 << 16;

/// Checks machine_r8: adds an error if an earlier entry has the same key.
template <typename Key>
static void checkNew(std::set<Key> &seen, Key key, Fields &entry, const char *field,
                     const std::string &what) {
  if (!seen.insert(std::move(key)).second) {
    entry.error(field, "machine_r8", "expected one entry for each " + what + ", got a second one");
  }
}

static void checkMatmuls(const proto::Measured &measured, Fields &fields) {
  std::set<std::tuple<int, int64_t, int64_t, int64_t>> seen;
  for (int i = 0; i < measured.products_size(); ++i) {
    const proto::MatmulRate &matmul = measured.products(i);
    Fields entry = fields.nested("products", i);
    entry.required("machine_r7", {"precision", "m", "n", "k", "flops"});
    for (const char *side : {"m", "n", "k"}) {
      entry.integer(side, "machine_r4", 1, longestSide);
    }
    entry.real("flops", "machine_r4", rate);
    checkNew(seen, {int(matmul.precision()), matmul.m(), matmul.n(), matmul.k()}, entry, "m",
             "precision and shape");
  }
}

static void checkMemory(const proto::Measured &measured, Fields &fields) {
  std::set<int64_t> seen;
  for (int i = 0; i < measured.memory_size(); ++i) {
    Fields entry = fields.nested("memory", i);
    entry.required("machine_r7", {"bytes", "bytes_per_second"});
    entry.integer("bytes", "machine_r4", 1, mostBytes);
    entry.real("bytes_per_second", "machine_r4", rate);
    checkNew(seen, int64_t(measured.memory(i).bytes()), entry, "bytes", "number of bytes");
  }
}

static void checkKernels(const proto::Measured &measured, Fields &fields) {
  std::set<std::tuple<std::string, int, int64_t, int64_t>> seen;
  for (int i = 0; i < measured.kernels_size(); ++i) {
    const proto::KernelRate &kernel = measured.kernels(i);
    Fields entry = fields.nested("kernels", i);
    entry.required("machine_r7", {"kind", "precision"});
    if (!kernel.has_flops() && !kernel.has_bytes_per_second()) {
      entry.error("flops", "machine_r11", "missing, expected it or bytes_per_second");
    }
    if (kernel.has_positions() != kernel.has_features()) {
      entry.error(kernel.has_positions() ? "features" : "positions", "machine_r11",
                  "missing, expected positions and features together");
    }
    entry.label("kind", "machine_r4", 64, "_");
    entry.real("flops", "machine_r4", rate);
    entry.real("bytes_per_second", "machine_r4", rate);
    for (const char *side : {"positions", "features"}) {
      entry.integer(side, "machine_r4", 1, longestSide);
    }
    checkNew(seen, {kernel.kind(), int(kernel.precision()), kernel.positions(), kernel.features()},
             entry, "kind", "kind, precision, positions and features");
  }
}

/// Checks machine_r9 for one collective.
static void checkRanks(const proto::CollectiveTime &collective, Fields &entry,
                       int64_t devicesPerNode, bool hasCluster) {
  if (collective.nodes() > 1 && !hasCluster) {
    entry.refused("machine_r9", {"nodes"}, "where there is no link of scope CLUSTER");
    return;
  }
  if (!entry.integer("nodes", "machine_r4", 1, mostNodes) && entry.has("nodes")) {
    return;
  }
  if (devicesPerNode == 1 && collective.nodes() == 1) {
    entry.refused("machine_r9", {"ranks"}, "where devices_per_node is 1");
    return;
  }
  bool inRange = entry.integer("ranks", "machine_r9", 2, devicesPerNode * collective.nodes());
  if (inRange && collective.ranks() % collective.nodes() != 0) {
    entry.error("ranks", "machine_r9",
                "expected a multiple of nodes " + text(collective.nodes()) + ", got " +
                    text(collective.ranks()));
  }
}

static void checkCollectives(const proto::Measured &measured, Fields &fields,
                             int64_t devicesPerNode, bool hasCluster) {
  std::set<std::tuple<int, int64_t, int64_t, int64_t>> seen;
  for (int i = 0; i < measured.collectives_size(); ++i) {
    const proto::CollectiveTime &collective = measured.collectives(i);
    Fields entry = fields.nested("collectives", i);
    entry.required("machine_r7", {"kind", "ranks", "bytes", "seconds"});
    if (devicesPerNode > 0) {
      checkRanks(collective, entry, devicesPerNode, hasCluster);
    }
    entry.integer("bytes", "machine_r4", 1, mostBytes);
    entry.real("seconds", "machine_r4", {.low = 0, .high = 1e6, .above = true});
    checkNew(seen,
             {int(collective.kind()), collective.ranks(), collective.nodes(), collective.bytes()},
             entry, "bytes", "kind, ranks, nodes and bytes");
  }
}

void checkMeasured(const proto::Measured &measured, Fields fields, int64_t devicesPerNode,
                   bool hasCluster) {
  checkMatmuls(measured, fields);
  checkMemory(measured, fields);
  checkKernels(measured, fields);
  checkCollectives(measured, fields, devicesPerNode, hasCluster);
  fields.real("launch_seconds", "machine_r4", {.low = 0, .high = 1});
  fields.real("kernel_seconds", "machine_r4", {.low = 0, .high = 1});
  fields.real("rendezvous_seconds", "machine_r4", {.low = 0, .high = 1});
  fields.real("unaligned_share", "machine_r4", {.low = 0, .high = 1, .above = true});
  if (devicesPerNode == 1) {
    fields.refused("machine_r9", {"rendezvous_seconds"}, "where devices_per_node is 1");
  }
}

MeasuredSpec toSpec(const proto::Measured &measured) {
  MeasuredSpec spec;
  for (const proto::MatmulRate &matmul : measured.products()) {
    spec.matmuls.push_back(
        {Precision(matmul.precision()), matmul.m(), matmul.n(), matmul.k(), matmul.flops()});
  }
  for (const proto::MemoryRate &memory : measured.memory()) {
    spec.memory.push_back({memory.bytes(), memory.bytes_per_second()});
  }
  for (const proto::KernelRate &kernel : measured.kernels()) {
    KernelRate &rate = spec.kernels.emplace_back();
    rate.kind = kernel.kind();
    rate.precision = Precision(kernel.precision());
    if (kernel.has_flops()) {
      rate.flops = kernel.flops();
    }
    if (kernel.has_bytes_per_second()) {
      rate.bytesPerSecond = kernel.bytes_per_second();
    }
    if (kernel.has_positions()) {
      rate.positions = kernel.positions();
      rate.features = kernel.features();
    }
  }
  for (const proto::CollectiveTime &collective : measured.collectives()) {
    spec.collectives.push_back({rt::CollectiveKind(collective.kind()), collective.ranks(),
                                collective.bytes(), collective.seconds(), collective.nodes()});
  }
  spec.launchSeconds = measured.launch_seconds();
  spec.kernelSeconds = measured.kernel_seconds();
  if (measured.has_rendezvous_seconds()) {
    spec.rendezvousSeconds = measured.rendezvous_seconds();
  }
  spec.unalignedShare = measured.unaligned_share();
  return spec;
}

} // namespace detail

} // namespace weft::desc
