//===- Eliminate.cpp - node by node, into tables of what is left ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SolveParts.h"

#include <algorithm>
#include <set>

namespace weft::planner {

namespace {

/// A number for each joint option of some nodes, those of the last varying fastest.
struct JointTable {
  std::vector<uint32_t> scope; // Ascending.
  std::vector<double> values;
};

/// Of each node the options that are left, ascending.
using Left = std::vector<std::vector<uint32_t>>;

class BucketElimination {
public:
  explicit BucketElimination(const Energies &energies)
      : problem(energies.problem), neighbors(energies.nodes.size()), turns(energies.nodes.size()),
        buckets(energies.nodes.size()) {
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
    for (const Edge &edge : problem.edges) {
      neighbors[edge.a].insert(edge.b);
      neighbors[edge.b].insert(edge.a);
    }
  }

  /// Nodes in the order of the least table, of equal ones the first, if all tables together take no
  /// more than `maxWork`.
  bool findOrder(size_t maxWork) {
    std::vector<std::set<uint32_t>> graph = neighbors;
    std::vector<double> sizes(graph.size());
    std::set<std::pair<double, uint32_t>> queue;
    for (uint32_t node = 0; node < graph.size(); ++node) {
      sizes[node] = sizeAround(graph[node]);
      queue.emplace(sizes[node], node);
    }
    double work = 0;
    while (!queue.empty()) {
      auto [size, node] = *queue.begin();
      queue.erase(queue.begin());
      work += size * double(left[node].size());
      if (work > double(maxWork) || left[node].empty()) {
        return false;
      }
      result.width = std::max(result.width, graph[node].size());
      remove(graph, node);
      for (uint32_t other : graph[node]) {
        queue.erase({sizes[other], other});
        sizes[other] = sizeAround(graph[other]);
        queue.emplace(sizes[other], other);
      }
      order.push_back(node);
    }
    return true;
  }

  Elimination run() {
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
    for (uint32_t node = 0; node < places.size(); ++node) {
      result.choice.push_back(left[node][places[node]]);
    }
    return std::move(result);
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

  /// Numbers in the table that eliminating a node with these neighbours leaves.
  double sizeAround(const std::set<uint32_t> &around) const {
    double size = 1;
    for (uint32_t other : around) {
      size *= double(options(other));
    }
    return size;
  }

  /// The neighbours of `node` become each other's.
  static void remove(std::vector<std::set<uint32_t>> &graph, uint32_t node) {
    for (uint32_t a : graph[node]) {
      graph[a].erase(node);
      for (uint32_t b : graph[node]) {
        if (a != b) {
          graph[a].insert(b);
        }
      }
    }
  }

  /// A table waits for the turn of the first of its nodes.
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

  double sizeOf(const std::vector<uint32_t> &scope) const {
    double size = 1;
    for (uint32_t node : scope) {
      size *= double(options(node));
    }
    return size;
  }

  static std::vector<uint32_t> join(const std::vector<uint32_t> &a,
                                    const std::vector<uint32_t> &b) {
    std::vector<uint32_t> joined;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(joined));
    return joined;
  }

  /// The least sum of the tables over the options of `node`, for all others' options.
  JointTable minimize(uint32_t node, const std::vector<JointTable> &bucket) const {
    JointTable message;
    for (const JointTable &table : bucket) {
      message.scope = join(message.scope, table.scope);
    }
    std::erase(message.scope, node);
    size_t count = size_t(sizeOf(message.scope));
    message.values.assign(count, 0);
    std::vector<double> sums(options(node));
    std::vector<Cursor> cursors;
    for (const JointTable &table : bucket) {
      cursors.push_back(cursorOf(table, message.scope, node));
    }
    std::vector<uint32_t> index(message.scope.size(), 0);
    for (size_t at = 0; at < count; ++at) {
      std::fill(sums.begin(), sums.end(), 0);
      for (const Cursor &cursor : cursors) {
        const double *value = cursor.values + cursor.offset;
        for (double &sum : sums) {
          sum += *value;
          value += cursor.ownStride;
        }
      }
      message.values[at] = *std::min_element(sums.begin(), sums.end());
      advance(index, message.scope, cursors);
    }
    return message;
  }

  /// A place in one table, as another scope is walked through.
  struct Cursor {
    const double *values;
    size_t ownStride;            // Of the node that is eliminated.
    std::vector<size_t> strides; // Of the scope's nodes, 0 for those that the table lacks.
    size_t offset = 0;
  };

  Cursor cursorOf(const JointTable &table, const std::vector<uint32_t> &scope,
                  uint32_t node) const {
    Cursor cursor{table.values.data(), 0, std::vector<size_t>(scope.size(), 0)};
    size_t stride = 1;
    for (size_t at = table.scope.size(); at-- > 0;) {
      uint32_t member = table.scope[at];
      if (member == node) {
        cursor.ownStride = stride;
      } else {
        size_t place = size_t(std::lower_bound(scope.begin(), scope.end(), member) - scope.begin());
        cursor.strides[place] = stride;
      }
      stride *= options(member);
    }
    return cursor;
  }

  void advance(std::vector<uint32_t> &index, const std::vector<uint32_t> &scope,
               std::vector<Cursor> &cursors) const {
    for (size_t at = scope.size(); at-- > 0;) {
      bool wraps = ++index[at] == options(scope[at]);
      for (Cursor &cursor : cursors) {
        cursor.offset += cursor.strides[at];
        cursor.offset -= wraps ? cursor.strides[at] * index[at] : 0;
      }
      if (!wraps) {
        return;
      }
      index[at] = 0;
    }
  }

  /// The option of `node` that goes best with what was chosen for the nodes eliminated after it.
  /// Options are meant by their places among those left.
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
  std::vector<std::set<uint32_t>> neighbors;
  /// What each node takes by itself.
  std::vector<JointTable> own;
  std::vector<uint32_t> order;
  /// The place of each node in `order`.
  std::vector<uint32_t> turns;
  /// What mentions each node of `order` when its turn comes.
  std::vector<std::vector<JointTable>> buckets;
  Elimination result;
};

} // namespace

std::optional<Elimination> eliminate(const Energies &energies, size_t maxWork) {
  BucketElimination elimination(energies);
  if (!elimination.findOrder(maxWork)) {
    return std::nullopt;
  }
  return elimination.run();
}

} // namespace weft::planner
