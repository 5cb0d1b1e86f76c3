//===- Predictor.h - how long work takes on a machine ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Seconds from what ops say of themselves (operations, bytes) and from what a machine's
// file says of the machine. Where `device.measured` has something of the kind it is
// taken, where not, the data sheet's numbers:
//
//   matmul      operations / rate(m, n, k), where the rate is interpolated between
//                measured shapes, else the peak; at least bytes / memory rate. In FP8,
//                where only bf16 was measured, that rate times the ratio of their peaks
//   kernel       the larger of operations / rate(kind, what it reads), where that was
//                measured, else the peak, and bytes / memory rate(bytes); what reads
//                bf16 computes in float32, unless it was measured
//   both         plus `launch_seconds`
//   collective   time(kind, group, bytes) between measured sizes; below the smallest
//                its time, beyond the largest in proportion to bytes. For a group that
//                was not measured, that of the nearest number of ranks, scaled as the
//                formulas below scale: within a node by what a rank sends, across nodes
//                by all of the formula, and then of a group with as many ranks on a node
//
// Where no such group was measured, one of n ranks with operands of b bytes takes
// `rendezvous_seconds`, where these were measured, and the following. Within a node, where every
// device reaches every other over a link of latency a and bandwidth w, by recursive halving and
// doubling (R. Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication
// operations in MPICH, 2005; the factors of b / w are those of nccl-tests' bus bandwidth):
//
//   reduce-scatter   ceil(log2 n) a + (n - 1) / n b / w
//   all-gather       ceil(log2 n) a + (n - 1) b / w
//   all-reduce       a reduce-scatter and an all-gather: 2 ceil(log2 n) a + 2 (n - 1) / n b / w
//   all-to-all       (n - 1) a + (n - 1) / n b / w
//   permute          a + b / w
//
// Between nodes all-gather and reduce-scatter go by rings, whose bytes are the same, in n - 1
// hops. Of a group on N nodes with m ranks each, a ring crosses between nodes N times, and
// there are m rings side by side, each through another rank's link; what a rank sends within
// its node goes on meanwhile. So with the links a, w within and A, W between nodes
//
//   latency          hops between nodes · A + hops within · a, of a ring's n - 1 hops the
//                    first min(N, n - 1)
//   bytes            the slower of sent / w within (where m > 1) and sent / (m W) between
//
// and all-to-all sends (n - m) / (n - 1) of its bytes, and hops, between nodes, by each
// rank's own link: sent / W. An all-reduce is one within each node, and one between nodes of
// what a rank then holds of its node's sum, b / m, in shards that the two pass on to each other,
// up and down two binary trees (P. Sanders, J. Speck, J. Traeff, Two-tree algorithms for full
// bandwidth broadcast, reduction and scan, 2009):
//
//   2 ceil(log2 N) A + the longer of all-reduce(m, b) within and 2 (N - 1) / N b / (m W) between
//
// A permute between nodes takes the link between them. docs/Machines.md says how near this comes. A
// Predictor is immutable: any number of threads may ask it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COST_PREDICTOR_H
#define WEFT_COST_PREDICTOR_H

#include "weft/Cost/Interpolation.h"
#include "weft/Description/Machine.h"

#include <map>
#include <span>
#include <string_view>
#include <vector>

namespace weft::cost {

/// A group of ranks that communicate.
struct Group {
  int64_t ranks = 1;
  /// Nodes that it has ranks on, as many on each.
  int64_t nodes = 1;

  bool operator==(const Group &) const = default;
  bool crossesNodes() const { return nodes > 1; }
  double ranksPerNode() const { return double(ranks) / double(nodes); }
};

/// The largest group over `axes` of a mesh whose ranks fill one node of `devicesPerNode` after
/// another, the last axis varying fastest: all have as many ranks, but some may lie on more nodes.
Group placeGroup(std::span<const int64_t> mesh, std::span<const uint32_t> axes,
                 int64_t devicesPerNode);

class Predictor {
public:
  explicit Predictor(const desc::MachineSpec &machine);

  /// `batch` matmuls of m x k and k x n matrices that read and write `bytes` in all.
  double matmul(desc::Precision precision, int64_t m, int64_t n, int64_t k, int64_t batch,
                double bytes) const;

  /// A kernel of the op `kind` that reads `precision`.
  double kernel(std::string_view kind, desc::Precision precision, double flops, double bytes) const;

  /// A collective in which each rank has an operand of `bytes`; 0 for a group of one.
  double collective(desc::CollectiveKind kind, Group group, double bytes) const;

  /// A group that meets and moves nothing.
  double rendezvous(Group group) const;

  int64_t devicesPerNode() const { return machine.devicesPerNode; }
  double memoryBytes() const { return double(machine.device.memoryBytes); }
  /// Whether there is a rate for FP8 matmuls.
  bool multipliesBytes() const { return machine.device.peakFlopsF8.has_value(); }

private:
  void addBytesByBF16();
  double memorySeconds(double bytes) const;
  double peak(desc::Precision precision) const;
  double byLinks(desc::CollectiveKind kind, Group group, double bytes) const;

  desc::MachineSpec machine;
  /// What was measured of one kind of collective in one group.
  struct Curve {
    Group group;
    std::vector<Point> points; ///< Seconds over bytes, ascending.
  };
  const Curve *nearestCurve(desc::CollectiveKind kind, Group group) const;

  std::map<desc::Precision, std::vector<ShapePoint>> matmuls;
  std::vector<Point> memory;
  std::map<desc::CollectiveKind, std::vector<Curve>> collectives;
};

} // namespace weft::cost

#endif // WEFT_COST_PREDICTOR_H
