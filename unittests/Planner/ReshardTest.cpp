//===- ReshardTest.cpp - the cheapest path from one sharding to another ---===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Paths are compared with an exhaustive search that shares nothing with the library: its graph
// has an edge wherever a collective between simulated ranks makes of one layout's elements
// exactly those of another.
//
//===----------------------------------------------------------------------===//

#include "weft/Planner/Reshard.h"

#include "weft/Planner/LayoutSpace.h"
#include "weft/Planner/Problem.h"

#include "SimulatedRanks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

using namespace weft::planner;

namespace {

constexpr double kUnreachable = 1e30;

int64_t ranksOver(const std::vector<int64_t> &mesh, const Axes &axes) {
  return std::accumulate(axes.begin(), axes.end(), int64_t(1),
                         [&](int64_t product, uint32_t axis) { return product * mesh[axis]; });
}

/// All ordered choices of any number of axes.
std::vector<Axes> arrangements(uint32_t axes) {
  std::vector<Axes> all = {{}};
  for (size_t at = 0; at < all.size(); ++at) {
    for (uint32_t axis = 0; axis < axes; ++axis) {
      if (std::find(all[at].begin(), all[at].end(), axis) == all[at].end()) {
        Axes longer = all[at];
        longer.push_back(axis);
        all.push_back(longer);
      }
    }
  }
  return all;
}

/// All layouts of a matrix.
std::vector<Layout> layoutsOf(const std::vector<int64_t> &mesh, const std::vector<int64_t> &shape) {
  std::vector<Layout> layouts;
  std::vector<Axes> choices = arrangements(uint32_t(mesh.size()));
  for (const Axes &rows : choices) {
    for (const Axes &columns : choices) {
      for (const Axes &pending : choices) {
        Axes all = rows;
        all.insert(all.end(), columns.begin(), columns.end());
        all.insert(all.end(), pending.begin(), pending.end());
        std::sort(all.begin(), all.end());
        if (std::adjacent_find(all.begin(), all.end()) == all.end() &&
            std::is_sorted(pending.begin(), pending.end()) &&
            shape[0] % ranksOver(mesh, rows) == 0 && shape[1] % ranksOver(mesh, columns) == 0) {
          layouts.push_back({{rows, columns}, pending});
        }
      }
    }
  }
  return layouts;
}

/// Every value is the sum of terms over all axes, so that a sum forgotten or done twice shows.
Axes allAxes(const std::vector<int64_t> &mesh) {
  Axes axes(mesh.size());
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

/// Returns the ranks' shards once nothing is pending.
std::optional<Ranks> meaning(const std::vector<int64_t> &mesh, const Ranks &ranks,
                             const Layout &layout) {
  return perform(mesh, ranks, layout, {StepKind::AllReduce, layout.unreduced, 0, 0, layout});
}

/// The price of a byte that is sent over these axes.
using Weight = double (*)(const Axes &axes);

double evenly(const Axes &) { return 1; }

/// Returns the dimension that `axis` cuts, and the number of shards of the axes after it there.
std::pair<size_t, int64_t> placeOf(const std::vector<int64_t> &mesh, const Layout &layout,
                                   uint32_t axis) {
  for (size_t dim = 0; dim < layout.dims.size(); ++dim) {
    const Axes &axes = layout.dims[dim];
    auto at = std::find(axes.begin(), axes.end(), axis);
    if (at != axes.end()) {
      return {dim, ranksOver(mesh, Axes(at + 1, axes.end()))};
    }
  }
  return {layout.dims.size(), 0};
}

class Exhaustive {
public:
  Exhaustive(std::vector<int64_t> mesh, std::vector<int64_t> shape, Weight weight = evenly)
      : mesh(std::move(mesh)), shape(std::move(shape)), weight(weight),
        layouts(layoutsOf(this->mesh, this->shape)) {
    for (const Layout &layout : layouts) {
      held.push_back(hold(this->mesh, this->shape, layout, allAxes(this->mesh)));
    }
    distance.assign(layouts.size(), std::vector<double>(layouts.size(), kUnreachable));
    for (size_t from = 0; from < layouts.size(); ++from) {
      distance[from][from] = 0;
      addCollectives(from);
      addPermutes(from);
      addPartials(from);
    }
    closeUnderComposition();
  }

  ReshardProblem problem(size_t from, size_t to) const {
    ReshardProblem problem;
    problem.mesh = mesh;
    problem.shape = shape;
    problem.from = layouts[from];
    problem.to = layouts[to];
    return problem;
  }

  /// Bytes on the wire, times what the axes weigh.
  Price price() const {
    return [this](StepKind kind, const Axes &axes, double bytes) {
      return bytesSent(kind, ranksOver(mesh, axes), bytes) * weight(axes);
    };
  }

  const std::vector<int64_t> mesh, shape;
  const Weight weight;
  const std::vector<Layout> layouts;
  std::vector<Ranks> held;
  std::vector<std::vector<double>> distance;

private:
  double bytesOf(size_t layout) const {
    return double(held[layout][0].size() * held[layout][0][0].size());
  }

  void addEdge(size_t from, size_t to, StepKind kind, const Axes &axes) {
    double cost = price()(kind, axes, bytesOf(from));
    distance[from][to] = std::min(distance[from][to], cost);
  }

  void addCollectives(size_t from) {
    for (StepKind kind : {StepKind::AllReduce, StepKind::ReduceScatter, StepKind::AllGather,
                          StepKind::AllToAll, StepKind::Slice}) {
      for (const Axes &axes : arrangements(uint32_t(mesh.size()))) {
        for (uint32_t dim = 0; dim < 2 && !axes.empty(); ++dim) {
          auto result = perform(mesh, held[from], layouts[from], {kind, axes, dim, 1 - dim, {}});
          for (size_t to = 0; result && to < layouts.size(); ++to) {
            if (held[to] == *result) {
              addEdge(from, to, kind, axes);
            }
          }
        }
      }
    }
  }

  void addPermutes(size_t from) {
    for (size_t to = 0; to < layouts.size(); ++to) {
      const auto &a = layouts[from].dims, &b = layouts[to].dims;
      if (to == from || layouts[from].unreduced != layouts[to].unreduced ||
          ranksOver(mesh, a[0]) != ranksOver(mesh, b[0]) ||
          ranksOver(mesh, a[1]) != ranksOver(mesh, b[1])) {
        continue;
      }
      Axes axes;
      for (uint32_t axis : allAxes(mesh)) {
        if (placeOf(mesh, layouts[from], axis) != placeOf(mesh, layouts[to], axis)) {
          axes.push_back(axis);
        }
      }
      auto result =
          perform(mesh, held[from], layouts[from], {StepKind::Permute, axes, 0, 0, layouts[to]});
      EXPECT_TRUE(result && *result == held[to]) << "a permutation that gives something else";
      addEdge(from, to, StepKind::Permute, axes);
    }
  }

  /// A value becomes pending over axes that neither cut nor are pending.
  void addPartials(size_t from) {
    for (size_t to = 0; to < layouts.size(); ++to) {
      const Axes &before = layouts[from].unreduced, &after = layouts[to].unreduced;
      if (layouts[from].dims == layouts[to].dims && before.size() < after.size() &&
          std::includes(after.begin(), after.end(), before.begin(), before.end())) {
        addEdge(from, to, StepKind::Partial, after);
      }
    }
  }

  void closeUnderComposition() {
    size_t count = layouts.size();
    for (size_t via = 0; via < count; ++via) {
      for (size_t from = 0; from < count; ++from) {
        for (size_t to = 0; to < count; ++to) {
          distance[from][to] =
              std::min(distance[from][to], distance[from][via] + distance[via][to]);
        }
      }
    }
  }
};

Price bytesOnTheWire(const std::vector<int64_t> &mesh) {
  return [mesh](StepKind kind, const Axes &axes, double bytes) {
    return bytesSent(kind, ranksOver(mesh, axes), bytes);
  };
}

/// Checks the path between every `stride`th pair of layouts.
void checkPairs(const Exhaustive &all, size_t stride) {
  size_t count = all.layouts.size();
  LayoutSpace space(all.mesh, 2);
  std::vector<uint32_t> numbers;
  numbers.reserve(count);
  for (const Layout &layout : all.layouts) {
    numbers.push_back(space.numberOf(layout));
  }
  std::vector<double> costs =
      space.costs(all.problem(0, 0), /*canPend=*/true, numbers, numbers, all.price());
  Problem shortest;
  shortest.tables = {{"all", uint32_t(count), uint32_t(count), costs, /*isShortest=*/true}};
  ASSERT_TRUE(faultsOf(shortest).empty());
  for (size_t pair = 0; pair < count * count; pair += stride) {
    ReshardProblem problem = all.problem(pair / count, pair % count);
    ReshardPath path = cheapestPath(problem, all.price());
    Ranks ranks = all.held[pair / count];
    Layout layout = problem.from;
    double bytes = 0;
    for (const Step &step : path.steps) {
      double operand = double(ranks[0].size() * ranks[0][0].size());
      bytes += all.price()(step.kind, step.axes, operand);
      auto next = perform(all.mesh, ranks, layout, step);
      ASSERT_TRUE(next) << "pair " << pair;
      ranks = *next;
      layout = step.to;
    }
    ASSERT_EQ(layout, problem.to) << "pair " << pair;
    ASSERT_EQ(meaning(all.mesh, ranks, layout), meaning(all.mesh, all.held[pair % count], layout))
        << "pair " << pair;
    ASSERT_NEAR(bytes, path.cost, 1e-9) << "pair " << pair;
    ASSERT_NEAR(costs[pair], path.cost, 1e-9) << "pair " << pair;
    ASSERT_NEAR(bytes, all.distance[pair / count][pair % count], 1e-9) << "pair " << pair;
  }
}

TEST(Reshard, EveryPairOnTwoAxesIsRightAndSendsTheLeast) {
  checkPairs(Exhaustive({2, 3}, {6, 6}), 1);
}

/// As within nodes and between them; a group over both goes at the slow pace.
TEST(Reshard, EveryPairOnASlowAndAFastAxisIsRightAndCostsTheLeast) {
  checkPairs(Exhaustive({2, 3}, {6, 6},
                        [](const Axes &axes) {
                          return std::find(axes.begin(), axes.end(), 0u) != axes.end() ? 20. : 1.;
                        }),
             1);
}

TEST(Reshard, EveryPairOnTwoEqualAxesIsRightAndSendsTheLeast) {
  checkPairs(Exhaustive({2, 2}, {4, 8}), 1);
}

TEST(Reshard, PairsOnAxesThatSomeDimensionsDoNotTake) { checkPairs(Exhaustive({2, 3}, {4, 6}), 1); }

TEST(LayoutSpace, NumbersLayoutsByTheirAxes) {
  LayoutSpace space({2, 3}, 2);
  EXPECT_EQ(space.digits(), 4u);
  EXPECT_EQ(space.inOrder(), 16u);
  EXPECT_EQ(space.size(), 18u); // Either dimension by both axes, the second one major.
  EXPECT_EQ(space.layout(space.numberOf(std::vector<uint32_t>{1, 3})), (Layout{{{0}, {}}, {1}}));
  uint32_t both = space.numberOf(std::vector<uint32_t>{2, 2});
  EXPECT_EQ(space.layout(both), (Layout{{{}, {0, 1}}, {}}));
  EXPECT_EQ(space.shards(both, 0), 1);
  EXPECT_EQ(space.shards(both, 1), 6);
  EXPECT_FALSE(space.isPending(both));
  EXPECT_TRUE(space.divides(both, {1, 12}));
  EXPECT_FALSE(space.divides(both, {12, 3}));
  EXPECT_GE(space.numberOf(Layout{{{}, {1, 0}}, {}}), 16u);
}

TEST(Reshard, PairsOnThreeAxesAreRightAndSendTheLeast) {
  checkPairs(Exhaustive({2, 2, 2}, {8, 4}), 31);
}

/// Of three equal axes only the last two are alike.
TEST(Reshard, PairsOnASlowAxisAndTwoFastAxesOfTheSameSizeAreRightAndCostTheLeast) {
  checkPairs(Exhaustive({2, 2, 2}, {8, 4},
                        [](const Axes &axes) {
                          return std::find(axes.begin(), axes.end(), 0u) != axes.end() ? 20. : 1.;
                        }),
             31);
}

ReshardProblem matrix(std::vector<int64_t> mesh, Layout from, Layout to) {
  ReshardProblem problem;
  problem.mesh = std::move(mesh);
  problem.shape = {64, 64};
  problem.from = std::move(from);
  problem.to = std::move(to);
  problem.elementBytes = problem.reducedBytes = 4;
  return problem;
}

std::vector<Step> cheapestStepsOf(const ReshardProblem &problem, const Price &price) {
  return cheapestPath(problem, price).steps;
}

std::vector<StepKind> kinds(const std::vector<Step> &steps) {
  std::vector<StepKind> kinds;
  kinds.reserve(steps.size());
  for (const Step &step : steps) {
    kinds.push_back(step.kind);
  }
  return kinds;
}

/// Of five axes the last three are alike, so that one search serves many layouts.
TEST(LayoutSpace, CostsOnFiveAxesAreThoseOfCheapestPaths) {
  std::vector<int64_t> mesh(5, 2);
  Price price = [&](StepKind kind, const Axes &axes, double bytes) {
    double pace = std::find(axes.begin(), axes.end(), 0u) != axes.end()   ? 20
                  : std::find(axes.begin(), axes.end(), 1u) != axes.end() ? 3
                                                                          : 1;
    return 10 + pace * bytesSent(kind, ranksOver(mesh, axes), bytes);
  };
  LayoutSpace space(mesh, 2);
  std::vector<uint32_t> numbers;
  numbers.reserve(space.inOrder());
  for (uint32_t number = 0; number < space.inOrder(); number += 79) {
    numbers.push_back(number);
  }
  ReshardProblem problem = matrix(mesh, {}, {});
  auto costs = space.costs(problem, /*canPend=*/true, numbers, numbers, price);
  for (size_t pair = 0; pair < costs.size(); pair += 7) {
    problem.from = space.layout(numbers[pair / numbers.size()]);
    problem.to = space.layout(numbers[pair % numbers.size()]);
    EXPECT_DOUBLE_EQ(costs[pair], cheapestPath(problem, price).cost) << "pair " << pair;
  }
}

TEST(Reshard, NothingToDoIsNoStep) {
  Layout rows{{{0}, {}}, {}};
  EXPECT_TRUE(cheapestStepsOf(matrix({4}, rows, rows), bytesOnTheWire({4})).empty());
}

TEST(Reshard, APendingSumIsScatteredAndNeverReducedWhole) {
  auto steps = cheapestStepsOf(matrix({4}, {{{}, {}}, {0}}, {{{0}, {}}, {}}), bytesOnTheWire({4}));
  EXPECT_EQ(kinds(steps), std::vector{StepKind::ReduceScatter});
}

TEST(Reshard, ALogSumExpIsReducedWhole) {
  ReshardProblem problem = matrix({4}, {{{}, {}}, {0}}, {{{0}, {}}, {}});
  problem.scatters = false;
  EXPECT_EQ(kinds(cheapestStepsOf(problem, bytesOnTheWire({4}))),
            (std::vector{StepKind::AllReduce, StepKind::Slice}));
}

TEST(Reshard, AxesThatChangePlacesAreOnePermute) {
  auto steps = cheapestStepsOf(matrix({4, 2}, {{{0, 1}, {}}, {}}, {{{1, 0}, {}}, {}}),
                               bytesOnTheWire({4, 2}));
  ASSERT_EQ(kinds(steps), std::vector{StepKind::Permute});
  EXPECT_EQ(permutationSources({4, 2}, steps[0].axes, {{{0, 1}, {}}, {}}, {{{1, 0}, {}}, {}}),
            (std::vector<uint32_t>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(Reshard, ASlowAxisIsReducedOverShardsOfTheFastOne) {
  // Axis 0 between nodes costs twenty times as much a byte as axis 1 within them, and a group over
  // both as much as the slow one.
  std::vector<int64_t> mesh = {4, 8};
  Price price = [&](StepKind kind, const Axes &axes, double bytes) {
    bool slow = std::find(axes.begin(), axes.end(), 0u) != axes.end();
    return bytesSent(kind, ranksOver(mesh, axes), bytes) * (slow ? 20 : 1);
  };
  auto steps = cheapestStepsOf(matrix(mesh, {{{}, {}}, {0, 1}}, {{{}, {}}, {}}), price);
  EXPECT_EQ(kinds(steps),
            (std::vector{StepKind::ReduceScatter, StepKind::AllReduce, StepKind::AllGather}));
  EXPECT_EQ(steps[0].axes, Axes{1});
  EXPECT_EQ(steps[1].axes, Axes{0});
}

TEST(Reshard, APendingSumIsReducedWhereThatSparesASlowAxisAndIsPendingAgain) {
  // As above. To gather rows over the slow axis of all that is pending would take eight times as
  // long as to gather shards of them.
  std::vector<int64_t> mesh = {4, 8};
  Price price = [&](StepKind kind, const Axes &axes, double bytes) {
    bool slow = std::find(axes.begin(), axes.end(), 0u) != axes.end();
    return bytesSent(kind, ranksOver(mesh, axes), bytes) * (slow ? 20 : 1);
  };
  ReshardProblem problem = matrix(mesh, {{{0}, {}}, {1}}, {{{}, {}}, {1}});
  ReshardPath path = cheapestPath(problem, price);
  EXPECT_EQ(kinds(path.steps), (std::vector{StepKind::ReduceScatter, StepKind::AllGather,
                                            StepKind::AllGather, StepKind::Partial}));
  LayoutSpace space(mesh, 2);
  auto costs = space.costs(problem, /*canPend=*/true, {space.numberOf(problem.from)},
                           {space.numberOf(problem.to)}, price);
  EXPECT_DOUBLE_EQ(costs[0], path.cost);
  // The greatest of numbers can't.
  problem.isSum = false;
  EXPECT_EQ(kinds(cheapestStepsOf(problem, price)), std::vector{StepKind::AllGather});
}

// To make a shard pending before it is gathered would copy less, but tables have no such ways.
TEST(Reshard, ValuesBecomePendingLastAlsoWhereThatCopiesMore) {
  std::vector<int64_t> mesh = {2, 2};
  Price price = [&](StepKind kind, const Axes &axes, double bytes) {
    return kind == StepKind::Partial ? bytes : bytesSent(kind, ranksOver(mesh, axes), bytes);
  };
  ReshardProblem problem = matrix(mesh, {{{0, 1}, {}}, {}}, {{{}, {}}, {1}});
  ReshardPath path = cheapestPath(problem, price);
  EXPECT_EQ(kinds(path.steps), (std::vector{StepKind::AllGather, StepKind::Partial}));
  LayoutSpace space(mesh, 2);
  auto costs = space.costs(problem, /*canPend=*/true, {space.numberOf(problem.from)},
                           {space.numberOf(problem.to)}, price);
  EXPECT_DOUBLE_EQ(costs[0], path.cost);
}

TEST(Reshard, LatencyMakesOneStepOfTwo) {
  std::vector<int64_t> mesh = {2, 2};
  Price price = [&](StepKind kind, const Axes &axes, double bytes) {
    return 1e9 + bytesSent(kind, ranksOver(mesh, axes), bytes);
  };
  auto steps = cheapestStepsOf(matrix(mesh, {{{}, {}}, {0, 1}}, {{{}, {}}, {}}), price);
  EXPECT_EQ(kinds(steps), std::vector{StepKind::AllReduce});
}

TEST(Reshard, TheSameProblemHasTheSameAnswer) {
  ReshardProblem problem = matrix({2, 2, 2}, {{{0, 1, 2}, {}}, {}}, {{{2}, {1, 0}}, {}});
  auto first = cheapestStepsOf(problem, bytesOnTheWire(problem.mesh));
  for (int repeat = 0; repeat < 10; ++repeat) {
    auto again = cheapestStepsOf(problem, bytesOnTheWire(problem.mesh));
    ASSERT_EQ(kinds(again), kinds(first));
    for (size_t step = 0; step < first.size(); ++step) {
      EXPECT_EQ(again[step].to, first[step].to);
    }
  }
}

} // namespace
