//===- ChainBounds.cpp - lower bounds by messages along chains ------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Why the bound holds. With messages m, the energy of a choice x is
//
//   sum over nodes  D(x)  +  sum over edges  T(x, y) - m(x) - m(y),   D = energy + all m to it
//
// for any messages m. On the way back, a node i sends over each edge e to an earlier node the
// message m(y) = min over x of share * (D(x) - d) - m(x) + T(x, y), less its minimum v, where d =
// min D. So T - m - m is at least v - share * (D(x) - d). As no node sends more than 1 / share
// messages, the energy is at least the sum of all d and v.
//
// Why options may be struck out. When a node is visited, its D(x) - d bounds how much option x adds
// to the bound of the 1 / share chains through the node. So a choice with option x has at least the
// energy bound + D(x) - d.
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <cmath>

namespace weft::planner {

/// The number of columns is padded to a multiple of this length of vectors.
static constexpr size_t kLanes = 4;

ChainBounds::ChainBounds(const Problem &problem) : problem(problem) {
  std::vector<double> earlier(problem.nodes.size(), 0), later(problem.nodes.size(), 0);
  for (const Edge &edge : problem.edges) {
    const Places *a = placesOf(edge.rows), *b = placesOf(edge.columns);
    atA.push_back({a, waysOf(edge.table, a, b, false), std::vector<double>(a->all.size(), 0)});
    atB.push_back({b, waysOf(edge.table, b, a, true), std::vector<double>(b->all.size(), 0)});
    ++later[std::min(edge.a, edge.b)];
    ++earlier[std::max(edge.a, edge.b)];
  }
  for (size_t node = 0; node < earlier.size(); ++node) {
    share.push_back(1 / std::max({earlier[node], later[node], 1.0}));
  }
}

const ChainBounds::Places *ChainBounds::placesOf(const std::vector<uint32_t> &ofOptions) {
  auto [known, isNew] = knownPlaces.try_emplace(ofOptions);
  if (isNew) {
    Places &places = known->second;
    places.all = ofOptions;
    std::sort(places.all.begin(), places.all.end());
    places.all.erase(std::unique(places.all.begin(), places.all.end()), places.all.end());
    for (uint32_t place : ofOptions) {
      auto at = std::lower_bound(places.all.begin(), places.all.end(), place);
      places.of.push_back(uint32_t(at - places.all.begin()));
    }
  }
  return &known->second;
}

const ChainBounds::Ways *ChainBounds::waysOf(uint32_t number, const Places *from, const Places *to,
                                             bool turned) {
  auto [known, isNew] = knownWays.try_emplace({number, from, to, turned});
  Ways &ways = known->second;
  if (!isNew) {
    return &ways;
  }
  const Table &table = problem.tables[number];
  std::vector<uint32_t> columns = to->all;
  for (size_t row = 0; table.isShortest && row < from->all.size(); ++row) {
    auto at = std::lower_bound(to->all.begin(), to->all.end(), from->all[row]);
    bool isThere = at != to->all.end() && *at == from->all[row];
    ways.own.push_back(uint32_t(isThere ? size_t(at - to->all.begin()) : columns.size()));
    if (!isThere) {
      columns.push_back(from->all[row]);
    }
  }
  ways.rows = from->all.size();
  ways.columns = (columns.size() + kLanes - 1) / kLanes * kLanes;
  ways.seconds.reserve(ways.rows * ways.columns);
  for (uint32_t row : from->all) {
    for (uint32_t column : columns) {
      ways.seconds.push_back(turned ? table.seconds[column * table.columns + row]
                                    : table.seconds[row * table.columns + column]);
    }
    ways.seconds.resize(ways.seconds.size() + ways.columns - columns.size(), kInfinity);
  }
  return &ways;
}

ChainBounds::Port &ChainBounds::portOf(uint32_t node, uint32_t edge) {
  return problem.edges[edge].a == node ? atA[edge] : atB[edge];
}

const ChainBounds::Port &ChainBounds::portOf(uint32_t node, uint32_t edge) const {
  return problem.edges[edge].a == node ? atA[edge] : atB[edge];
}

static uint32_t otherOf(const Edge &edge, uint32_t node) {
  return edge.a == node ? edge.b : edge.a;
}

void ChainBounds::sumAt(const Energies &energies, uint32_t node, std::vector<double> &sum) const {
  sum = energies.nodes[node];
  for (uint32_t edge : energies.graph.edgesOf[node]) {
    const Port &port = portOf(node, edge);
    const double *message = port.message.data();
    const uint32_t *places = port.places->of.data();
    for (size_t option = 0; option < sum.size(); ++option) {
      sum[option] += message[places[option]];
    }
  }
}

// The solver spends most of its time in the loop below. AVX2 without FMA does not fuse
// multiplications with additions, which would round differently: all processors give the same
// result.
#if defined(__x86_64__) && defined(__linux__)
#define WEFT_WITH_AVX2 __attribute__((target_clones("default", "avx2")))
#else
#define WEFT_WITH_AVX2
#endif

/// Sets `message` to the least cost of each column over all rows: the cost of the row plus `times`
/// its entry in `seconds`. `own` has the column of each row; it is empty if detours may be shorter.
WEFT_WITH_AVX2
static void findLeast(const std::vector<double> &rows, const std::vector<uint32_t> &own,
                      double times, const double *seconds, std::vector<double> &message) {
  double *to = message.data();
  const size_t columns = message.size();
  auto relax = [&](size_t row) __attribute__((always_inline)) {
    const double base = rows[row], *ways = seconds + row * columns;
    for (size_t at = 0; at < columns; at += kLanes) {
      for (size_t column = at; column < at + kLanes; ++column) {
        to[column] = std::min(to[column], base + times * ways[column]);
      }
    }
  };
  size_t first = size_t(std::min_element(rows.begin(), rows.end()) - rows.begin());
  relax(first);
  for (size_t row = 0; row < rows.size(); ++row) {
    // A row whose own column another row reaches as cheaply cannot improve any column.
    bool isBehind = !own.empty() && to[own[row]] <= rows[row];
    if (rows[row] < kInfinity && row != first && !isBehind) {
      relax(row);
    }
  }
}

/// Sends the message of `node` to the other end of `edge`, and returns the number that was
/// subtracted from it.
double ChainBounds::send(const Energies &energies, uint32_t node, uint32_t number, double share) {
  const Edge &edge = problem.edges[number];
  uint32_t other = otherOf(edge, node);
  const Port &from = portOf(node, number);
  Port &to = portOf(other, number);
  const Ways &ways = *from.ways;
  least.assign(ways.rows, kInfinity);
  for (size_t option = 0; option < sum.size(); ++option) {
    double &place = least[from.places->of[option]];
    place = std::min(place, sum[option]);
  }
  for (size_t row = 0; row < ways.rows; ++row) {
    // A place without remaining options stays infinite.
    least[row] = least[row] < kInfinity ? share * least[row] - from.message[row] : kInfinity;
  }
  message.assign(ways.columns, kInfinity);
  findLeast(least, ways.own, edge.times, ways.seconds.data(), message);
  const std::vector<double> &heard = energies.nodes[other];
  double off = kInfinity;
  for (size_t option = 0; option < heard.size(); ++option) {
    double there = message[to.places->of[option]];
    off = heard[option] < kInfinity && there < off ? there : off;
  }
  for (size_t place = 0; place < to.message.size(); ++place) {
    to.message[place] = off < kInfinity ? message[place] - off : message[place];
  }
  return off;
}

/// Replaces infinity: options that were impossible may be possible at another price. Any numbers
/// give a valid bound, and the greatest finite one is likely not too low.
static std::vector<double> withoutInfinity(std::vector<double> numbers) {
  double most = 0;
  for (double number : numbers) {
    most = number < kInfinity ? std::max(most, number) : most;
  }
  for (double &number : numbers) {
    number = std::min(number, most);
  }
  return numbers;
}

ChainBounds::Messages ChainBounds::messages() const {
  Messages all;
  for (size_t edge = 0; edge < atA.size(); ++edge) {
    all.push_back({withoutInfinity(atA[edge].message), withoutInfinity(atB[edge].message)});
  }
  return all;
}

void ChainBounds::restart(const Messages &low, const Messages &high, double share) {
  bound = -kInfinity;
  for (size_t edge = 0; edge < atA.size(); ++edge) {
    for (size_t end : {0, 1}) {
      std::vector<double> &message = (end == 0 ? atA : atB)[edge].message;
      for (size_t place = 0; place < message.size(); ++place) {
        message[place] =
            low[edge][end][place] + share * (high[edge][end][place] - low[edge][end][place]);
      }
    }
  }
}

/// Returns the contribution of the node to the bound on the way back.
double ChainBounds::visit(Energies &energies, uint32_t node, bool forth, double upper) {
  sumAt(energies, node, sum);
  double off = *std::min_element(sum.begin(), sum.end());
  if (off == kInfinity) {
    return kInfinity; // No option is left: no choice is as low as `upper`.
  }
  for (size_t option = 0; option < sum.size(); ++option) {
    sum[option] -= off;
    if (bound + sum[option] > upper) {
      sum[option] = energies.nodes[node][option] = kInfinity;
    }
  }
  for (uint32_t edge : energies.graph.edgesOf[node]) {
    if (forth == (otherOf(problem.edges[edge], node) > node)) {
      off += send(energies, node, edge, share[node]);
    }
  }
  return off;
}

double ChainBounds::pass(Energies &energies, double upper) {
  // Rounding errors must not strike out the best choice.
  double limit = upper + 1e-9 * std::abs(upper);
  for (uint32_t node = 0; node < share.size(); ++node) {
    visit(energies, node, /*forth=*/true, limit);
  }
  double sum = 0;
  for (uint32_t node = uint32_t(share.size()); node-- > 0;) {
    sum += visit(energies, node, /*forth=*/false, limit);
  }
  return bound = std::max(bound, sum);
}

void ChainBounds::restrictWithin(double distance, Energies &energies) const {
  std::vector<double> sum;
  for (uint32_t node = 0; node < share.size(); ++node) {
    sumAt(energies, node, sum);
    double most = *std::min_element(sum.begin(), sum.end()) + distance;
    for (size_t option = 0; option < sum.size(); ++option) {
      if (sum[option] > most) {
        energies.nodes[node][option] = kInfinity;
      }
    }
  }
}

void ChainBounds::restrictTo(size_t options, Energies &energies) const {
  std::vector<double> sum, sorted;
  for (uint32_t node = 0; node < share.size(); ++node) {
    sumAt(energies, node, sum);
    sorted = sum;
    if (sum.size() > options) {
      std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(options) - 1, sorted.end());
      for (size_t option = 0; option < sum.size(); ++option) {
        // Keeps all equal ones.
        if (sum[option] > sorted[options - 1]) {
          energies.nodes[node][option] = kInfinity;
        }
      }
    }
  }
}

Choice ChainBounds::decode(const Energies &energies) const {
  Choice choice(share.size(), 0);
  for (uint32_t node = 0; node < share.size(); ++node) {
    std::vector<double> sum = energies.nodes[node];
    for (uint32_t number : energies.graph.edgesOf[node]) {
      const Edge &edge = problem.edges[number];
      uint32_t other = otherOf(edge, node);
      const Port &port = portOf(node, number);
      for (uint32_t option = 0; option < sum.size(); ++option) {
        sum[option] += other > node     ? port.message[port.places->of[option]]
                       : edge.a == node ? problem.seconds(edge, option, choice[other])
                                        : problem.seconds(edge, choice[other], option);
      }
    }
    choice[node] = uint32_t(std::min_element(sum.begin(), sum.end()) - sum.begin());
  }
  return choice;
}

} // namespace weft::planner
