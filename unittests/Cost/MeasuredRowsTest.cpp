//===- MeasuredRowsTest.cpp - predictions beside what others measured --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The rows of validation/measured, a part of which the machines' files hold, against
// predictions. Prints the errors that docs/Machines.md shows.
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
using desc::CollectiveKind;

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

CollectiveKind kindOf(const std::string &name) {
  return name == "ALL_REDUCE"   ? CollectiveKind::AllReduce
         : name == "ALL_GATHER" ? CollectiveKind::AllGather
                                : CollectiveKind::ReduceScatter;
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

/// The mean error that all rows of one source, kind and group may have: with the tables of the
/// machine's file, and by the formulas alone.
struct Bound {
  const char *source, *kind;
  Group group;
  double withTables, byFormulas;
};

void judge(const Bound &bound) {
  Errors withTables, byFormulas;
  for (const CollectiveRow &row : readCollectives()) {
    if (row.source != bound.source || row.kind != bound.kind || row.group != bound.group) {
      continue;
    }
    desc::MachineSpec spec = machineOf(row);
    CollectiveKind kind = kindOf(row.kind);
    withTables.add(Predictor(spec).collective(kind, row.group, row.bytes), row.seconds);
    // Of a group across nodes the formula begins with what is known within one.
    std::erase_if(spec.device.measured.collectives, [&](const desc::CollectiveTime &time) {
      return time.nodes > 1 || !row.group.crossesNodes();
    });
    byFormulas.add(Predictor(spec).collective(kind, row.group, row.bytes), row.seconds);
  }
  std::printf("| %s | %s | %lld on %lld | %zu | %.1f %% | %.1f %% | %.1f %% |\n", bound.source,
              bound.kind, (long long)bound.group.ranks, (long long)bound.group.nodes,
              withTables.count, 100 * withTables.mean(), 100 * withTables.worst,
              100 * byFormulas.mean());
  std::string name = std::string(bound.source) + " " + bound.kind;
  EXPECT_GT(withTables.count, 0u) << name;
  EXPECT_LE(withTables.mean(), bound.withTables) << name << " of " << bound.group.ranks;
  EXPECT_LE(byFormulas.mean(), bound.byFormulas) << name << " of " << bound.group.ranks;
}

/// Every source, kind and group of the rows stands here once.
constexpr Bound bounds[] = {
    {"vTrain", "ALL_REDUCE", {2}, 0.02, 0.35},
    {"vTrain", "ALL_REDUCE", {3}, 0.07, 0.23},
    {"vTrain", "ALL_REDUCE", {4}, 0.04, 0.21},
    {"vTrain", "ALL_REDUCE", {5}, 0.04, 0.13},
    {"vTrain", "ALL_REDUCE", {6}, 0.07, 0.16},
    {"vTrain", "ALL_REDUCE", {7}, 0.06, 0.17},
    {"vTrain", "ALL_REDUCE", {8}, 0.04, 0.17},
    {"ml-engineering (A100)", "ALL_REDUCE", {8}, 0.1, 0.2},
    {"AWS p4de", "ALL_REDUCE", {16, 2}, 0.23, 0.23},
    {"ml-engineering (H200)", "ALL_REDUCE", {4}, 0.01, 0.02},
    {"ml-engineering (H200)", "ALL_REDUCE", {5}, 0.15, 0.16},
    {"ml-engineering (H200)", "ALL_REDUCE", {6}, 0.09, 0.22},
    {"ml-engineering (H200)", "ALL_REDUCE", {7}, 0.04, 0.28},
    {"ml-engineering (H200)", "ALL_REDUCE", {8}, 0.02, 0.17},
    {"ml-engineering (H200)", "ALL_GATHER", {8}, 0.01, 0.01},
    {"ml-engineering (H200)", "REDUCE_SCATTER", {8}, 0.01, 0.01},
    {"AWS p5", "ALL_REDUCE", {16, 2}, 0.04, 0.24},
    {"AWS p5 on EKS", "ALL_REDUCE", {16, 2}, 0.35, 0.49},
    {"ml-engineering (B200)", "ALL_REDUCE", {4}, 0.01, 0.12},
    {"ml-engineering (B200)", "ALL_REDUCE", {5}, 0.01, 0.13},
    {"ml-engineering (B200)", "ALL_REDUCE", {6}, 0.08, 0.3},
    {"ml-engineering (B200)", "ALL_REDUCE", {7}, 0.04, 0.35},
    {"ml-engineering (B200)", "ALL_REDUCE", {8}, 0.05, 0.22},
    {"ml-engineering (B200)", "ALL_REDUCE", {32, 4}, 0.13, 0.59},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {8}, 0.01, 0.25},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {16, 2}, 0.06, 0.22},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {32, 4}, 0.54, 0.66},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {64, 8}, 0.69, 0.77},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {128, 16}, 0.72, 0.79},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {256, 32}, 0.77, 0.83},
    {"Ultra-Scale Playbook", "ALL_REDUCE", {512, 64}, 0.88, 0.91},
    {"Ultra-Scale Playbook", "ALL_GATHER", {8}, 0.29, 0.29},
    {"Ultra-Scale Playbook", "ALL_GATHER", {16, 2}, 0.41, 0.41},
    {"Ultra-Scale Playbook", "ALL_GATHER", {32, 4}, 0.57, 0.57},
    {"Ultra-Scale Playbook", "ALL_GATHER", {64, 8}, 0.69, 0.69},
    {"Ultra-Scale Playbook", "ALL_GATHER", {128, 16}, 0.65, 0.65},
    {"Ultra-Scale Playbook", "ALL_GATHER", {256, 32}, 0.72, 0.72},
    {"Ultra-Scale Playbook", "ALL_GATHER", {512, 64}, 0.81, 0.81},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {8}, 0.29, 0.29},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {16, 2}, 0.42, 0.42},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {32, 4}, 0.58, 0.58},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {64, 8}, 0.69, 0.69},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {128, 16}, 0.66, 0.66},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {256, 32}, 0.73, 0.73},
    {"Ultra-Scale Playbook", "REDUCE_SCATTER", {512, 64}, 0.81, 0.81},
};

TEST(MeasuredRows, Collectives) {
  for (const Bound &bound : bounds) {
    judge(bound);
  }
  for (const CollectiveRow &row : readCollectives()) {
    EXPECT_EQ(std::count_if(std::begin(bounds), std::end(bounds),
                            [&](const Bound &bound) {
                              return row.source == bound.source && row.kind == bound.kind &&
                                     row.group == bound.group;
                            }),
              1)
        << row.source << " " << row.kind << " of " << row.group.ranks;
  }
}

TEST(MeasuredRows, Products) {
  for (const char *name : {"a100-8", "b200-8"}) {
    desc::MachineSpec spec = machine(name);
    Predictor predictor(spec);
    Errors unseen, byPeak;
    for (const std::vector<std::string> &cells : readRows("products.csv")) {
      if (cells[1] != name) {
        continue;
      }
      int64_t m = std::stoll(cells[2]), n = std::stoll(cells[3]), k = std::stoll(cells[4]);
      double flops = std::stod(cells[5]), seconds = 2.0 * double(m) * double(n) * double(k) / flops;
      auto isShape = [&](const desc::ProductRate &rate) {
        return rate.m == m && rate.n == n && rate.k == k;
      };
      const auto &known = spec.device.measured.products;
      if (std::none_of(known.begin(), known.end(), isShape)) {
        unseen.add(predictor.product(desc::Precision::BF16, m, n, k, 1, 1), seconds);
        byPeak.add(seconds * flops / *spec.device.peakFlopsBF16, seconds);
      }
    }
    std::printf("| %s | %zu | %.1f %% | %.1f %% | %.0f %% |\n", name, unseen.count,
                100 * unseen.mean(), 100 * unseen.worst, 100 * byPeak.mean());
    EXPECT_GT(unseen.count, 100u);
    EXPECT_LE(unseen.mean(), 0.11) << name;
  }
}

} // namespace
