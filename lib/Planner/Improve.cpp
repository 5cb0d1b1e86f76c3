//===- Improve.cpp - small changes for the better -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <cmath>

namespace weft::planner {

namespace {

class Improvement {
public:
  Improvement(const Energies &energies, const Energies &bytes, double limit, Choice &choice)
      : energies(energies), bytes(bytes), limit(limit), choice(choice), held(bytes.of(choice)) {}

  void run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t node = 0; node < energies.nodes.size(); ++node) {
        changed |= moveNode(node);
      }
      for (const Pair &pair : energies.pairs) {
        changed |= movePair(pair);
      }
    }
  }

private:
  bool moveNode(uint32_t node) {
    Choice trial = choice;
    begin(around(energies, choice, node), around(bytes, choice, node));
    for (trial[node] = 0; trial[node] < energies.options(node); ++trial[node]) {
      consider(trial, around(energies, trial, node), around(bytes, trial, node));
    }
    return take();
  }

  bool movePair(const Pair &pair) {
    auto both = [&](const Energies &numbers, const Choice &of) {
      // What lies between the two is in the sum of each, and has to be so only once.
      return around(numbers, of, pair.a) + around(numbers, of, pair.b, &pair);
    };
    Choice trial = choice;
    begin(both(energies, choice), both(bytes, choice));
    for (trial[pair.a] = 0; trial[pair.a] < energies.options(pair.a); ++trial[pair.a]) {
      for (trial[pair.b] = 0; trial[pair.b] < energies.options(pair.b); ++trial[pair.b]) {
        consider(trial, both(energies, trial), both(bytes, trial));
      }
    }
    return take();
  }

  void begin(double energy, double size) {
    before = bestEnergy = energy;
    sizeBefore = size;
    best = choice;
  }

  void consider(const Choice &trial, double energy, double size) {
    // Not for a gain that may be rounding, or there would be no end.
    bool fits = !std::isfinite(held) || held - sizeBefore + size <= limit;
    if (energy < bestEnergy * (1 - 1e-12) && fits) {
      bestEnergy = energy;
      best = trial;
    }
  }

  bool take() {
    if (bestEnergy == before) {
      return false;
    }
    choice = best;
    held = bytes.of(choice);
    return true;
  }

  /// All of `numbers` that `node` takes part in, but for one pair.
  static double around(const Energies &numbers, const Choice &of, uint32_t node,
                       const Pair *without = nullptr) {
    double sum = numbers.nodes[node][of[node]];
    for (uint32_t number : numbers.pairsOf[node]) {
      const Pair &pair = numbers.pairs[number];
      if (!without || pair.a != without->a || pair.b != without->b) {
        sum += numbers.at(pair, of[pair.a], of[pair.b]);
      }
    }
    return sum;
  }

  const Energies &energies, &bytes;
  const double limit;
  Choice &choice;
  Choice best;
  double held, before = 0, bestEnergy = 0, sizeBefore = 0;
};

} // namespace

void improve(const Energies &energies, const Energies &bytes, double limit, Choice &choice) {
  Improvement(energies, bytes, limit, choice).run();
}

} // namespace weft::planner
