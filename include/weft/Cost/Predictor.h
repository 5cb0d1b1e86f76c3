//===- Predictor.h - predicted times of kernels and collectives -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Predicts seconds from an op's operations and bytes and from a machine's file: from its
// measurements, `device.measured`, if it has any of the kind, else from its data sheet:
//
//   matmul       operations / rate(m, n, k), where the rate is interpolated between
//                measured shapes, else the peak; at least bytes / memory rate. In FP8, if
//                only BF16 was measured, that rate times the ratio of the two peaks. In 16 bits,
//                TF32 and FP8 times `unaligned_share` if rows are unaligned
//   kernel       the larger of operations / rate(kind, precision) and bytes / rate(kind,
//                precision), where these are measured, else the peak and the memory
//                rate(bytes); kernels that read BF16 have the rates of float32, in which
//                they compute, unless measured. The rate of operations of attention that a
//                library computes, in 16 bits, is interpolated between measured positions
//                and features
//   both         plus `launch_seconds`, from the end of one to the beginning of the next, and
//                `kernel_seconds`, in which a kernel begins and ends
//   collective   time(kind, group, bytes), interpolated between measured sizes; below the
//                smallest its time, beyond the largest in proportion to bytes. For other
//                groups, the time of the group with the nearest number of ranks, scaled like
//                the formulas below: within a node by the bytes that a rank sends, across
//                nodes by the whole formula, for a group with equally many ranks on a node
//
// If no such group was measured, a collective of n ranks with operands of b bytes takes
// `rendezvous_seconds`, if measured, and the following. Within a node, where every device reaches
// every other over a link of latency a and bandwidth w, by recursive halving and doubling (R.
// Thakur, R. Rabenseifner, W. Gropp, Optimization of collective communication operations in MPICH,
// 2005; the factors of b / w are those of nccl-tests' bus bandwidth):
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
// A permute between nodes takes the link between them. A transfer takes as long as a permute of its
// two ranks, measured or not: either is one message from rank to rank. docs/Machines.md compares
// predictions with measurements. A Predictor is immutable: any number of threads may call it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COST_PREDICTOR_H
#define WEFT_COST_PREDICTOR_H

#include "weft-rt/Program.h"
#include "weft/Cost/Interpolation.h"
#include "weft/Description/Machine.h"

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::cost {

/// A group of ranks that communicate.
struct Group {
  int64_t ranks = 1;
  /// Nodes that its ranks are spread over, evenly.
  int64_t nodes = 1;

  bool operator==(const Group &) const = default;
  bool crossesNodes() const { return nodes > 1; }
  double ranksPerNode() const { return double(ranks) / double(nodes); }
};

/// Returns the group over `axes` of a mesh that lies on the most nodes. Ranks fill one node of
/// `devicesPerNode` after another, the last axis varying fastest, so groups of the same number of
/// ranks may lie on different numbers of nodes. `firstRank` is the number of the mesh's first rank.
Group placeGroup(std::span<const int64_t> mesh, std::span<const uint32_t> axes,
                 int64_t devicesPerNode, int64_t firstRank = 0);
/// Returns the same among the groups of the ranks at one place in each of `classes`, which have
/// `ranksPerClass` ranks each, one class's after the other's.
Group placeAcross(std::span<const uint32_t> classes, int64_t ranksPerClass, int64_t devicesPerNode);

/// Whether the rows of a matmul's matrix, and the matrices of a batch, begin at multiples of
/// `kRowBytes` if the first row does.
enum class Rows { Aligned, Unaligned };
inline constexpr int64_t kRowBytes = 16;

/// Returns the alignment of the rows of A, B and C. A matrix of one row is aligned.
std::array<Rows, 3> rowsOfMatrices(const rt::Matmul &matmul);
/// Returns the worst of these.
Rows rowsOf(const rt::Matmul &matmul);

/// The sizes by which a library's rate of attention varies.
struct AttentionShape {
  int64_t positions = 0; ///< Keys of a sequence.
  int64_t features = 0;  ///< Of a head.
};

class Predictor {
public:
  explicit Predictor(const desc::MachineSpec &machine);

  /// Returns the seconds of `batch` matmuls of m x k and k x n matrices that read and write `bytes`
  /// in all.
  double matmul(desc::Precision precision, int64_t m, int64_t n, int64_t k, int64_t batch,
                double bytes, Rows rows = Rows::Aligned) const;

  /// Returns seconds that a matmul of `flops` operations takes at least, in whatever shape.
  double leastMatmul(desc::Precision precision, double flops) const;

  /// Returns the seconds of a kernel of the op `kind` that reads `precision`. Attention that a
  /// library computes has a shape; the compiler's own kernels have none.
  double kernel(std::string_view kind, desc::Precision precision, double flops, double bytes,
                std::optional<AttentionShape> shape = std::nullopt) const;

  /// Returns the seconds of a collective in which each rank has an operand of `bytes`; 0 for a
  /// group of one.
  double collective(rt::CollectiveKind kind, Group group, double bytes) const;

  /// Returns the seconds of a rendezvous of the group without moving data.
  double rendezvous(Group group) const;

  int64_t devicesPerNode() const { return machine.devicesPerNode; }
  double memoryBytes() const { return double(machine.device.memoryBytes); }
  /// Returns true if there is a rate for FP8 matmuls.
  bool multipliesBytes() const { return machine.device.peakFlopsF8.has_value(); }

private:
  void addBytesByBF16();
  double memorySeconds(double bytes) const;
  double fixedSeconds() const;
  double peak(desc::Precision precision) const;
  /// Returns the measured rates of matmuls, or null if nothing was measured.
  const std::vector<ShapePoint> *matmulsOf(desc::Precision precision) const;
  double byLinks(rt::CollectiveKind kind, Group group, double bytes) const;

  desc::MachineSpec machine;
  /// The measurements of one kind of collective in one group.
  struct Curve {
    Group group;
    std::vector<Point> points; ///< Seconds over bytes, ascending.
  };
  const Curve *nearestCurve(rt::CollectiveKind kind, Group group) const;

  /// The measured rates of one kind of kernel that reads one format.
  struct KernelRates {
    std::vector<ShapePoint> flopsByShape; ///< The sides are positions, features and 1.
    std::optional<double> flops, bytesPerSecond;

    std::optional<double> flopsOf(std::optional<AttentionShape> shape) const;
  };
  /// Returns null if nothing was measured.
  const KernelRates *ratesOf(std::string_view kind, desc::Precision precision) const;

  std::map<desc::Precision, std::vector<ShapePoint>> matmuls;
  std::map<desc::Precision, std::map<std::string, KernelRates, std::less<>>> kernels;
  std::vector<Point> memory;
  std::map<rt::CollectiveKind, std::vector<Curve>> collectives;
};

} // namespace weft::cost

#endif // WEFT_COST_PREDICTOR_H
