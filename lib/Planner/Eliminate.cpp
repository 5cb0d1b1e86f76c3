//===- Eliminate.cpp - eliminates nodes one by one ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <array>
#include <queue>

namespace weft::planner {

namespace {

/// A number for each joint option of some nodes, those of the last varying fastest.
struct JointTable {
  std::vector<uint32_t> scope; // Ascending.
  std::vector<double> values;
};

/// The remaining options of each node, ascending.
using Left = std::vector<std::vector<uint32_t>>;

std::vector<uint32_t> join(const std::vector<uint32_t> &a, const std::vector<uint32_t> &b) {
  std::vector<uint32_t> joined;
  joined.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(joined));
  return joined;
}

/// The order in which nodes are eliminated: always the node with the smallest table, and the first
/// of equal ones.
class EliminationOrder {
public:
  explicit EliminationOrder(const Energies &energies) : graph(energies.graph.neighborsOf) {
    for (const std::vector<double> &numbers : energies.nodes) {
      options.push_back(double(std::count_if(numbers.begin(), numbers.end(),
                                             [](double energy) { return energy < kInfinity; })));
    }
  }

  /// Finds the order. Returns false if all tables together take more than `maxWork` sums.
  bool find(size_t maxWork) {
    using QueueEntry = std::pair<double, uint32_t>;
    std::priority_queue<QueueEntry, std::vector<QueueEntry>, std::greater<>> queue;
    std::vector<double> sizes(graph.size());
    for (uint32_t node = 0; node < graph.size(); ++node) {
      sizes[node] = sizeOf(graph[node]);
      queue.emplace(sizes[node], node);
    }
    double work = 0;
    while (!queue.empty()) {
      auto [size, node] = queue.top();
      queue.pop();
      if (size != sizes[node]) {
        continue; // An outdated entry of the queue.
      }
      sizes[node] = kInfinity;
      work += size * options[node];
      if (work > double(maxWork) || options[node] == 0) {
        return false;
      }
      width = std::max(width, graph[node].size());
      for (uint32_t other : graph[node]) {
        bypass(other, node);
        sizes[other] = sizeOf(graph[other]);
        queue.emplace(sizes[other], other);
      }
      order.push_back(node);
    }
    return true;
  }

  std::vector<uint32_t> order;
  /// The number of nodes in the largest table.
  size_t width = 0;

private:
  double sizeOf(const std::vector<uint32_t> &scope) const {
    double size = 1;
    for (uint32_t node : scope) {
      size *= options[node];
    }
    return size;
  }

  /// The neighbors of `node`, which is eliminated, become neighbors of `other`.
  void bypass(uint32_t other, uint32_t node) {
    std::vector<uint32_t> around = join(graph[other], graph[node]);
    std::erase_if(around, [&](uint32_t member) { return member == other || member == node; });
    graph[other] = std::move(around);
  }

  /// The neighbors of each node, ascending, also those over eliminated nodes.
  std::vector<std::vector<uint32_t>> graph;
  /// The number of remaining options of each node.
  std::vector<double> options;
};

class BucketElimination {
public:
  BucketElimination(const Energies &energies, std::vector<uint32_t> nodesInOrder)
      : problem(energies.problem), order(std::move(nodesInOrder)), turns(order.size()),
        buckets(order.size()) {
    for (const std::vector<double> &numbers : energies.nodes) {
      std::vector<uint32_t> &options = left.emplace_back();
      JointTable &table = own.emplace_back(JointTable{{uint32_t(left.size() - 1)}, {}});
      for (uint32_t option = 0; option < numbers.size(); ++option) {
        if (numbers[option] < kInfinity) {
          options.push_back(option);
          table.values.push_back(numbers[option]);
        }
      }
    }
  }

  Choice run() {
    for (uint32_t at = 0; at < order.size(); ++at) {
      turns[order[at]] = at;
    }
    for (uint32_t node = 0; node < left.size(); ++node) {
      bring(std::move(own[node]));
    }
    for (const Edge &edge : problem.edges) {
      bring(tableOf(edge));
    }
    for (uint32_t at = 0; at < order.size(); ++at) {
      bring(minimize(order[at], buckets[at]));
    }
    std::vector<uint32_t> places(order.size());
    for (size_t at = order.size(); at-- > 0;) {
      places[order[at]] = bestPlace(order[at], buckets[at], places);
    }
    Choice choice;
    for (uint32_t node = 0; node < places.size(); ++node) {
      choice.push_back(left[node][places[node]]);
    }
    return choice;
  }

private:
  size_t options(uint32_t node) const { return left[node].size(); }

  JointTable tableOf(const Edge &edge) const {
    bool ascends = edge.a < edge.b;
    JointTable table{{std::min(edge.a, edge.b), std::max(edge.a, edge.b)}, {}};
    for (uint32_t low : left[table.scope[0]]) {
      for (uint32_t high : left[table.scope[1]]) {
        table.values.push_back(problem.seconds(edge, ascends ? low : high, ascends ? high : low));
      }
    }
    return table;
  }

  /// Adds a table to those of its node that is eliminated first.
  void bring(JointTable table) {
    if (table.scope.empty()) {
      return;
    }
    uint32_t first = turns[table.scope.front()];
    for (uint32_t node : table.scope) {
      first = std::min(first, turns[node]);
    }
    buckets[first].push_back(std::move(table));
  }

  /// Returns the number of entries of a table over these nodes.
  double sizeOf(const std::vector<uint32_t> &scope) const {
    double size = 1;
    for (uint32_t node : scope) {
      size *= double(options(node));
    }
    return size;
  }

  /// A position in one table while another scope is enumerated.
  struct Cursor {
    /// The entries of one node's options, contiguous.
    std::vector<double> values;
    std::vector<size_t> strides; // For each node of the scope, 0 if the table lacks it.
    size_t offset = 0;

    const double *get() const { return values.data() + offset; }
  };

  /// Computes the least sum of the tables over the options of `node`, for each choice of the other
  /// nodes.
  JointTable minimize(uint32_t node, const std::vector<JointTable> &bucket) const {
    JointTable message;
    for (const JointTable &table : bucket) {
      message.scope = join(message.scope, table.scope);
    }
    std::erase(message.scope, node);
    // Tables without the last node, which varies fastest, are added once for all its options.
    std::vector<Cursor> steady, varying;
    for (const JointTable &table : bucket) {
      Cursor cursor = cursorOf(table, message.scope, node);
      bool varies = !message.scope.empty() && cursor.strides.back() > 0;
      (varies ? varying : steady).push_back(std::move(cursor));
    }
    size_t count = size_t(sizeOf(message.scope));
    size_t inner = message.scope.empty() ? 1 : options(message.scope.back());
    std::vector<double> base(options(node)), sums;
    std::vector<uint32_t> index(message.scope.size(), 0);
    message.values.reserve(count);
    while (message.values.size() < count) {
      std::fill(base.begin(), base.end(), 0);
      addUp(base, steady);
      for (size_t at = 0; at < inner; ++at) {
        sums = base;
        addUp(sums, varying);
        message.values.push_back(leastOf(sums));
        for (Cursor &cursor : varying) {
          cursor.offset += cursor.strides.back();
        }
      }
      for (Cursor &cursor : varying) {
        cursor.offset -= cursor.strides.back() * inner;
      }
      advance(index, message.scope, steady, varying);
    }
    return message;
  }

  static void addUp(std::vector<double> &sums, const std::vector<Cursor> &cursors) {
    for (const Cursor &cursor : cursors) {
      const double *values = cursor.get();
      double *sum = sums.data();
      for (size_t option = 0, count = sums.size(); option < count; ++option) {
        sum[option] += values[option];
      }
    }
  }

  /// Four independent minima at a time, which the processor computes in parallel.
  static double leastOf(const std::vector<double> &numbers) {
    std::array<double, 4> least;
    least.fill(kInfinity);
    size_t at = 0;
    for (; at + 4 <= numbers.size(); at += 4) {
      for (size_t lane = 0; lane < 4; ++lane) {
        least[lane] = std::min(least[lane], numbers[at + lane]);
      }
    }
    for (; at < numbers.size(); ++at) {
      least[0] = std::min(least[0], numbers[at]);
    }
    return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
  }

  Cursor cursorOf(const JointTable &table, const std::vector<uint32_t> &scope,
                  uint32_t node) const {
    auto own = std::lower_bound(table.scope.begin(), table.scope.end(), node);
    size_t after = size_t(sizeOf({own + 1, table.scope.end()})), count = options(node);
    Cursor cursor{{}, std::vector<size_t>(scope.size(), 0)};
    cursor.values.reserve(table.values.size());
    for (size_t block = 0; block < table.values.size(); block += after * count) {
      for (size_t at = block; at < block + after; ++at) {
        for (size_t option = 0; option < count; ++option) {
          cursor.values.push_back(table.values[at + option * after]);
        }
      }
    }
    size_t stride = count;
    for (size_t at = table.scope.size(); at-- > 0;) {
      if (uint32_t member = table.scope[at]; member != node) {
        auto place = std::lower_bound(scope.begin(), scope.end(), member) - scope.begin();
        cursor.strides[size_t(place)] = stride;
        stride *= options(member);
      }
    }
    return cursor;
  }

  /// Goes to the next options of all nodes but the last.
  void advance(std::vector<uint32_t> &index, const std::vector<uint32_t> &scope,
               std::vector<Cursor> &steady, std::vector<Cursor> &varying) const {
    for (size_t at = scope.empty() ? 0 : scope.size() - 1; at-- > 0;) {
      bool wraps = ++index[at] == options(scope[at]);
      for (std::vector<Cursor> *cursors : {&steady, &varying}) {
        for (Cursor &cursor : *cursors) {
          cursor.offset += cursor.strides[at];
          cursor.offset -= wraps ? cursor.strides[at] * index[at] : 0;
        }
      }
      if (!wraps) {
        return;
      }
      index[at] = 0;
    }
  }

  /// Returns the best option of `node` given those chosen for nodes eliminated after it. Options
  /// are indices into the remaining ones.
  uint32_t bestPlace(uint32_t node, const std::vector<JointTable> &bucket,
                     const std::vector<uint32_t> &places) const {
    std::vector<double> sums(options(node), 0);
    for (const JointTable &table : bucket) {
      size_t stride = 1, own = 0, offset = 0;
      for (size_t at = table.scope.size(); at-- > 0;) {
        uint32_t member = table.scope[at];
        if (member == node) {
          own = stride;
        } else {
          offset += places[member] * stride;
        }
        stride *= options(member);
      }
      for (size_t option = 0; option < sums.size(); ++option) {
        sums[option] += table.values[offset + option * own];
      }
    }
    return uint32_t(std::min_element(sums.begin(), sums.end()) - sums.begin());
  }

  const Problem &problem;
  Left left;
  /// The energies of each node's remaining options.
  std::vector<JointTable> own;
  std::vector<uint32_t> order;
  /// The index of each node in `order`.
  std::vector<uint32_t> turns;
  /// The tables with each node of `order` when it is eliminated.
  std::vector<std::vector<JointTable>> buckets;
};

} // namespace

std::optional<Elimination> eliminate(const Energies &energies, size_t maxWork) {
  EliminationOrder order(energies);
  if (!order.find(maxWork)) {
    return std::nullopt;
  }
  return Elimination{BucketElimination(energies, std::move(order.order)).run(), order.width};
}

} // namespace weft::planner
