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
// whatever the messages are. On the way back a node i sends over each edge e to an earlier node
// m(y) = min over x of share * (D(x) - d) - m(x) + T(x, y), less its minimum v, where d = min D. So
// T - m - m is at least v - share * (D(x) - d), and as no node sends more than 1 / share of them,
// the energy is at least the sum of all d and v.
//
// Why options may be struck out. When a node is visited, the chains through it, 1 / share of them,
// are each bounded by what they would have with each of its options. So a choice with option x has
// at least the bound and D(x) - d.
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <cmath>

namespace weft::planner {

ChainBounds::ChainBounds(const Problem &problem) : problem(problem) {
  std::vector<double> earlier(problem.nodes.size(), 0), later(problem.nodes.size(), 0);
  for (const Edge &edge : problem.edges) {
    toA.emplace_back(problem.tables[edge.table].rows, 0);
    toB.emplace_back(problem.tables[edge.table].columns, 0);
    ++later[std::min(edge.a, edge.b)];
    ++earlier[std::max(edge.a, edge.b)];
  }
  for (const Table &table : problem.tables) {
    std::vector<double> &turned = transposed.emplace_back(table.seconds.size());
    for (size_t row = 0; row < table.rows; ++row) {
      for (size_t column = 0; column < table.columns; ++column) {
        turned[column * table.rows + row] = table.seconds[row * table.columns + column];
      }
    }
  }
  for (size_t node = 0; node < earlier.size(); ++node) {
    share.push_back(1 / std::max({earlier[node], later[node], 1.0}));
  }
}

std::vector<double> &ChainBounds::messageTo(uint32_t node, uint32_t edge) {
  return problem.edges[edge].a == node ? toA[edge] : toB[edge];
}

const std::vector<double> &ChainBounds::messageTo(uint32_t node, uint32_t edge) const {
  return problem.edges[edge].a == node ? toA[edge] : toB[edge];
}

static const std::vector<uint32_t> &placesOf(const Edge &edge, uint32_t node) {
  return edge.a == node ? edge.rows : edge.columns;
}

static uint32_t otherOf(const Edge &edge, uint32_t node) {
  return edge.a == node ? edge.b : edge.a;
}

std::vector<double> ChainBounds::sumAt(const Energies &energies, uint32_t node) const {
  std::vector<double> sum = energies.nodes[node];
  for (uint32_t edge : energies.edgesOf[node]) {
    const std::vector<double> &message = messageTo(node, edge);
    const std::vector<uint32_t> &places = placesOf(problem.edges[edge], node);
    for (size_t option = 0; option < sum.size(); ++option) {
      sum[option] += message[places[option]];
    }
  }
  return sum;
}

/// Sends what `node` knows to the other end of `edge`, and returns the number that was taken off.
double ChainBounds::send(const Energies &energies, uint32_t node, uint32_t number,
                         const std::vector<double> &sum, double share) {
  const Edge &edge = problem.edges[number];
  const Table &table = problem.tables[edge.table];
  const std::vector<double> &received = messageTo(node, number);
  const std::vector<uint32_t> &places = placesOf(edge, node);
  std::vector<double> least(received.size(), kInfinity);
  for (size_t option = 0; option < sum.size(); ++option) {
    if (sum[option] < kInfinity) {
      double &place = least[places[option]];
      place = std::min(place, share * sum[option] - received[places[option]]);
    }
  }
  uint32_t other = otherOf(edge, node);
  std::vector<double> &message = messageTo(other, number);
  std::fill(message.begin(), message.end(), kInfinity);
  // Where no option is left, nobody listens, unless ways lead on from there.
  std::vector<bool> listens(message.size(), false);
  for (size_t option = 0; option < energies.nodes[other].size(); ++option) {
    if (energies.nodes[other][option] < kInfinity) {
      listens[placesOf(edge, other)[option]] = true;
    }
  }
  std::vector<uint32_t> heard;
  for (uint32_t place = 0; place < message.size(); ++place) {
    if (listens[place] || (table.isShortest && least[place] < kInfinity)) {
      heard.push_back(place);
    }
  }
  const double *seconds = (edge.a == node ? table.seconds : transposed[edge.table]).data();
  auto relax = [&](size_t row) {
    const double from = least[row], times = edge.times, *ofRow = seconds + row * message.size();
    for (uint32_t to : heard) {
      message[to] = std::min(message[to], from + times * ofRow[to]);
    }
  };
  // From where another way is as short, no way leads on that the other does not.
  size_t first = size_t(std::min_element(least.begin(), least.end()) - least.begin());
  relax(first);
  for (size_t row = 0; row < least.size(); ++row) {
    if (least[row] < kInfinity && row != first &&
        !(table.isShortest && message[row] <= least[row])) {
      relax(row);
    }
  }
  double off = *std::min_element(message.begin(), message.end());
  if (off < kInfinity) {
    for (double &entry : message) {
      entry -= off;
    }
  }
  return off;
}

/// Returns what the node adds to the bound on the way back.
double ChainBounds::visit(Energies &energies, uint32_t node, bool forth, double upper) {
  std::vector<double> sum = sumAt(energies, node);
  double off = *std::min_element(sum.begin(), sum.end());
  if (off == kInfinity) {
    return kInfinity; // Nothing is left, so that no choice is as low as `upper`.
  }
  for (size_t option = 0; option < sum.size(); ++option) {
    sum[option] -= off;
    if (bound + sum[option] > upper) {
      sum[option] = energies.nodes[node][option] = kInfinity;
    }
  }
  for (uint32_t edge : energies.edgesOf[node]) {
    if (forth == (otherOf(problem.edges[edge], node) > node)) {
      off += send(energies, node, edge, sum, share[node]);
    }
  }
  return off;
}

double ChainBounds::pass(Energies &energies, double upper) {
  // Rounding must not strike out the best.
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

void ChainBounds::restrictTo(size_t options, Energies &energies) const {
  for (uint32_t node = 0; node < share.size(); ++node) {
    std::vector<double> sum = sumAt(energies, node), sorted = sum;
    if (sum.size() > options) {
      std::nth_element(sorted.begin(), sorted.begin() + std::ptrdiff_t(options) - 1, sorted.end());
      for (size_t option = 0; option < sum.size(); ++option) {
        // Of equal ones all stay.
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
    for (uint32_t number : energies.edgesOf[node]) {
      const Edge &edge = problem.edges[number];
      uint32_t other = otherOf(edge, node);
      for (uint32_t option = 0; option < sum.size(); ++option) {
        sum[option] += other > node     ? messageTo(node, number)[placesOf(edge, node)[option]]
                       : edge.a == node ? problem.seconds(edge, option, choice[other])
                                        : problem.seconds(edge, choice[other], option);
      }
    }
    choice[node] = uint32_t(std::min_element(sum.begin(), sum.end()) - sum.begin());
  }
  return choice;
}

} // namespace weft::planner
