//===- Solve.cpp - the best choice, within a limit of memory --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Solve.h"

#include "SolveParts.h"

#include <algorithm>
#include <cmath>

namespace weft::planner {

namespace {

/// Part of the gap that a pass must close for another pass to follow.
constexpr double kWorthOfPass = 5e-3;

/// Part of the gap that a search must close for more passes to follow.
constexpr double kWorthOfSearch = 0.1;

/// Eliminations between passes may take 1 / kShort of the work of the last one.
constexpr size_t kShort = 16;

/// Part of the limit of memory that outweighs all seconds when the solver seeks the least memory.
constexpr double kOutweighs = 1e-4;

class Solver {
public:
  Solver(const Problem &problem, const SolveLimits &limits)
      : problem(problem), graph(problem), limits(limits), chains(problem) {}

  Solution run() {
    if (leastBytes() > problem.bytesLimit) {
      // Nothing fits: seeks the fastest of the choices with least bytes.
      solution.lowerBound = kInfinity;
      Energies smallest(problem, graph, 0);
      strikeLarger(smallest);
      Point least = at(0, std::move(smallest), {});
      if (least.seconds < kInfinity) {
        return std::move(solution);
      }
      chains.restart(least.messages, least.messages, 0); // Its bound excludes options.
    }
    Point fast = at(0, Energies(problem, graph, 0), {});
    solution.lowerBound = std::max(solution.lowerBound, fast.bound);
    if (fast.bytes > problem.bytesLimit) {
      withinLimit(std::move(fast));
    }
    return std::move(solution);
  }

private:
  /// The results at one price of memory.
  struct Point {
    double price = 0;
    Choice choice;
    double seconds = kInfinity, bytes = kInfinity;
    /// Lower bound of seconds + price * bytes.
    double bound = kInfinity;
    ChainBounds::Messages messages;
  };

  /// The sum of the least bytes of all nodes.
  double leastBytes() const {
    double sum = 0;
    for (const Node &node : problem.nodes) {
      sum += leastBytes(node);
    }
    return sum;
  }

  static double leastBytes(const Node &node) {
    double least = kInfinity;
    for (const Option &option : node.options) {
      least = option.seconds < kInfinity ? std::min(least, option.bytes) : least;
    }
    return least;
  }

  /// Strikes out all options of each node but those with the fewest bytes.
  void strikeLarger(Energies &energies) const {
    for (size_t node = 0; node < problem.nodes.size(); ++node) {
      double least = leastBytes(problem.nodes[node]);
      for (size_t option = 0; option < energies.nodes[node].size(); ++option) {
        if (problem.nodes[node].options[option].bytes > least) {
          energies.nodes[node][option] = kInfinity;
        }
      }
    }
  }

  /// Solves at one price. `energies` are at this price; `known` are choices to start from.
  Point at(double price, Energies energies, const std::vector<const Choice *> &known) {
    Point point;
    point.price = price;
    double energy = kInfinity;
    auto take = [&](Choice choice) {
      improve(energies, kInfinity, choice);
      if (double found = energies.of(choice); found < energy) {
        energy = found;
        point.choice = std::move(choice);
      }
    };
    for (const Choice *choice : known) {
      take(*choice);
    }
    bool exact = approach(energies, point.bound, energy, take);
    point.bound = exact ? energy : std::min(point.bound, energy);
    if (energy < kInfinity) {
      Evaluation cost = keep(point.choice);
      point.seconds = cost.seconds;
      point.bytes = cost.bytes;
    }
    point.messages = chains.messages();
    solution.optionsLeft = std::max(solution.optionsLeft, energies.optionsLeft());
    return point;
  }

  /// Solves at a price between those of two points.
  Point between(const Point &low, const Point &high, double price) {
    chains.restart(low.messages, high.messages, (price - low.price) / (high.price - low.price));
    return at(price, Energies(problem, graph, price), {&low.choice, &high.choice});
  }

  /// Passes messages, with searches whose better choices strike out more options, until the
  /// remaining options can be eliminated or passes gain nothing. Returns true if the best choice
  /// taken is optimal.
  template <typename Take>
  bool approach(Energies &energies, double &bound, const double &energy, const Take &take) {
    const size_t shortWork = limits.maxWork / kShort;
    bound = -kInfinity;
    double before = bound, gained = 0;
    size_t triedWith = SIZE_MAX;
    for (int pass = 0; pass < limits.maxPasses; ++pass) {
      if (size_t left = energies.optionsLeft(); double(left) < 0.95 * double(triedWith)) {
        triedWith = left;
        if (takeBest(energies, shortWork, take)) {
          return true;
        }
      }
      before = bound;
      bound = chains.pass(energies, energy);
      if (bound >= energy) {
        return true;
      }
      if (pass % 8 == 0) {
        take(chains.decode(energies));
      }
      gained = pass > 0 ? gained / 2 + (bound - before) / 2 : 0;
      double gap = energy - bound;
      bool isNear = pass > 0 && gap < limits.gap * std::abs(bound);
      if (isNear || (pass > 3 && gained < kWorthOfPass * gap)) {
        if (searchAround(energies, before, energy, shortWork, take)) {
          return true;
        }
        if (energy == kInfinity || energy - bound > (1 - kWorthOfSearch) * gap) {
          break;
        }
      }
    }
    if (takeBest(energies, limits.maxWork, take) ||
        searchAround(energies, before, energy, limits.maxWork, take)) {
      return true;
    }
    if (energy - bound > limits.gap * std::abs(bound)) {
      searchAmongBest(energies, take);
    }
    return false;
  }

  /// Takes the best choice of the remaining options, if its elimination needs at most `work` sums.
  template <typename Take> bool takeBest(const Energies &energies, size_t work, const Take &take) {
    std::optional<Elimination> best = eliminate(energies, work);
    if (best) {
      take(std::move(best->choice));
      solution.width = std::max(solution.width, best->width);
    }
    return best.has_value();
  }

  /// Takes the best choice among the options of the best messages, as many as `work` allows.
  /// `bound` is the bound before the last pass. Returns true if no other choice is better.
  template <typename Take>
  bool searchAround(const Energies &energies, double bound, double energy, size_t work,
                    const Take &take) {
    const double gap = energy - bound;
    double distance = std::min(gap, std::abs(bound));
    for (int tries = 0; tries < 10; ++tries, distance /= 4) {
      Energies near = energies;
      chains.restrictWithin(distance, near);
      if (takeBest(near, work, take)) {
        return distance >= gap;
      }
    }
    return false;
  }

  /// Takes the best choice among equally many options of each node. Options near the best of one
  /// node may fit none that are near the best of another.
  template <typename Take> void searchAmongBest(const Energies &energies, const Take &take) {
    for (size_t options = 64; options > 1; options /= 2) {
      Energies near = energies;
      chains.restrictTo(options, near);
      if (takeBest(near, limits.maxWork, take)) {
        return;
      }
    }
  }

  Evaluation keep(const Choice &choice) {
    Evaluation cost = evaluate(problem, choice);
    if (cost.faults.empty() && cost.seconds < solution.seconds) {
      solution.choice = choice;
      solution.seconds = cost.seconds;
      solution.bytes = cost.bytes;
    }
    if (cost.seconds < kInfinity && cost.bytes < solution.smallestBytes) {
      solution.smallest = choice;
      solution.smallestBytes = cost.bytes;
    }
    return cost;
  }

  /// An upper bound on the seconds of all allowed choices.
  double allSeconds() const {
    double sum = 0;
    auto addLargest = [&](double times, auto begin, auto end, auto seconds) {
      double largest = 0;
      for (auto at = begin; at != end; ++at) {
        largest = std::isfinite(seconds(*at)) ? std::max(largest, seconds(*at)) : largest;
      }
      sum += times * largest;
    };
    for (const Node &node : problem.nodes) {
      addLargest(1, node.options.begin(), node.options.end(),
                 [](const Option &option) { return option.seconds; });
    }
    for (const Edge &edge : problem.edges) {
      const SharedNumbers &table = problem.tables[edge.table].seconds;
      addLargest(edge.times, table.begin(), table.end(), [](double seconds) { return seconds; });
    }
    return sum;
  }

  /// Follows the lower hull of (bytes, seconds): the line through a point that is too large and one
  /// that fits gives the next price, until no point lies below it.
  void withinLimit(Point large) {
    // At this price a little memory outweighs all seconds, which still order choices of equal
    // bytes.
    double most = allSeconds(), highest = most / (kOutweighs * std::max(problem.bytesLimit, 1.0));
    chains.restart(large.messages, large.messages, 0);
    Point small = at(highest, Energies(problem, graph, highest), {});
    if ((small.bound - most) / highest > problem.bytesLimit) {
      solution.lowerBound = kInfinity;
      return;
    }
    for (int i = 0; i < limits.maxPrices && small.bytes < large.bytes; ++i) {
      double price = (small.seconds - large.seconds) / (large.bytes - small.bytes);
      if (!(price > 0) || !std::isfinite(price)) {
        break;
      }
      Point next = between(large, small, price);
      solution.lowerBound = std::max(solution.lowerBound, next.bound - price * problem.bytesLimit);
      double line = large.seconds + price * large.bytes;
      bool isBelow = next.seconds + price * next.bytes < line * (1 - 1e-9);
      (next.bytes > problem.bytesLimit ? large : small) = std::move(next);
      if (!isBelow) {
        break;
      }
    }
    refine(small.choice, large.choice);
    refine(Choice(solution.choice), large.choice);
  }

  /// Uses the remaining memory for faster parts of `large`, a choice that does not fit, and for
  /// small changes.
  void refine(const Choice &fitting, const Choice &large) {
    Energies seconds(problem, graph, 0);
    for (bool improvesFirst : {true, false}) {
      Choice choice = fitting;
      if (choice.empty()) {
        return;
      }
      if (improvesFirst) {
        improve(seconds, problem.bytesLimit, choice);
      }
      if (!large.empty()) {
        combine(problem, large, choice);
      }
      improve(seconds, problem.bytesLimit, choice);
      keep(choice);
    }
  }

  const Problem &problem;
  const Graph graph;
  const SolveLimits limits;
  ChainBounds chains;
  Solution solution;
};

} // namespace

Solution solve(const Problem &problem, const SolveLimits &limits) {
  return Solver(problem, limits).run();
}

Solution solveByTrying(const Problem &problem) {
  Solution solution;
  Choice choice(problem.nodes.size(), 0);
  for (size_t at = 0; at < choice.size();) {
    Evaluation cost = evaluate(problem, choice);
    if (cost.faults.empty() && cost.seconds < solution.seconds) {
      solution.choice = choice;
      solution.seconds = cost.seconds;
      solution.bytes = cost.bytes;
    }
    for (at = 0; at < choice.size() && ++choice[at] == problem.nodes[at].options.size(); ++at) {
      choice[at] = 0;
    }
  }
  solution.lowerBound = solution.seconds;
  return solution;
}

} // namespace weft::planner
