//===- Machine.h - the machine that a program is compiled for -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A MachineSpec holds the contents of a proto/weft/machine.proto that fulfils every rule of
// docs/Descriptions.md. The compiler never queries a device: it knows the machine only from here.
//
// The functions keep no state: any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_DESCRIPTION_MACHINE_H
#define WEFT_DESCRIPTION_MACHINE_H

#include "weft-rt/Collective.h"
#include "weft/Description/Diagnostic.h"
#include "weft/Description/Precision.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::desc {

/// C = A B with `m` rows and `n` columns, summed over `k`.
struct MatmulRate {
  Precision precision = Precision::F32;
  int64_t m = 0, n = 0, k = 0;
  double flops = 0; ///< Per second.
};

/// A kernel that reads and writes `bytes` of memory and computes little.
struct MemoryRate {
  int64_t bytes = 0;
  double bytesPerSecond = 0;
};

/// Kernels of the op `kind` that read `precision`; at least one of the two rates is known.
struct KernelRate {
  std::string kind;
  Precision precision = Precision::F32;
  std::optional<double> flops = std::nullopt;          ///< Per second.
  std::optional<double> bytesPerSecond = std::nullopt; ///< Read and written.
  /// Of attention, the keys of a sequence and the features of a head; both or neither.
  std::optional<int64_t> positions = std::nullopt, features = std::nullopt;
};

/// "ALL_REDUCE", ..., as in a machine's file, which has all kinds but transfers.
const char *wordOf(rt::CollectiveKind kind);

/// The time of a collective of `ranks` devices with an operand of `bytes` each. The devices are
/// spread evenly over `nodes` nodes.
struct CollectiveTime {
  rt::CollectiveKind kind = rt::CollectiveKind::AllReduce;
  int64_t ranks = 0, bytes = 0;
  double seconds = 0;
  int64_t nodes = 1;
};

/// Rates and times measured on a device while the other devices of its node do the same work. Each
/// list may be empty; entries are unique and in the order of the file.
struct MeasuredSpec {
  std::vector<MatmulRate> matmuls;
  std::vector<MemoryRate> memory;
  std::vector<KernelRate> kernels;
  std::vector<CollectiveTime> collectives;
  double launchSeconds = 0;
  /// From the beginning to the end of a kernel with almost nothing to do.
  double kernelSeconds = 0;
  std::optional<double> rendezvousSeconds;
  /// The rate of narrow matmuls of unaligned rows, relative to aligned ones.
  double unalignedShare = 1;
};

/// What CUDA takes of a device besides the program's own; none if the description gives no
/// number. proto/weft/machine.proto explains each field.
struct CudaSpec {
  std::optional<int64_t> multiprocessors, contextBytes, libraryBytes, communicatorBytes;
  int64_t collectiveMultiprocessors = 0;
  /// Returns true if the description says something of CUDA, so that devices are no hosts.
  bool isGiven() const {
    return multiprocessors || contextBytes || libraryBytes || communicatorBytes;
  }
  /// Returns the share of the device's rate that a collective takes from computation beside it.
  double collectiveShare() const {
    return double(collectiveMultiprocessors) / double(multiprocessors.value_or(1));
  }
};

/// One device; all devices of a machine are alike. One rank runs on one device.
struct DeviceSpec {
  std::string name;
  /// Peak floating-point operations per second, a multiply-add counting as two; none if the
  /// description gives no number for that precision.
  std::optional<double> peakFlopsF64;
  std::optional<double> peakFlopsF32;
  std::optional<double> peakFlopsBF16;
  std::optional<double> peakFlopsTF32;
  std::optional<double> peakFlopsF16;
  std::optional<double> peakFlopsF8;
  /// Memory that one rank may use.
  int64_t memoryBytes = 0;
  double memoryBandwidth = 0.0; ///< Bytes per second.
  int64_t cores = 1;
  MeasuredSpec measured;
  CudaSpec cuda;

  /// Returns the member above for `precision`.
  static std::optional<double> DeviceSpec::*peakOf(Precision precision);
  /// Returns the peak rate of `precision`. Without a rate for TF32 or F16, returns that of float32,
  /// in which these are then computed.
  std::optional<double> peakFlops(Precision precision) const;
};

/// The cost of sending n bytes from one device is latency + n / bandwidth.
struct LinkSpec {
  std::string name;
  double latency = 0.0;   ///< Seconds.
  double bandwidth = 0.0; ///< Bytes per second and device, in one direction.
};

struct MachineSpec {
  std::string name;
  int64_t nodes = 1;
  int64_t devicesPerNode = 1;
  DeviceSpec device;
  /// Between devices of one node; present if nodes have several devices.
  std::optional<LinkSpec> nodeLink;
  /// Between devices of different nodes; present if there are several nodes or may be (see
  /// withNodes).
  std::optional<LinkSpec> clusterLink;
  /// The text that this was parsed from, or empty.
  std::string text;

  int64_t devices() const { return nodes * devicesPerNode; }
};

/// Reads a text file of proto/weft/machine.proto. Fails if the file cannot be read, does not parse
/// or violates a rule, and then lists all errors.
Result<MachineSpec> loadMachine(const std::string &path);

/// As loadMachine, but reads `text`; `file` is only for diagnostics.
Result<MachineSpec> parseMachine(std::string_view text, const std::string &file = "machine");

/// Returns `machine`, and its text, with `nodes` nodes. Fails if `nodes` is not from 1 to 65536, or
/// if several nodes would have no link between them.
Result<MachineSpec> withNodes(MachineSpec machine, int64_t nodes);

} // namespace weft::desc

#endif // WEFT_DESCRIPTION_MACHINE_H
