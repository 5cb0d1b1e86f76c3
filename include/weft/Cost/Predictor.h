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
//   product      operations / rate(m, n, k), where the rate is interpolated between
//                measured shapes, else the peak; at least bytes / memory rate
//   kernel       the larger of operations / rate(kind), where that was measured, else
//                the peak, and bytes / memory rate(bytes)
//   both         plus `launch_seconds`
//   collective   time(kind, ranks, bytes) between measured sizes; below the smallest
//                its time, beyond the largest in proportion to bytes. For a group of
//                ranks that was not measured, that of the nearest number of ranks,
//                scaled as the formulas below scale
//
// Without measured collectives a group of n ranks with operands of b bytes on a link of
// latency a and bandwidth w takes, by the ring algorithms (R. Thakur, R. Rabenseifner,
// W. Gropp, Optimization of collective communication operations in MPICH, 2005; the same
// factors as nccl-tests' bus bandwidth):
//
//   all-reduce       2 (n - 1) (a + b / (n w))
//   reduce-scatter     (n - 1) (a + b / (n w))
//   all-gather         (n - 1) (a + b / w)
//   all-to-all         (n - 1) (a + b / (n w))
//
// The link is that between nodes as soon as a group has ranks of two nodes. A Predictor
// is immutable: any number of threads may ask it.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_COST_PREDICTOR_H
#define WEFT_COST_PREDICTOR_H

#include "weft/Cost/Interpolation.h"
#include "weft/Description/Machine.h"

#include <map>
#include <string_view>
#include <vector>

namespace weft::cost {

/// A group of ranks that communicate.
struct Group {
  int64_t ranks = 1;
  /// Whether it has ranks of several nodes.
  bool crossesNodes = false;
};

class Predictor {
public:
  explicit Predictor(const desc::MachineSpec &machine);

  /// `batch` products of m x k and k x n matrices that read and write `bytes` in all.
  double product(desc::Precision precision, int64_t m, int64_t n, int64_t k, int64_t batch,
                 double bytes) const;

  /// A kernel of the op `kind`.
  double kernel(std::string_view kind, desc::Precision precision, double flops, double bytes) const;

  /// A collective in which each rank has an operand of `bytes`; 0 for a group of one.
  double collective(desc::CollectiveKind kind, Group group, double bytes) const;

  /// A group that meets and moves nothing.
  double rendezvous(Group group) const;

private:
  double memorySeconds(double bytes) const;
  double peak(desc::Precision precision) const;
  double byLink(desc::CollectiveKind kind, Group group, double bytes) const;

  desc::MachineSpec machine;
  std::map<desc::Precision, std::vector<ShapePoint>> products;
  std::vector<Point> memory;
  /// By kind and ranks: seconds over bytes.
  std::map<desc::CollectiveKind, std::map<int64_t, std::vector<Point>>> collectives;
};

} // namespace weft::cost

#endif // WEFT_COST_PREDICTOR_H
