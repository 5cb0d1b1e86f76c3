//===- MeasuredRowsTest.cpp - predictions compared with published figures ----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compares the rows of validation/measured, some of which the machines' files hold, with
// predictions, and the errors with those that docs/Machines.md states.
//
//===----------------------------------------------------------------------===//

#include "weft/Cost/Predictor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

using namespace weft;
using namespace weft::cost;
using rt::CollectiveKind;

namespace {

const std::string source = WEFT_SOURCE_DIR;

/// The lines of a table of validation/measured, without the heading.
std::vector<std::vector<std::string>> readRows(const std::string &name) {
  std::ifstream file(source + "/validation/measured/" + name);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) {
      cells.push_back(cell);
    }
    rows.push_back(cells);
  }
  if (!rows.empty()) {
    rows.erase(rows.begin());
  }
  return rows;
}

desc::MachineSpec machine(const std::string &name) {
  auto loaded = desc::loadMachine(source + "/machines/" + name + ".textproto");
  EXPECT_TRUE(bool(loaded)) << desc::str(loaded.diagnostics());
  return loaded ? *loaded : desc::MachineSpec();
}

CollectiveKind kindOf(const std::string &word) {
  for (const rt::CollectiveKindEntry &entry : rt::kGroupKinds) {
    if (word == desc::wordOf(entry.kind)) {
      return entry.kind;
    }
  }
  ADD_FAILURE() << "there is no collective " << word;
  return CollectiveKind::AllReduce;
}

/// Relative errors of predictions, |predicted / measured - 1|.
struct Errors {
  size_t count = 0;
  double sum = 0, worst = 0;

  void add(double predicted, double measured) {
    double error = std::abs(predicted / measured - 1);
    ++count;
    sum += error;
    worst = std::max(worst, error);
  }
  double mean() const { return count ? sum / double(count) : 0; }
};

struct CollectiveRow {
  std::string source, machine, kind;
  Group group;
  double bytes, seconds;
};

std::vector<CollectiveRow> readCollectives() {
  std::vector<CollectiveRow> rows;
  for (const std::vector<std::string> &cells : readRows("collectives.csv")) {
    rows.push_back({cells[0],
                    cells[1],
                    cells[2],
                    {std::stoll(cells[3]), std::stoll(cells[4])},
                    std::stod(cells[5]),
                    std::stod(cells[6])});
  }
  return rows;
}

/// The machine that a row was measured on: AWS p4de has another network than machines/a100-8, of
/// 400 Gb/s for a node; the latency is that of its shortest all-reduce less that within a node.
desc::MachineSpec machineOf(const CollectiveRow &row) {
  desc::MachineSpec spec = machine(row.machine);
  if (row.source == "AWS p4de") {
    spec.clusterLink = {"efa", (161.2e-6 - 43.8e-6) / 2, 400e9 / 8 / 8};
  }
  return spec;
}

/// The rows of one source, kind and group, in the order of the file.
std::vector<std::vector<CollectiveRow>> groupRows() {
  std::vector<std::vector<CollectiveRow>> groups;
  for (const CollectiveRow &row : readCollectives()) {
    auto isAlike = [&](const std::vector<CollectiveRow> &group) {
      return group[0].source == row.source && group[0].kind == row.kind &&
             group[0].group == row.group;
    };
    auto found = std::find_if(groups.begin(), groups.end(), isAlike);
    (found == groups.end() ? groups.emplace_back() : *found).push_back(row);
  }
  return groups;
}

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 100 * share);
  return text;
}

/// Fails the test unless docs/Machines.md contains `line`.
void expectDocumented(const std::string &line) {
  static const std::string page = [] {
    std::ifstream file(source + "/docs/Machines.md");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }();
  EXPECT_NE(page.find(line + "\n"), page.npos) << "docs/Machines.md does not say\n" << line;
}

TEST(MeasuredRows, Collectives) {
  auto groups = groupRows();
  EXPECT_GT(groups.size(), 40u);
  for (const std::vector<CollectiveRow> &rows : groups) {
    Errors withTables, byFormulas;
    const CollectiveRow &first = rows.front();
    desc::MachineSpec spec = machineOf(first);
    desc::MachineSpec plain = spec;
    // Of a group across nodes the formula begins with what is known within one.
    std::erase_if(plain.device.measured.collectives, [&](const desc::CollectiveTime &time) {
      return time.nodes > 1 || !first.group.crossesNodes();
    });
    Predictor tables(spec), formulas(plain);
    for (const CollectiveRow &row : rows) {
      CollectiveKind kind = kindOf(row.kind);
      withTables.add(tables.collective(kind, row.group, row.bytes), row.seconds);
      byFormulas.add(formulas.collective(kind, row.group, row.bytes), row.seconds);
    }
    expectDocumented("| " + first.source + " | " + first.kind + " | " +
                     std::to_string(first.group.ranks) + "/" + std::to_string(first.group.nodes) +
                     " | " + std::to_string(rows.size()) + " | " + percent(withTables.mean()) +
                     " | " + percent(withTables.worst) + " | " + percent(byFormulas.mean()) + " |");
  }
}

TEST(MeasuredRows, Matmuls) {
  for (const char *name : {"a100-8", "b200-8"}) {
    desc::MachineSpec spec = machine(name);
    Predictor predictor(spec);
    Errors unseen, byPeak;
    for (const std::vector<std::string> &cells : readRows("matmuls.csv")) {
      if (cells[1] != name) {
        continue;
      }
      int64_t m = std::stoll(cells[2]), n = std::stoll(cells[3]), k = std::stoll(cells[4]);
      double flops = std::stod(cells[5]), seconds = 2.0 * double(m) * double(n) * double(k) / flops;
      auto isShape = [&](const desc::MatmulRate &rate) {
        return rate.m == m && rate.n == n && rate.k == k;
      };
      const auto &known = spec.device.measured.matmuls;
      if (std::none_of(known.begin(), known.end(), isShape)) {
        unseen.add(predictor.matmul(desc::Precision::BF16, m, n, k, 1, 1), seconds);
        byPeak.add(seconds * flops / *spec.device.peakFlopsBF16, seconds);
      }
    }
    expectDocumented("| " + std::string(name) + " | " + std::to_string(unseen.count) + " | " +
                     percent(unseen.mean()) + " | " + percent(unseen.worst) + " | " +
                     percent(byPeak.mean()) + " |");
  }
}

} // namespace
