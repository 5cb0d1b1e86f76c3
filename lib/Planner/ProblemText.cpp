//===- ProblemText.cpp - planning problems as text ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/ProblemText.h"

#include "LineReader.h"

#include <map>
#include <numeric>
#include <set>

namespace weft::planner {

namespace {

/// Returns the numbers from 0 to `count` - 1.
std::vector<uint32_t> inOrder(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

class ProblemReader {
public:
  ProblemReader(std::string_view text, const std::string &file) : lines(text, file) {}

  desc::Result<Problem> run() {
    while (lines.next()) {
      readLine();
    }
    if (lines.errors.empty()) {
      for (std::string &fault : faultsOf(problem)) {
        lines.errors.push_back({{lines.fileName(), 0, 0}, "", "", std::move(fault)});
      }
      if (problem.nodes.empty()) {
        lines.errors.push_back({{lines.fileName(), 0, 0}, "", "", "expected at least one node"});
      }
    }
    if (!lines.errors.empty()) {
      return std::move(lines.errors);
    }
    return std::move(problem);
  }

private:
  enum class Part { None, Node, Table, Edge };

  void readLine() {
    std::string word(lines.word("'limit', 'node', 'table' or 'edge'"));
    if (word == "limit") {
      problem.bytesLimit = lines.number();
    } else if (word == "node") {
      part = Part::Node;
      nodeNames.push_back(lines.name("the name of the node"));
      problem.nodes.push_back({nodeNames.back(), {}});
    } else if (word == "table") {
      readTable();
    } else if (word == "edge") {
      readEdge();
    } else {
      readDetail(word);
    }
  }

  void readTable() {
    part = Part::Table;
    tableNames.push_back(lines.name("the name of the table"));
    problem.tables.push_back({tableNames.back(), 0, 0, {}});
    if (lines.hasMore()) {
      problem.tables.back().isShortest = true;
      expect("shortest");
    }
  }

  void readEdge() {
    // The lines of an edge with errors are still parsed.
    part = Part::Edge;
    Edge edge;
    edge.a = lines.reference(nodeNames, "node").value_or(0);
    edge.b = lines.reference(nodeNames, "node").value_or(0);
    edge.table = lines.reference(tableNames, "table").value_or(0);
    if (lines.hasMore()) {
      expect("times");
      edge.times = lines.number();
    }
    if (!lines.hasFailed()) {
      edge.rows = inOrder(problem.nodes[edge.a].options.size());
      edge.columns = inOrder(problem.nodes[edge.b].options.size());
    }
    problem.edges.push_back(std::move(edge));
  }

  /// Parses a line that belongs to the one above.
  void readDetail(const std::string &word) {
    if (part == Part::Node && word == "option") {
      Option option{lines.name("the name of the option")};
      option.seconds = lines.number();
      option.bytes = lines.number();
      problem.nodes.back().options.push_back(std::move(option));
    } else if (part == Part::Table && word == "row") {
      readRow(problem.tables.back());
    } else if (part == Part::Edge && (word == "rows" || word == "columns")) {
      Edge &edge = problem.edges.back();
      std::vector<uint32_t> &places = word == "rows" ? edge.rows : edge.columns;
      for (places.clear(); lines.hasMore();) {
        places.push_back(lines.count());
      }
    } else if (!lines.hasFailed()) {
      const char *details[] = {"", "'option', ", "'row', ", "'rows', 'columns', "};
      lines.fail("expected " + std::string(details[size_t(part)]) +
                 "'limit', 'node', 'table' or 'edge', got '" + word + "'");
    }
  }

  void readRow(Table &table) {
    uint32_t columns = 0;
    for (; lines.hasMore(); ++columns) {
      table.seconds.append(lines.number());
    }
    if (table.rows == 0) {
      table.columns = columns;
    } else if (columns != table.columns) {
      lines.fail("expected " + std::to_string(table.columns) +
                 " numbers as in the first row, got " + std::to_string(columns));
    }
    ++table.rows;
  }

  void expect(const char *expected) {
    std::string quoted = "'" + std::string(expected) + "'";
    std::string word(lines.word(quoted));
    if (word != expected) {
      lines.fail("expected " + quoted + ", got '" + word + "'");
    }
  }

  LineReader lines;
  Part part = Part::None;
  Problem problem;
  std::vector<std::string> nodeNames, tableNames;
};

/// Returns the reference to each item: its name, or its number if others have the same name.
template <typename Items> std::vector<std::string> referencesTo(const Items &items) {
  std::map<std::string_view, size_t> count;
  for (const auto &thing : items) {
    ++count[thing.name];
  }
  std::vector<std::string> references;
  references.reserve(items.size());
  for (const auto &thing : items) {
    references.push_back(count[thing.name] == 1 ? quoted(thing.name)
                                                : "#" + std::to_string(references.size()));
  }
  return references;
}

std::string printPlaces(const char *what, const std::vector<uint32_t> &places) {
  if (places == inOrder(places.size())) {
    return "";
  }
  std::string text = std::string("  ") + what;
  for (uint32_t place : places) {
    text += " " + std::to_string(place);
  }
  return text + "\n";
}

std::string printTable(const Table &table) {
  std::string text = "table " + quoted(table.name) + (table.isShortest ? " shortest\n" : "\n");
  for (size_t row = 0; row < table.rows; ++row) {
    text += "  row";
    for (size_t column = 0; column < table.columns; ++column) {
      text += " " + shortest(table.seconds[row * table.columns + column]);
    }
    text += "\n";
  }
  return text;
}

} // namespace

std::string printProblem(const Problem &problem) {
  std::string text;
  if (problem.bytesLimit < kInfinity) {
    text += "limit " + shortest(problem.bytesLimit) + "\n";
  }
  for (const Node &node : problem.nodes) {
    text += "node " + quoted(node.name) + "\n";
    for (const Option &option : node.options) {
      text += "  option " + quoted(option.name) + " " + shortest(option.seconds) + " " +
              shortest(option.bytes) + "\n";
    }
  }
  for (const Table &table : problem.tables) {
    text += printTable(table);
  }
  std::vector<std::string> nodes = referencesTo(problem.nodes);
  std::vector<std::string> tables = referencesTo(problem.tables);
  for (const Edge &edge : problem.edges) {
    text += "edge " + nodes[edge.a] + " " + nodes[edge.b] + " " + tables[edge.table];
    text += edge.times == 1 ? "\n" : " times " + shortest(edge.times) + "\n";
    text += printPlaces("rows", edge.rows) + printPlaces("columns", edge.columns);
  }
  return text;
}

desc::Result<Problem> parseProblem(std::string_view text, const std::string &file) {
  return ProblemReader(text, file).run();
}

namespace {

std::string printChoice(const Problem &problem, const Choice &choice) {
  std::vector<std::string> nodes = referencesTo(problem.nodes);
  std::string text;
  for (size_t node = 0; node < choice.size(); ++node) {
    text += "  take " + nodes[node] + " " +
            referencesTo(problem.nodes[node].options)[choice[node]] + "\n";
  }
  return text;
}

class SolutionReader {
public:
  SolutionReader(const Problem &problem, std::string_view text, const std::string &file)
      : problem(problem), lines(text, file) {
    for (const Node &node : problem.nodes) {
      nodeNames.push_back(node.name);
    }
  }

  desc::Result<Solution> run() {
    while (lines.next()) {
      readLine(std::string(lines.word("a word")));
    }
    if (lines.errors.empty()) {
      demandAll();
    }
    if (!lines.errors.empty()) {
      return std::move(lines.errors);
    }
    return std::move(solution);
  }

private:
  void readLine(const std::string &word) {
    std::map<std::string, double *> numbers = {{"seconds", &solution.seconds},
                                               {"bytes", &solution.bytes},
                                               {"bound", &solution.lowerBound},
                                               {"smallest", &solution.smallestBytes}};
    std::map<std::string, size_t *> counts = {{"width", &solution.width},
                                              {"left", &solution.optionsLeft}};
    if (word == "take" && taken) {
      return readTake();
    }
    if (!said.insert(word).second) {
      return lines.fail("'" + word + "' stands here a second time");
    }
    if (auto number = numbers.find(word); number != numbers.end()) {
      *number->second = lines.number();
    } else if (auto count = counts.find(word); count != counts.end()) {
      *count->second = lines.count();
    } else if (word != "choice") {
      return lines.fail("expected 'seconds', 'bytes', 'bound', 'width', 'left', 'choice', "
                        "'smallest' or below these 'take', got '" +
                        word + "'");
    }
    taken = word == "choice" ? &solution.choice : word == "smallest" ? &solution.smallest : nullptr;
    if (taken) {
      taken->assign(problem.nodes.size(), kNothing);
    }
  }

  void readTake() {
    std::optional<uint32_t> node = lines.reference(nodeNames, "node");
    std::vector<std::string> names;
    for (size_t option = 0; node && option < problem.nodes[*node].options.size(); ++option) {
      names.push_back(problem.nodes[*node].options[option].name);
    }
    std::optional<uint32_t> option = lines.reference(names, "option");
    if (option && (*taken)[*node] != kNothing) {
      lines.fail("an option of node " + quoted(nodeNames[*node]) + " was taken before");
    } else if (option) {
      (*taken)[*node] = *option;
    }
  }

  void demandAll() {
    auto demand = [&](bool holds, const std::string &message) {
      if (!holds) {
        lines.errors.push_back({{lines.fileName(), 0, 0}, "", "", message});
      }
    };
    for (const char *word : {"seconds", "bytes", "bound", "width", "left"}) {
      demand(said.contains(word), "expected a line '" + std::string(word) + "'");
    }
    for (const Choice *choice : {&solution.choice, &solution.smallest}) {
      for (size_t node = 0; node < choice->size(); ++node) {
        demand((*choice)[node] != kNothing,
               "expected 'take' for node " + quoted(nodeNames[node]) + " in each choice");
      }
    }
  }

  static constexpr uint32_t kNothing = UINT32_MAX;

  const Problem &problem;
  LineReader lines;
  std::vector<std::string> nodeNames;
  std::set<std::string> said;
  Solution solution;
  /// The choice that the current lines belong to.
  Choice *taken = nullptr;
};

} // namespace

std::string printSolution(const Problem &problem, const Solution &solution) {
  std::string text = "seconds " + shortest(solution.seconds) + "\n" + "bytes " +
                     shortest(solution.bytes) + "\n" + "bound " + shortest(solution.lowerBound) +
                     "\n" + "width " + std::to_string(solution.width) + "\n" + "left " +
                     std::to_string(solution.optionsLeft) + "\n";
  if (solution.found()) {
    text += "choice\n" + printChoice(problem, solution.choice);
  }
  if (!solution.smallest.empty()) {
    text += "smallest " + shortest(solution.smallestBytes) + "\n" +
            printChoice(problem, solution.smallest);
  }
  return text;
}

desc::Result<Solution> parseSolution(const Problem &problem, std::string_view text,
                                     const std::string &file) {
  return SolutionReader(problem, text, file).run();
}

std::string printEvaluation(const Evaluation &evaluation) {
  std::string text = "seconds " + shortest(evaluation.seconds) + "\n" + "bytes " +
                     shortest(evaluation.bytes) + "\n";
  for (const std::string &fault : evaluation.faults) {
    text += fault + "\n";
  }
  return text;
}

} // namespace weft::planner
