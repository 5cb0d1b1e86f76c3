//===- Problem.h - a planning problem and its solutions, as data ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A node is one decision, mostly how to shard one op; each of its options takes time and memory by
// itself. An edge joins two nodes, and adds the time of their options together: if one op computes
// a value in one sharding and the other needs it in another, the value is resharded. A choice has
// one option of each node:
//
//      x ──┬── q        seconds = sum over nodes  seconds[option]
//          ├── k                + sum over edges  times * table[row of a][column of b]
//          └── v        bytes   = sum over nodes  bytes[option], at most the limit
//
// Edges share tables, as many values have the same type. A table has a row for each layout of the
// value, and many options of an op share a layout:
//
//      op of 343 options ──rows──▶ table of 125 x 125 ◀──columns── op of 343 options
//
// A forbidden pair of options costs infinity. Solvers are functions on problems (Solve.h), and
// `evaluate` shares no code with them.
//
// Functions keep no state; any number of threads may call them.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_PLANNER_PROBLEM_H
#define WEFT_PLANNER_PROBLEM_H

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace weft::planner {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Numbers are 0 or more; infinity forbids.
struct Option {
  std::string name;
  /// Seconds of a step, and bytes at the step's peak, of one rank.
  double seconds = 0, bytes = 0;
};

struct Node {
  std::string name;
  /// At least one.
  std::vector<Option> options;
};

/// A list of numbers that its copies share, as copies of a problem have the same tables, which may
/// take gigabytes. A copy that grows no longer shares.
class SharedNumbers {
public:
  SharedNumbers() : SharedNumbers(std::vector<double>()) {}
  SharedNumbers(std::initializer_list<double> numbers)
      : SharedNumbers(std::vector<double>(numbers)) {}
  SharedNumbers(std::vector<double> numbers)
      : numbers(std::make_shared<std::vector<double>>(std::move(numbers))) {}

  double operator[](size_t index) const { return (*numbers)[index]; }
  size_t size() const { return numbers->size(); }
  auto begin() const { return numbers->cbegin(); }
  auto end() const { return numbers->cend(); }
  bool operator==(const SharedNumbers &other) const { return *numbers == *other.numbers; }

  void append(double number) {
    if (numbers.use_count() > 1) {
      numbers = std::make_shared<std::vector<double>>(*numbers);
    }
    numbers->push_back(number);
  }

private:
  std::shared_ptr<std::vector<double>> numbers;
};

struct Table {
  std::string name;
  uint32_t rows = 0, columns = 0;
  /// For each row, one number of at least 0 for each column.
  SharedNumbers seconds;
  /// If true, rows and columns are the same layouts and no detour is shorter: but for rounding,
  /// seconds[a][c] <= seconds[a][b] + seconds[b][c]. Solvers are faster then.
  bool isShortest = false;
};

struct Edge {
  /// Two different nodes. There may be several edges between them.
  uint32_t a = 0, b = 0;
  uint32_t table = 0;
  /// The row of each option of `a`, and the column of each option of `b`.
  std::vector<uint32_t> rows, columns;
  /// Number of times that the table's seconds count, as often as the value is resharded; above 0.
  double times = 1;
};

struct Problem {
  std::vector<Node> nodes;
  std::vector<Table> tables;
  std::vector<Edge> edges;
  double bytesLimit = kInfinity;

  /// Returns the seconds of `edge` if its nodes `a` and `b` have these options.
  double seconds(const Edge &edge, uint32_t optionA, uint32_t optionB) const {
    const Table &table = tables[edge.table];
    return edge.times * table.seconds[edge.rows[optionA] * table.columns + edge.columns[optionB]];
  }
};

/// The number of an option for each node.
using Choice = std::vector<uint32_t>;

struct Evaluation {
  double seconds = 0, bytes = 0;
  /// One line for each way in which the choice is not allowed, with names; empty if it is legal and
  /// fits into memory.
  std::vector<std::string> faults;
};

/// Returns the cost of `choice`, and every way in which it is not allowed. Uses no code of solvers.
Evaluation evaluate(const Problem &problem, const Choice &choice);

/// Returns the errors of a problem itself: sizes that do not agree, negative or undefined numbers.
std::vector<std::string> faultsOf(const Problem &problem);

} // namespace weft::planner

#endif // WEFT_PLANNER_PROBLEM_H
