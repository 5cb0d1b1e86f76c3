//===- Predictor.cpp - predicted times of kernels and collectives ---------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Predictor.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

namespace weft::cost {

using rt::CollectiveKind;

/// Returns the group on the most nodes among those of the ranks `first` + `members`, for each
/// first.
static Group placeWidest(std::span<const int64_t> members, std::span<const int64_t> firsts,
                         int64_t devicesPerNode) {
  Group group{int64_t(members.size())};
  // A group's position in its first node decides how many nodes it lies on.
  std::set<int64_t> tried;
  for (int64_t first : firsts) {
    if (tried.insert(first % devicesPerNode).second) {
      std::set<int64_t> nodes;
      for (int64_t member : members) {
        nodes.insert((first + member) / devicesPerNode);
      }
      group.nodes = std::max(group.nodes, int64_t(nodes.size()));
    }
  }
  return group;
}

Group placeGroup(std::span<const int64_t> mesh, std::span<const uint32_t> axes,
                 int64_t devicesPerNode, int64_t firstRank) {
  std::vector<rt::Axis> named;
  for (int64_t size : mesh) {
    named.push_back({"", size});
  }
  std::vector<int64_t> members = rt::groupOver(axes, 0, named).ranks;
  int64_t ranks = std::accumulate(mesh.begin(), mesh.end(), int64_t(1), std::multiplies<>());
  if (firstRank % devicesPerNode + ranks <= devicesPerNode) {
    return {int64_t(members.size())};
  }
  // The groups differ only by the coordinates on the other axes.
  std::vector<uint32_t> others;
  for (uint32_t axis = 0; axis < mesh.size(); ++axis) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
      others.push_back(axis);
    }
  }
  std::vector<int64_t> firsts = rt::groupOver(others, 0, named).ranks;
  for (int64_t &first : firsts) {
    first += firstRank;
  }
  return placeWidest(members, firsts, devicesPerNode);
}

Group placeAcross(std::span<const uint32_t> classes, int64_t ranksPerClass,
                  int64_t devicesPerNode) {
  std::vector<int64_t> members, firsts(static_cast<size_t>(ranksPerClass));
  for (uint32_t each : classes) {
    members.push_back(each * ranksPerClass);
  }
  std::iota(firsts.begin(), firsts.end(), 0);
  return placeWidest(members, firsts, devicesPerNode);
}

std::array<Rows, 3> rowsOfMatrices(const rt::Matmul &matmul) {
  auto rowsOf = [&](rt::ElementType type, int64_t rows, int64_t leading, int64_t stride) {
    auto bytes = int64_t(rt::sizeOf(type));
    bool areAligned = (rows == 1 || leading * bytes % kRowBytes == 0) &&
                      (matmul.batch == 1 || stride * bytes % kRowBytes == 0);
    return areAligned ? Rows::Aligned : Rows::Unaligned;
  };
  int64_t rowsOfA = matmul.transposeA ? matmul.k : matmul.m;
  int64_t rowsOfB = matmul.transposeB ? matmul.n : matmul.k;
  return {rowsOf(matmul.type, rowsOfA, matmul.lda, matmul.strideA),
          rowsOf(matmul.typeOfB(), rowsOfB, matmul.ldb, matmul.strideB),
          rowsOf(matmul.resultType(), matmul.m, matmul.ldc, matmul.strideC)};
}

Rows rowsOf(const rt::Matmul &matmul) {
  std::array<Rows, 3> rows = rowsOfMatrices(matmul);
  return std::count(rows.begin(), rows.end(), Rows::Unaligned) > 0 ? Rows::Unaligned
                                                                   : Rows::Aligned;
}

/// Returns true if devices multiply such numbers on tensor cores only.
static bool isForTensorCores(desc::Precision precision) {
  return precision != desc::Precision::F64 && precision != desc::Precision::F32;
}

static std::array<double, 3> sidesOf(AttentionShape shape) {
  return {double(shape.positions), double(shape.features), 1};
}

Predictor::Predictor(const desc::MachineSpec &machine) : machine(machine) {
  const desc::MeasuredSpec &measured = machine.device.measured;
  for (const desc::MatmulRate &rate : measured.matmuls) {
    matmuls[rate.precision].push_back(
        {{double(rate.m), double(rate.n), double(rate.k)}, rate.flops});
  }
  addBytesByBF16();
  for (const desc::KernelRate &rate : measured.kernels) {
    KernelRates &rates = kernels[rate.precision][rate.kind];
    if (rate.positions && rate.flops) {
      rates.flopsByShape.push_back(
          {sidesOf({*rate.positions, rate.features.value_or(1)}), *rate.flops});
    } else if (rate.flops) {
      rates.flops = rate.flops;
    }
    if (rate.bytesPerSecond) {
      rates.bytesPerSecond = rate.bytesPerSecond;
    }
  }
  for (const desc::MemoryRate &rate : measured.memory) {
    memory.push_back({double(rate.bytes), rate.bytesPerSecond});
  }
  for (const desc::CollectiveTime &time : measured.collectives) {
    std::vector<Curve> &curves = collectives[time.kind];
    Group group{time.ranks, time.nodes};
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const Curve &known) { return known.group == group; });
    if (curve == curves.end()) {
      curve = curves.insert(curve, {group, {}});
    }
    curve->points.push_back({double(time.bytes), time.seconds});
  }
  for (auto &[kind, curves] : collectives) {
    for (Curve &curve : curves) {
      std::sort(curve.points.begin(), curve.points.end(),
                [](const Point &a, const Point &b) { return a.x < b.x; });
    }
  }
}

/// Comparing a peak of FP8 with measured rates of BF16 would overrate FP8.
void Predictor::addBytesByBF16() {
  const auto &bytes = machine.device.peakFlopsF8, &numbers = machine.device.peakFlopsBF16;
  auto measured = matmuls.find(desc::Precision::BF16);
  if (measured == matmuls.end() || !bytes || !numbers || matmuls.count(desc::Precision::F8)) {
    return;
  }
  std::vector<ShapePoint> points = measured->second;
  for (ShapePoint &point : points) {
    point.y *= *bytes / *numbers;
  }
  matmuls[desc::Precision::F8] = std::move(points);
}

double Predictor::peak(desc::Precision precision) const {
  // Recipes whose precision has no rate are refused. The other uses, such as sums of step counters,
  // take almost no time at any rate.
  return machine.device.peakFlops(precision).value_or(1e9);
}

double Predictor::memorySeconds(double bytes) const {
  double rate =
      memory.empty() || bytes <= 0 ? machine.device.memoryBandwidth : interpolate(memory, bytes);
  return bytes / rate;
}

double Predictor::fixedSeconds() const {
  return machine.device.measured.launchSeconds + machine.device.measured.kernelSeconds;
}

const std::vector<ShapePoint> *Predictor::matmulsOf(desc::Precision precision) const {
  auto measured = matmuls.find(precision);
  if (measured == matmuls.end() && !(machine.device.*desc::DeviceSpec::peakOf(precision)) &&
      (precision == desc::Precision::TF32 || precision == desc::Precision::F16)) {
    measured = matmuls.find(desc::Precision::F32);
  }
  return measured == matmuls.end() ? nullptr : &measured->second;
}

double Predictor::leastMatmul(desc::Precision precision, double flops) const {
  double rate = peak(precision);
  if (const std::vector<ShapePoint> *measured = matmulsOf(precision)) {
    // Rates of other shapes are interpolated: they lie between the measured ones.
    rate = std::ranges::max(*measured, {}, &ShapePoint::y).y;
  }
  return flops / rate;
}

double Predictor::matmul(desc::Precision precision, int64_t m, int64_t n, int64_t k, int64_t batch,
                         double bytes, Rows rows) const {
  double flops = 2.0 * double(m) * double(n) * double(k) * double(batch);
  const std::vector<ShapePoint> *measured = matmulsOf(precision);
  double rate = !measured || flops == 0 ? peak(precision)
                                        : interpolate(*measured, {double(m), double(n), double(k)});
  if (rows == Rows::Unaligned && isForTensorCores(precision)) {
    rate *= machine.device.measured.unalignedShare;
  }
  return std::max(flops / rate, memorySeconds(bytes)) + fixedSeconds();
}

std::optional<double> Predictor::KernelRates::flopsOf(std::optional<AttentionShape> shape) const {
  return shape && !flopsByShape.empty() ? interpolate(flopsByShape, sidesOf(*shape)) : flops;
}

const Predictor::KernelRates *Predictor::ratesOf(std::string_view kind,
                                                 desc::Precision precision) const {
  auto ofPrecision = kernels.find(precision);
  if (ofPrecision == kernels.end()) {
    return nullptr;
  }
  auto found = ofPrecision->second.find(kind);
  return found == ofPrecision->second.end() ? nullptr : &found->second;
}

double Predictor::kernel(std::string_view kind, desc::Precision precision, double flops,
                         double bytes, std::optional<AttentionShape> shape) const {
  std::optional<double> rate, memoryRate;
  auto look = [&](desc::Precision read) {
    if (const KernelRates *rates = ratesOf(kind, read)) {
      rate = rate ? rate : rates->flopsOf(shape);
      memoryRate = memoryRate ? memoryRate : rates->bytesPerSecond;
    }
  };
  look(precision);
  if (precision == desc::Precision::BF16 || precision == desc::Precision::F16) {
    look(desc::Precision::F32);
    // Libraries compute in 16 bits, and so, it is assumed, machines without a rate of float32.
    precision = machine.device.peakFlopsF32 && !shape ? desc::Precision::F32 : precision;
  }
  return std::max(flops / rate.value_or(peak(precision)),
                  memoryRate ? bytes / *memoryRate : memorySeconds(bytes)) +
         fixedSeconds();
}

/// The amount that one rank sends, in operands, and the number of its messages, by the formulas of
/// the header.
static double messages(CollectiveKind kind, double ranks) {
  return kind == CollectiveKind::Permute
             ? 1
             : (kind == CollectiveKind::AllReduce ? 2 : 1) * (ranks - 1);
}
static double operandsSent(CollectiveKind kind, double ranks) {
  bool sendsWhole = kind == CollectiveKind::AllGather || kind == CollectiveKind::Permute;
  return messages(kind, ranks) * (sendsWhole ? 1 : 1 / ranks);
}

/// Returns the number of levels of a binary tree over `count`.
static double levels(double count) { return std::ceil(std::log2(count)); }

/// Returns the hops of a group within a node: each halves or doubles the exchanged amount, if
/// possible.
static double hopsWithin(CollectiveKind kind, double ranks) {
  bool isDirect = kind == CollectiveKind::AllToAll || kind == CollectiveKind::Permute;
  return isDirect ? messages(kind, ranks)
                  : (kind == CollectiveKind::AllReduce ? 2 : 1) * levels(ranks);
}

/// Returns the share of a rank's messages that leave its node.
static double shareBetweenNodes(CollectiveKind kind, Group group) {
  double others = double(group.ranks) - 1;
  if (kind == CollectiveKind::Permute || group.ranks == group.nodes) {
    return 1;
  }
  return (kind == CollectiveKind::AllToAll ? double(group.ranks) - group.ranksPerNode()
                                           : double(group.nodes)) /
         others;
}

double Predictor::byLinks(CollectiveKind kind, Group group, double bytes) const {
  const auto &within = machine.nodeLink, &between = machine.clusterLink;
  double begin = machine.device.measured.rendezvousSeconds.value_or(0);
  double hops = messages(kind, double(group.ranks));
  double sent = operandsSent(kind, double(group.ranks)) * bytes;
  if (!group.crossesNodes()) {
    double near = hopsWithin(kind, double(group.ranks));
    return within ? begin + near * within->latency + sent / within->bandwidth : 0;
  }
  if (!between) {
    return 0; // A machine of one node has no such group.
  }
  if (kind == CollectiveKind::AllReduce) {
    double nodes = double(group.nodes), perNode = group.ranksPerNode();
    double inner = collective(kind, {int64_t(std::ceil(perNode)), 1}, bytes);
    double outer = begin + operandsSent(kind, nodes) * bytes / (perNode * between->bandwidth);
    return 2 * levels(nodes) * between->latency + std::max(inner, outer);
  }
  double far = shareBetweenNodes(kind, group), rings = group.ranksPerNode();
  bool hasNear = far < 1 && within;
  double latency = hops * (far * between->latency + (hasNear ? (1 - far) * within->latency : 0));
  // The bytes of a ring pass every link of the ring; those of an all-to-all pass either a near or a
  // far link.
  bool isRing = kind != CollectiveKind::AllToAll && kind != CollectiveKind::Permute;
  double farBytes = isRing ? sent / rings : sent * far,
         nearBytes = isRing ? sent : sent * (1 - far);
  return begin + latency +
         std::max(farBytes / between->bandwidth, hasNear ? nearBytes / within->bandwidth : 0);
}

/// Interpolates linearly between measured sizes, because the time is alpha + beta * bytes. Below
/// the smallest size it returns its time, which is all latency; beyond the largest, the time grows
/// in proportion.
static double timeOf(std::span<const Point> points, double bytes) {
  if (bytes <= points.front().x) {
    return points.front().y;
  }
  if (bytes >= points.back().x) {
    return points.back().y * bytes / points.back().x;
  }
  auto above = std::find_if(points.begin(), points.end(),
                            [&](const Point &point) { return point.x >= bytes; });
  auto below = above - 1;
  return below->y + (above->y - below->y) * (bytes - below->x) / (above->x - below->x);
}

const Predictor::Curve *Predictor::nearestCurve(CollectiveKind kind, Group group) const {
  auto measured = collectives.find(kind);
  if (measured == collectives.end()) {
    return nullptr;
  }
  const Curve *nearest = nullptr;
  auto distance = [&](const Curve &curve) {
    return std::abs(std::log(double(curve.group.ranks) / double(group.ranks)));
  };
  for (const Curve &curve : measured->second) {
    bool isAlike = curve.group.crossesNodes() == group.crossesNodes() &&
                   (!group.crossesNodes() || curve.group.ranksPerNode() == group.ranksPerNode());
    if (isAlike && (!nearest || distance(curve) < distance(*nearest))) {
      nearest = &curve;
    }
  }
  return nearest;
}

double Predictor::collective(CollectiveKind kind, Group group, double bytes) const {
  if (group.ranks <= 1) {
    return 0;
  }
  if (kind == CollectiveKind::Transfer) {
    kind = CollectiveKind::Permute;
  }
  const Curve *curve = nearestCurve(kind, group);
  if (!curve) {
    return byLinks(kind, group, bytes);
  }
  double time = timeOf(curve->points, bytes);
  if (curve->group == group) {
    return time;
  }
  if (!group.crossesNodes()) {
    return time * operandsSent(kind, double(group.ranks)) /
           operandsSent(kind, double(curve->group.ranks));
  }
  double ofCurve = byLinks(kind, curve->group, bytes);
  return ofCurve > 0 ? time * byLinks(kind, group, bytes) / ofCurve : time;
}

double Predictor::rendezvous(Group group) const {
  if (group.ranks <= 1) {
    return 0;
  }
  if (group.crossesNodes()) {
    return byLinks(CollectiveKind::AllGather, group, 0);
  }
  double latency = machine.nodeLink ? machine.nodeLink->latency : 0;
  return machine.device.measured.rendezvousSeconds.value_or(latency);
}

} // namespace weft::cost
