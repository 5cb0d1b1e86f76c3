//===- Predictor.cpp - how long work takes on a machine -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Predictor.h"

#include <algorithm>
#include <cmath>

namespace weft::cost {

using desc::CollectiveKind;

Predictor::Predictor(const desc::MachineSpec &machine) : machine(machine) {
  const desc::MeasuredSpec &measured = machine.device.measured;
  for (const desc::ProductRate &rate : measured.products) {
    products[rate.precision].push_back(
        {{double(rate.m), double(rate.n), double(rate.k)}, rate.flops});
  }
  for (const desc::MemoryRate &rate : measured.memory) {
    memory.push_back({double(rate.bytes), rate.bytesPerSecond});
  }
  for (const desc::CollectiveTime &time : measured.collectives) {
    collectives[time.kind][time.ranks].push_back({double(time.bytes), time.seconds});
  }
}

double Predictor::peak(desc::Precision precision) const {
  // A machine that does not know the precision is refused where a recipe asks for it; what is
  // left, sums of step counters and such, takes next to nothing at any rate.
  return machine.device.peakFlops(precision).value_or(1e9);
}

double Predictor::memorySeconds(double bytes) const {
  double rate =
      memory.empty() || bytes <= 0 ? machine.device.memoryBandwidth : interpolate(memory, bytes);
  return bytes / rate;
}

double Predictor::product(desc::Precision precision, int64_t m, int64_t n, int64_t k, int64_t batch,
                          double bytes) const {
  double flops = 2.0 * double(m) * double(n) * double(k) * double(batch);
  auto measured = products.find(precision);
  double rate = measured == products.end() || flops == 0
                    ? peak(precision)
                    : interpolate(measured->second, {double(m), double(n), double(k)});
  return std::max(flops / rate, memorySeconds(bytes)) + machine.device.measured.launchSeconds;
}

double Predictor::kernel(std::string_view kind, desc::Precision precision, double flops,
                         double bytes) const {
  double rate = peak(precision);
  for (const desc::KernelRate &measured : machine.device.measured.kernels) {
    if (measured.kind == kind && measured.precision == precision) {
      rate = measured.flops;
    }
  }
  return std::max(flops / rate, memorySeconds(bytes)) + machine.device.measured.launchSeconds;
}

/// What one rank sends, in operands, and in how many messages: the formulas of the header.
static double messages(CollectiveKind kind, double ranks) {
  return (kind == CollectiveKind::AllReduce ? 2 : 1) * (ranks - 1);
}
static double operandsSent(CollectiveKind kind, double ranks) {
  return messages(kind, ranks) * (kind == CollectiveKind::AllGather ? 1 : 1 / ranks);
}

double Predictor::byLink(CollectiveKind kind, Group group, double bytes) const {
  const auto &link = group.crossesNodes ? machine.clusterLink : machine.nodeLink;
  if (!link) {
    return 0; // A machine without the link has no such group.
  }
  double ranks = double(group.ranks);
  return messages(kind, ranks) * link->latency +
         operandsSent(kind, ranks) * bytes / link->bandwidth;
}

/// On straight lines between measured sizes, which a cost of alpha + beta bytes is; below the
/// smallest its time, since that is all latency, beyond the largest in proportion.
static double timeOf(std::vector<Point> points, double bytes) {
  std::sort(points.begin(), points.end(), [](const Point &a, const Point &b) { return a.x < b.x; });
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

double Predictor::collective(CollectiveKind kind, Group group, double bytes) const {
  if (group.ranks <= 1) {
    return 0;
  }
  auto measured = collectives.find(kind);
  if (group.crossesNodes || measured == collectives.end()) {
    return byLink(kind, group, bytes);
  }
  auto distance = [&](int64_t ranks) { return std::abs(std::log(double(ranks) / group.ranks)); };
  auto nearest = std::min_element(
      measured->second.begin(), measured->second.end(),
      [&](const auto &a, const auto &b) { return distance(a.first) < distance(b.first); });
  double scale =
      operandsSent(kind, double(group.ranks)) / operandsSent(kind, double(nearest->first));
  return timeOf(nearest->second, bytes) * scale;
}

double Predictor::rendezvous(Group group) const {
  if (group.ranks <= 1) {
    return 0;
  }
  if (group.crossesNodes) {
    return byLink(CollectiveKind::AllGather, group, 0);
  }
  double latency = machine.nodeLink ? machine.nodeLink->latency : 0;
  return machine.device.measured.rendezvousSeconds.value_or(latency);
}

} // namespace weft::cost
