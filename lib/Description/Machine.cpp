//===- Machine.cpp - the machine that a program is compiled for -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Description/Machine.h"

#include "Measured.h"
#include "Reader.h"
#include "Text.h"
#include "weft/machine.pb.h"

#include <algorithm>

namespace weft::desc {

using detail::Bounds;
using detail::Fields;

/// Rates are positive. A rate far above that of any device is a typing error.
static constexpr Bounds rate{.low = 0, .high = 1e18, .above = true};
static constexpr int64_t mostNodes = 1 << 16;

static void checkPeaks(const proto::Device &device, Fields &fields) {
  std::vector<proto::Precision> seen;
  for (int i = 0; i < device.peak_flops_size(); ++i) {
    const proto::PeakFlops &peak = device.peak_flops(i);
    Fields inner = fields.nested("peak_flops", i);
    inner.required("machine_r3", {"precision", "flops"});
    inner.real("flops", "machine_r4", rate);
    // machine_r5
    if (!peak.has_precision()) {
      continue;
    }
    if (std::find(seen.begin(), seen.end(), peak.precision()) != seen.end()) {
      inner.error("precision", "machine_r5",
                  "expected one entry for each precision, got a second one for " +
                      proto::Precision_Name(peak.precision()));
    }
    seen.push_back(peak.precision());
  }
  if (device.peak_flops().empty()) {
    fields.error("peak_flops", "machine_r5", "missing, expected at least one entry");
  }
}

static void checkDevice(const proto::Device &device, Fields fields) {
  fields.required("machine_r2", {"name"});
  fields.label("name", "machine_r2");
  fields.required("machine_r3", {"memory_bytes", "memory_bandwidth_bytes_per_second"});
  fields.integer("memory_bytes", "machine_r4", int64_t(1) << 20, int64_t(1) << 50);
  fields.real("memory_bandwidth_bytes_per_second", "machine_r4", rate);
  fields.integer("cores", "machine_r4", 1, 4096);
  if (device.has_cuda()) {
    Fields inner = fields.nested("cuda");
    inner.integer("multiprocessors", "machine_r4", 1, 1024);
    for (const char *name : {"context_bytes", "library_bytes", "communicator_bytes"}) {
      inner.integer(name, "machine_r4", 0, int64_t(1) << 40);
    }
    // Computation needs one of them.
    inner.integer("collective_multiprocessors", "machine_r4", 0,
                  std::max<int64_t>(device.cuda().multiprocessors(), 1) - 1);
  }
  checkPeaks(device, fields);
}

/// machine_r6: one link for each scope that the machine has or can be given. `count` is the name of
/// the number of ends that the scope joins.
static void checkScope(const proto::Machine &machine, Fields &fields, proto::Link::Scope scope,
                       const char *count, int64_t ends) {
  std::string name = proto::Link::Scope_Name(scope);
  int found = 0;
  for (int i = 0; i < machine.links_size(); ++i) {
    if (!machine.links(i).has_scope() || machine.links(i).scope() != scope) {
      continue;
    }
    if (ends == 1 && scope == proto::Link::NODE) {
      fields.nested("links", i)
          .refused("machine_r6", {"scope"}, "where " + std::string(count) + " is 1");
    } else if (++found == 2) {
      fields.nested("links", i)
          .error("scope", "machine_r6",
                 "expected one link of scope " + name + ", got a second one");
    }
  }
  if (ends > 1 && found == 0) {
    fields.error("links", "machine_r6",
                 "expected a link of scope " + name + " where " + count + " is " +
                     detail::text(ends) + ", got none");
  }
}

static void checkMachine(const proto::Machine &machine, Fields &fields) {
  // machine_r2
  fields.required("machine_r2", {"name"});
  fields.label("name", "machine_r2");
  // machine_r3
  fields.required("machine_r3", {"devices_per_node", "device"});
  // machine_r4
  fields.integer("nodes", "machine_r4", 1, mostNodes);
  bool perNode = fields.integer("devices_per_node", "machine_r4", 1, 1 << 10);
  if (machine.has_device()) {
    checkDevice(machine.device(), fields.nested("device"));
  }
  for (int i = 0; i < machine.links_size(); ++i) {
    Fields link = fields.nested("links", i);
    link.required("machine_r2", {"name"});
    link.label("name", "machine_r2");
    link.required("machine_r3", {"scope", "latency_seconds", "bandwidth_bytes_per_second"});
    link.real("latency_seconds", "machine_r4", {.low = 0, .high = 1});
    link.real("bandwidth_bytes_per_second", "machine_r4", rate);
  }
  if (machine.device().has_measured()) {
    bool hasCluster =
        std::any_of(machine.links().begin(), machine.links().end(),
                    [](const proto::Link &link) { return link.scope() == proto::Link::CLUSTER; });
    detail::checkMeasured(machine.device().measured(), fields.nested("device").nested("measured"),
                          perNode ? machine.devices_per_node() : 0, hasCluster);
  }
  if (perNode) {
    checkScope(machine, fields, proto::Link::NODE, "devices_per_node", machine.devices_per_node());
  }
  checkScope(machine, fields, proto::Link::CLUSTER, "nodes", machine.nodes());
}

std::optional<double> DeviceSpec::*DeviceSpec::peakOf(Precision precision) {
  switch (precision) {
  case Precision::F64:
    return &DeviceSpec::peakFlopsF64;
  case Precision::F32:
    return &DeviceSpec::peakFlopsF32;
  case Precision::BF16:
    return &DeviceSpec::peakFlopsBF16;
  case Precision::TF32:
    return &DeviceSpec::peakFlopsTF32;
  case Precision::F16:
    return &DeviceSpec::peakFlopsF16;
  case Precision::F8:
    break;
  }
  return &DeviceSpec::peakFlopsF8;
}

std::optional<double> DeviceSpec::peakFlops(Precision precision) const {
  const std::optional<double> &given = this->*peakOf(precision);
  bool isByF32 = precision == Precision::TF32 || precision == Precision::F16;
  return !given && isByF32 ? peakFlopsF32 : given;
}

static CudaSpec toSpec(const proto::Cuda &cuda) {
  CudaSpec spec;
  auto take = [](bool has, int64_t value) { return has ? std::optional(value) : std::nullopt; };
  spec.multiprocessors = take(cuda.has_multiprocessors(), cuda.multiprocessors());
  spec.contextBytes = take(cuda.has_context_bytes(), cuda.context_bytes());
  spec.libraryBytes = take(cuda.has_library_bytes(), cuda.library_bytes());
  spec.communicatorBytes = take(cuda.has_communicator_bytes(), cuda.communicator_bytes());
  spec.collectiveMultiprocessors = cuda.collective_multiprocessors();
  return spec;
}

static DeviceSpec toSpec(const proto::Device &device) {
  DeviceSpec spec;
  spec.name = device.name();
  for (const proto::PeakFlops &peak : device.peak_flops()) {
    spec.*DeviceSpec::peakOf(Precision(peak.precision())) = peak.flops();
  }
  spec.memoryBytes = device.memory_bytes();
  spec.memoryBandwidth = device.memory_bandwidth_bytes_per_second();
  spec.cores = device.cores();
  spec.measured = detail::toSpec(device.measured());
  spec.cuda = toSpec(device.cuda());
  return spec;
}

static MachineSpec resolve(const proto::Machine &machine, Fields &) {
  MachineSpec spec;
  spec.name = machine.name();
  spec.nodes = machine.nodes();
  spec.devicesPerNode = machine.devices_per_node();
  spec.device = toSpec(machine.device());
  for (const proto::Link &link : machine.links()) {
    (link.scope() == proto::Link::NODE ? spec.nodeLink : spec.clusterLink) =
        LinkSpec{link.name(), link.latency_seconds(), link.bandwidth_bytes_per_second()};
  }
  return spec;
}

Result<MachineSpec> parseMachine(std::string_view text, const std::string &file) {
  auto spec =
      detail::readDescription<proto::Machine>(text, file, "machine_r1", checkMachine, resolve);
  if (spec) {
    spec->text = text;
  }
  return spec;
}

Result<MachineSpec> loadMachine(const std::string &path) {
  return detail::loadDescription<MachineSpec>(path, parseMachine);
}

Result<MachineSpec> withNodes(MachineSpec machine, int64_t nodes) {
  // machine_r10
  auto error = [&](std::string message) {
    return Diagnostics{{{"--nodes", 0, 0}, "", "machine_r10", std::move(message)}};
  };
  if (nodes < 1 || nodes > mostNodes) {
    return error("expected a number from 1 to " + detail::text(mostNodes) + ", got " +
                 detail::text(nodes));
  }
  if (nodes > 1 && !machine.clusterLink) {
    return error("expected 1, as machine " + machine.name + " has no link of scope CLUSTER, got " +
                 detail::text(nodes));
  }
  machine.nodes = nodes;
  if (proto::Machine message;
      google::protobuf::TextFormat::ParseFromString(machine.text, &message)) {
    message.set_nodes(nodes);
    google::protobuf::TextFormat::PrintToString(message, &machine.text);
  }
  return machine;
}

} // namespace weft::desc
