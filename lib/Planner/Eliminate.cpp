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
struct Table {
  std::vector<uint32_t> scope; // Ascending.
  std::vector<double> values;
};

class BucketElimination {
public:
  BucketElimination(const Energies &energies, size_t maxTable)
      : energies(energies), maxTable(maxTable), neighbors(energies.nodes.size()) {
    for (uint32_t node = 0; node < energies.nodes.size(); ++node) {
      tables.push_back({{node}, energies.nodes[node]});
    }
    for (const Pair &pair : energies.pairs) {
      tables.push_back({{pair.a, pair.b}, pair.table});
      neighbors[pair.a].insert(pair.b);
      neighbors[pair.b].insert(pair.a);
    }
  }

  Elimination run() {
    std::vector<bool> gone(neighbors.size());
    for (size_t left = neighbors.size(); left > 0; --left) {
      uint32_t node = cheapest(gone);
      gone[node] = true;
      removeFromGraph(node);
      eliminate(node);
    }
    result.choice.resize(neighbors.size());
    for (size_t at = order.size(); at-- > 0;) {
      result.choice[order[at]] = bestOption(order[at], buckets[at]);
    }
    return std::move(result);
  }

private:
  /// The node whose elimination leaves the smallest table; of equal ones the first.
  uint32_t cheapest(const std::vector<bool> &gone) const {
    uint32_t best = 0;
    double smallest = kInfinity;
    for (uint32_t node = 0; node < neighbors.size(); ++node) {
      double size = 1;
      for (uint32_t other : neighbors[node]) {
        size *= double(energies.options(other));
      }
      if (!gone[node] && size < smallest) {
        smallest = size;
        best = node;
      }
    }
    return best;
  }

  /// Its neighbours become each other's.
  void removeFromGraph(uint32_t node) {
    for (uint32_t a : neighbors[node]) {
      neighbors[a].erase(node);
      for (uint32_t b : neighbors[node]) {
        if (a != b) {
          neighbors[a].insert(b);
        }
      }
    }
  }

  void eliminate(uint32_t node) {
    std::vector<Table> bucket, others;
    for (Table &table : tables) {
      bool mentions = std::binary_search(table.scope.begin(), table.scope.end(), node);
      (mentions ? bucket : others).push_back(std::move(table));
    }
    tables = std::move(others);
    for (const std::vector<size_t> &part : split(node, bucket)) {
      Table message = minimize(node, bucket, part);
      if (message.scope.empty()) {
        result.bound += message.values[0];
      } else {
        tables.push_back(std::move(message));
      }
    }
    order.push_back(node);
    buckets.push_back(std::move(bucket));
  }

  /// The tables of a bucket in as few parts as leave no table above the limit, mostly one.
  std::vector<std::vector<size_t>> split(uint32_t node, const std::vector<Table> &bucket) {
    std::vector<size_t> bySize(bucket.size());
    for (size_t i = 0; i < bySize.size(); ++i) {
      bySize[i] = i;
    }
    std::sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
      size_t sizeA = bucket[a].values.size(), sizeB = bucket[b].values.size();
      return std::pair(sizeB, a) < std::pair(sizeA, b);
    });
    std::vector<std::vector<size_t>> parts;
    std::vector<std::vector<uint32_t>> scopes;
    for (size_t table : bySize) {
      size_t part = 0;
      std::vector<uint32_t> joined;
      for (; part < parts.size(); ++part) {
        joined = join(scopes[part], bucket[table].scope);
        if (sizeOf(joined) / double(energies.options(node)) <= double(maxTable)) {
          break;
        }
      }
      if (part == parts.size()) {
        parts.emplace_back();
        scopes.emplace_back();
        joined = bucket[table].scope;
      }
      parts[part].push_back(table);
      scopes[part] = joined;
      result.width = std::max(result.width, joined.size() - 1);
    }
    return parts;
  }

  double sizeOf(const std::vector<uint32_t> &scope) const {
    double size = 1;
    for (uint32_t node : scope) {
      size *= double(energies.options(node));
    }
    return size;
  }

  static std::vector<uint32_t> join(const std::vector<uint32_t> &a,
                                    const std::vector<uint32_t> &b) {
    std::vector<uint32_t> joined;
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(joined));
    return joined;
  }

  /// The least sum of the tables in `part` over the options of `node`, for all others' options.
  Table minimize(uint32_t node, const std::vector<Table> &bucket, const std::vector<size_t> &part) {
    Table message;
    for (size_t table : part) {
      message.scope = join(message.scope, bucket[table].scope);
    }
    std::erase(message.scope, node);
    size_t count = size_t(sizeOf(message.scope));
    message.values.assign(count, 0);
    std::vector<double> sums(energies.options(node));
    std::vector<Cursor> cursors;
    for (size_t table : part) {
      cursors.push_back(cursorOf(bucket[table], message.scope, node));
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

  Cursor cursorOf(const Table &table, const std::vector<uint32_t> &scope, uint32_t node) const {
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
      stride *= energies.options(member);
    }
    return cursor;
  }

  void advance(std::vector<uint32_t> &index, const std::vector<uint32_t> &scope,
               std::vector<Cursor> &cursors) const {
    for (size_t at = scope.size(); at-- > 0;) {
      bool wraps = ++index[at] == energies.options(scope[at]);
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
  uint32_t bestOption(uint32_t node, const std::vector<Table> &bucket) const {
    std::vector<double> sums(energies.options(node), 0);
    for (const Table &table : bucket) {
      size_t stride = 1, own = 0, offset = 0;
      for (size_t at = table.scope.size(); at-- > 0;) {
        uint32_t member = table.scope[at];
        if (member == node) {
          own = stride;
        } else {
          offset += result.choice[member] * stride;
        }
        stride *= energies.options(member);
      }
      for (size_t option = 0; option < sums.size(); ++option) {
        sums[option] += table.values[offset + option * own];
      }
    }
    return uint32_t(std::min_element(sums.begin(), sums.end()) - sums.begin());
  }

  const Energies &energies;
  const size_t maxTable;
  std::vector<std::set<uint32_t>> neighbors;
  std::vector<Table> tables;
  std::vector<uint32_t> order;
  /// What mentioned each node of `order` when its turn came.
  std::vector<std::vector<Table>> buckets;
  Elimination result;
};

} // namespace

Elimination eliminate(const Energies &energies, size_t maxTable) {
  return BucketElimination(energies, maxTable).run();
}

} // namespace weft::planner
