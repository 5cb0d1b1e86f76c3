//===- CollectivesTest.cpp - collectives against their definition -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "conformance/Conformance.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <utility>

using namespace weft::rt;
using namespace weft::rt::conformance;

namespace {

/// Returns true if the backend may sum this collective in any order.
bool isLoose(const Collective &collective) {
  return isReduction(collective.kind) && collective.reduction == ReductionKind::Sum && !isExact();
}

/// Returns the ranks' operands. They are kept, since most collectives of a test have the same sizes
/// and making operands takes longer than running the collective.
const Buffers &operandsOf(ElementType type, uint64_t elements, int64_t ranks) {
  static std::map<ElementType, Buffers> kept;
  static std::pair<uint64_t, int64_t> size;
  if (std::exchange(size, {elements, ranks}) != std::pair(elements, ranks)) {
    kept.clear();
  }
  Buffers &operands = kept[type];
  for (auto rank = int64_t(operands.size()); rank < ranks; ++rank) {
    operands.push_back(makeOperand(type, elements, rank));
  }
  return operands;
}

int64_t countRanks(std::span<const Axis> mesh) {
  return std::accumulate(mesh.begin(), mesh.end(), int64_t(1),
                         [](int64_t count, const Axis &axis) { return count * axis.size; });
}

/// Runs `collective` `times` times on all ranks of `mesh`, each time with the same operands, and
/// expects the defined results: the same bits, unless the backend may sum in any order.
void expectAsDefined(const Collective &collective, const std::vector<Axis> &mesh, bool inPlace,
                     int times = 1) {
  auto backend = makeBackendUnderTest(countRanks(mesh), std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  uint64_t elements = 1;
  for (int64_t size : collective.shape) {
    elements *= uint64_t(size);
  }
  const Buffers &operands = operandsOf(collective.type, elements, backend->rankCount());
  Buffers results(operands.size());
  Buffers expected = expectedResults(collective, mesh, operands, backend->ranksHere());
  bool mayDiffer = isLoose(collective);
  auto margins = mayDiffer ? marginsOf(collective, mesh, operands, backend->ranksHere())
                           : std::vector<std::vector<double>>();
  auto isDefined = [&](size_t rank) {
    return mayDiffer ? isNear(collective.type, expected[rank], results[rank], margins[rank])
                     : results[rank] == expected[rank];
  };
  size_t members = groupOver(collective.axes, 0, mesh).ranks.size();
  size_t resultBytes = resultElements(collective, members) * sizeOf(collective.type);
  RunResult run = backend->run([&](Communicator &communicator) {
    size_t rank = size_t(communicator.rank());
    RankGroup group = groupOver(collective.axes, communicator.rank(), mesh);
    auto handle = communicator.prepare(collective, group, {"test", 0, "the only one"});
    std::vector<char> operand, result;
    for (int i = 0; i < times; ++i) {
      operand = operands[rank];
      result.assign(resultBytes, 0x55);
      void *target = inPlace ? operand.data() : result.data();
      if (!communicator.run(handle, operand.data(), target)) {
        return;
      }
      results[rank] = inPlace ? operand : result;
      if (!isDefined(rank)) {
        return;
      }
    }
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
  for (RankRange here = backend->ranksHere(); here.count > 0; ++here.first, --here.count) {
    size_t rank = size_t(here.first);
    EXPECT_TRUE(isDefined(rank)) << "on rank " << rank;
  }
}

std::vector<Axis> line(int64_t ranks) { return {{"all", ranks}}; }

using Sizes = std::tuple<int64_t, int64_t>;

class Collectives : public testing::TestWithParam<Sizes> {
protected:
  int64_t ranks() const { return std::get<0>(GetParam()); }
  int64_t size() const { return std::get<1>(GetParam()); }

  /// A shape of three dimensions in which `dim` can be cut for all ranks.
  std::vector<int64_t> shape(std::initializer_list<uint32_t> cut) const {
    std::vector<int64_t> result = {2, size(), 3};
    for (uint32_t dim : cut) {
      result[dim] *= ranks();
    }
    return result;
  }
};

TEST_P(Collectives, AllReduce) {
  for (ElementType type : {ElementType::F64, ElementType::F32, ElementType::I64, ElementType::I32,
                           ElementType::BF16, ElementType::F16}) {
    for (ReductionKind reduction : {ReductionKind::Sum, ReductionKind::Max}) {
      for (bool inPlace : {false, true}) {
        Collective collective = {CollectiveKind::AllReduce, reduction, type, {0}, {size()}, 0, 0};
        expectAsDefined(collective, line(ranks()), inPlace);
      }
    }
  }
}

TEST_P(Collectives, AllGather) {
  for (uint32_t dim : {0u, 1u, 2u}) {
    Collective collective = {
        CollectiveKind::AllGather, ReductionKind::Sum, ElementType::F32, {0}, shape({}), dim, 0};
    expectAsDefined(collective, line(ranks()), false);
  }
}

TEST_P(Collectives, ReduceScatter) {
  for (uint32_t dim : {0u, 1u, 2u}) {
    for (ReductionKind reduction : {ReductionKind::Sum, ReductionKind::Max}) {
      for (ElementType type : {ElementType::F64, ElementType::BF16, ElementType::F16}) {
        Collective collective = {
            CollectiveKind::ReduceScatter, reduction, type, {0}, shape({dim}), dim, 0};
        expectAsDefined(collective, line(ranks()), false);
      }
    }
  }
}

TEST_P(Collectives, AllToAll) {
  for (uint32_t dim : {0u, 1u, 2u}) {
    for (uint32_t dim2 : {0u, 1u, 2u}) {
      Collective collective = {CollectiveKind::AllToAll,
                               ReductionKind::Sum,
                               dim == 0 ? ElementType::BF16 : ElementType::I32,
                               {0},
                               shape({dim}),
                               dim,
                               dim2};
      expectAsDefined(collective, line(ranks()), false);
    }
  }
}

TEST_P(Collectives, Permute) {
  // A ring, the reverse, and the identity.
  std::vector<uint32_t> ring, reverse, same;
  for (uint32_t rank = 0, count = uint32_t(ranks()); rank < count; ++rank) {
    ring.push_back((rank + 1) % count);
    reverse.push_back(count - 1 - rank);
    same.push_back(rank);
  }
  for (const std::vector<uint32_t> &sources : {ring, reverse, same}) {
    for (ElementType type :
         {ElementType::F64, ElementType::BF16, ElementType::F16, ElementType::I32}) {
      Collective collective = {
          CollectiveKind::Permute, ReductionKind::Sum, type, {0}, shape({}), 0, 0, sources};
      expectAsDefined(collective, line(ranks()), false);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(RanksAndSizes, Collectives,
                         testing::Combine(testing::Values(1, 2, 4, 7, 8),
                                          testing::Values(0, 1, 4, 100, 1000, 10000)));

TEST(Groups, EverySetOfAxesInEveryOrder) {
  std::vector<Axis> mesh = {{"a", 2}, {"b", 3}, {"c", 2}};
  const std::vector<uint32_t> sets[] = {{},     {0},    {1},    {2},       {0, 1},   {1, 0},
                                        {0, 2}, {2, 0}, {1, 2}, {0, 1, 2}, {2, 1, 0}};
  for (const std::vector<uint32_t> &axes : sets) {
    for (CollectiveKind kind : {CollectiveKind::AllReduce, CollectiveKind::AllGather,
                                CollectiveKind::ReduceScatter, CollectiveKind::AllToAll}) {
      expectAsDefined({kind, ReductionKind::Sum, ElementType::F32, axes, {12, 5}, 0, 1}, mesh,
                      false);
    }
  }
}

TEST(Groups, PermutesCountRanksByTheOrderOfAxes) {
  std::vector<Axis> mesh = {{"a", 2}, {"b", 3}, {"c", 2}};
  for (const std::vector<uint32_t> &axes : {std::vector<uint32_t>{0, 1}, {1, 0}, {2, 0}, {1}}) {
    std::vector<uint32_t> sources;
    for (int64_t ranks = int64_t(groupOver(axes, 0, mesh).ranks.size()), rank = 0; rank < ranks;
         ++rank) {
      sources.push_back(uint32_t((rank * 5 + 2) % ranks)); // No size here is a multiple of 5.
    }
    expectAsDefined({CollectiveKind::Permute,
                     ReductionKind::Sum,
                     ElementType::F32,
                     axes,
                     {12, 5},
                     0,
                     0,
                     sources},
                    mesh, false);
  }
}

TEST(Groups, ScalarsAndMoreRanksThanCores) {
  Collective sum = {CollectiveKind::AllReduce, ReductionKind::Sum, ElementType::F64, {0}, {}, 0, 0};
  expectAsDefined(sum, line(32), false);
  expectAsDefined(sum, line(32), true);
}

/// Tests the margins for backends that sum in any order.
TEST(Margins, HoldSumsInAnotherOrderAndNoMore) {
  std::vector<Axis> mesh = line(8);
  RankRange all = {0, 8};
  for (ElementType type : {ElementType::F64, ElementType::F32, ElementType::BF16}) {
    Collective sum = {CollectiveKind::AllReduce, ReductionKind::Sum, type, {0}, {100}, 0, 0};
    Buffers operands;
    for (int64_t rank = 0; rank < 8; ++rank) {
      operands.push_back(makeOperand(type, 100, rank));
    }
    std::vector<char> expected = expectedResults(sum, mesh, operands, all)[0];
    std::vector<double> margins = marginsOf(sum, mesh, operands, all)[0];
    std::reverse(operands.begin(), operands.end());
    std::vector<char> other = expectedResults(sum, mesh, operands, all)[0];
    EXPECT_TRUE(isNear(type, expected, other, margins));
    operands[3] = makeOperand(type, 100, 9);
    EXPECT_FALSE(isNear(type, expected, expectedResults(sum, mesh, operands, all)[0], margins));
    other.back() ^= 0x40; // Twice or half as much, if not the wrong sign.
    EXPECT_FALSE(isNear(type, expected, other, margins));
    EXPECT_FALSE(isNear(type, expected, {}, margins));
  }
}

TEST(Repetition, SameBitsEveryTime) {
  Collective sum = {
      CollectiveKind::AllReduce, ReductionKind::Sum, ElementType::F32, {0}, {3000}, 0, 0};
  expectAsDefined(sum, line(4), true, 300);
  expectAsDefined(sum, line(4), false, 300);
}

TEST(Repetition, ManyDifferentCollectivesInARow) {
  std::vector<Axis> mesh = {{"a", 2}, {"b", 2}};
  auto backend = makeBackendUnderTest(countRanks(mesh), std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  std::vector<double> sums(4);
  RunResult run = backend->run([&](Communicator &communicator) {
    auto sumOver = [&](const std::vector<uint32_t> &axes, uint32_t instruction) {
      return communicator.prepare({.type = ElementType::F64, .shape = {1}},
                                  groupOver(axes, communicator.rank(), mesh),
                                  {"test", instruction, "sum"});
    };
    Communicator::Handle handles[] = {sumOver({0}, 0), sumOver({1}, 1), sumOver({0, 1}, 2)};
    double value = double(communicator.rank());
    for (int i = 0; i < 500; ++i) {
      for (auto handle : handles) {
        double sum = 0;
        if (!communicator.run(handle, &value, &sum)) {
          return;
        }
        value = sum / 4;
      }
      value = value * 4 + double(communicator.rank());
    }
    sums[size_t(communicator.rank())] = value;
  });
  EXPECT_FALSE(run.failure);
  // After the three sums all ranks hold the same number, their mean, which grows by 1.5.
  for (RankRange here = backend->ranksHere(); here.count > 0; ++here.first, --here.count) {
    EXPECT_EQ(sums[size_t(here.first)], 1.5 * 500 + double(here.first));
  }
}

TEST(Maximum, KeepsNotANumberFromAnyRank) {
  if (!isExact()) {
    GTEST_SKIP() << "its maxima may miss what is not a number";
  }
  for (int64_t bad = 0; bad < 3; ++bad) {
    auto backend = makeBackendUnderTest(3, std::chrono::seconds(60));
    if (!backend) {
      continue;
    }
    std::vector<double> results(3);
    RunResult run = backend->run([&](Communicator &communicator) {
      double value = communicator.rank() == bad ? std::nan("") : double(communicator.rank());
      auto handle = communicator.prepare(
          {.reduction = ReductionKind::Max, .type = ElementType::F64, .shape = {1}}, allRanks(3),
          {"test", 0, "maximum"});
      communicator.run(handle, &value, &results[size_t(communicator.rank())]);
    });
    EXPECT_FALSE(run.failure);
    for (RankRange here = backend->ranksHere(); here.count > 0; ++here.first, --here.count) {
      EXPECT_TRUE(std::isnan(results[size_t(here.first)]));
    }
  }
}

TEST(Issuing, IsDoneInOrderByTheNextWait) {
  std::vector<Axis> mesh = {{"a", 2}, {"b", 2}};
  auto backend = makeBackendUnderTest(4, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  // Small and large ones, over different groups; the second reads the result of the first.
  constexpr size_t kElements = 100000;
  RunResult run = backend->run([&](Communicator &link) {
    auto sumOver = [&](uint32_t axis, int64_t elements, uint32_t instruction) {
      return link.prepare({.type = ElementType::F64, .shape = {elements}},
                          groupOver({&axis, 1}, link.rank(), mesh), {"test", instruction, "sum"});
    };
    auto overA = sumOver(0, kElements, 0), overB = sumOver(1, kElements, 1), one = sumOver(1, 1, 2);
    std::vector<double> values(kElements, double(link.rank())), sums(kElements), all(kElements);
    double value = 1, count = 0;
    for (int i = 0; i < 20; ++i) {
      std::fill(sums.begin(), sums.end(), 0);
      ASSERT_TRUE(link.issue(overA, values.data(), sums.data()));
      ASSERT_TRUE(link.issue(one, &value, &count));
      ASSERT_TRUE(link.issue(overB, sums.data(), all.data()));
      ASSERT_TRUE(link.wait(one));
      EXPECT_EQ(count, 2);
      EXPECT_EQ(sums.back(), double(2 * (link.rank() % 2) + 2));
      ASSERT_TRUE(link.wait(overB));
      EXPECT_EQ(all.front(), 6);
      EXPECT_EQ(all.back(), 6);
      ASSERT_TRUE(link.wait(overA)); // Done long ago.
    }
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

TEST(Collecting, BringsTheBytesOfAllRanksToTheFirst) {
  auto backend = makeBackendUnderTest(4, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  RunResult run = backend->run([&](Communicator &link) {
    for (size_t unit : {size_t(0), size_t(1), size_t(100000), size_t(1) << 20}) {
      // Another length and other content on every rank.
      auto make = [&](int64_t rank) {
        return std::vector<char>(unit * size_t(rank), char('a' + rank));
      };
      std::vector<int64_t> order;
      std::vector<char> own = make(link.rank());
      ASSERT_TRUE(link.collect(own, [&](int64_t rank, std::span<const char> bytes) {
        order.push_back(rank);
        EXPECT_TRUE(std::ranges::equal(bytes, make(rank))) << "from rank " << rank;
      }));
      EXPECT_EQ(order.size(), link.rank() == 0 ? 4u : 0u);
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
    }
  });
  EXPECT_FALSE(run.failure) << run.failure->message;
}

TEST(Agreeing, TellsWhatTheFirstProcessSaysUnlessOneHasAnError) {
  auto backend = makeBackendUnderTest(2, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  bool leads = backend->ranksHere().has(0);
  Result<std::string> agreed = backend->agree(std::string(leads ? "step 7" : ""));
  ASSERT_TRUE(agreed) << agreed.error().message;
  EXPECT_EQ(*agreed, "step 7");
  agreed = backend->agree(Error{leads ? "the first has nothing" : "the second has nothing"});
  ASSERT_FALSE(agreed);
  EXPECT_EQ(agreed.error().message, "the first has nothing");
}

} // namespace
