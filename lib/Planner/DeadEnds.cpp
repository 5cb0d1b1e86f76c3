//===- DeadEnds.cpp - options that no best choice needs -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <numeric>

namespace weft::planner {

namespace {

/// Rivals tried against an option: most are beaten by one of the few that cost least by themselves.
constexpr size_t kRivals = 24;

class DeadEnds {
public:
  explicit DeadEnds(const Energies &energies) : energies(energies) {
    for (const std::vector<double> &node : energies.nodes) {
      kept.emplace_back(node.size());
      std::iota(kept.back().begin(), kept.back().end(), 0);
    }
  }

  std::vector<std::vector<uint32_t>> run() {
    // What is struck out at one node may let another one's options go.
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t node = 0; node < kept.size(); ++node) {
        changed |= strike(node);
      }
    }
    return kept;
  }

private:
  bool strike(uint32_t node) {
    std::vector<uint32_t> rivals = kept[node];
    std::vector<double> leasts(energies.options(node));
    for (uint32_t option : rivals) {
      leasts[option] = least(node, option);
    }
    std::sort(rivals.begin(), rivals.end(), [&](uint32_t a, uint32_t b) {
      return std::pair(leasts[a], a) < std::pair(leasts[b], b);
    });
    rivals.resize(std::min(rivals.size(), kRivals));
    size_t before = kept[node].size();
    for (uint32_t option : std::vector<uint32_t>(kept[node])) {
      // One that is gone strikes out nothing more, so the last one stays.
      bool isBeaten = std::any_of(rivals.begin(), rivals.end(), [&](uint32_t rival) {
        return rival != option && beats(node, rival, option);
      });
      if (isBeaten) {
        std::erase(kept[node], option);
        std::erase(rivals, option);
      }
    }
    return kept[node].size() < before;
  }

  /// The energy of `option` at the least.
  double least(uint32_t node, uint32_t option) const {
    double sum = energies.nodes[node][option];
    for (uint32_t number : energies.pairsOf[node]) {
      const Pair &pair = energies.pairs[number];
      uint32_t other = pair.a == node ? pair.b : pair.a;
      double best = kInfinity;
      for (uint32_t there : kept[other]) {
        best = std::min(best, between(pair, node, option, there));
      }
      sum += best;
    }
    return sum;
  }

  /// Whether `rival` is no worse than `option` whatever the neighbours choose; of two that are
  /// equal the lower number stays, so that they do not strike out each other.
  bool beats(uint32_t node, uint32_t rival, uint32_t option) const {
    double gain = difference(energies.nodes[node][option], energies.nodes[node][rival]);
    for (uint32_t number : energies.pairsOf[node]) {
      const Pair &pair = energies.pairs[number];
      uint32_t other = pair.a == node ? pair.b : pair.a;
      double least = kInfinity;
      for (uint32_t there : kept[other]) {
        least = std::min(least, difference(between(pair, node, option, there),
                                           between(pair, node, rival, there)));
      }
      if (least == -kInfinity) {
        return false;
      }
      gain += least;
    }
    return gain > 0 || (gain == 0 && rival < option);
  }

  /// What `rival` saves; where both are forbidden that decides nothing.
  static double difference(double option, double rival) {
    return option == kInfinity ? kInfinity : option - rival;
  }

  double between(const Pair &pair, uint32_t node, uint32_t option, uint32_t there) const {
    return pair.a == node ? energies.at(pair, option, there) : energies.at(pair, there, option);
  }

  const Energies &energies;
  std::vector<std::vector<uint32_t>> kept;
};

} // namespace

std::vector<std::vector<uint32_t>> strikeDeadEnds(const Energies &energies) {
  return DeadEnds(energies).run();
}

} // namespace weft::planner
