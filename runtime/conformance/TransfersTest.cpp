//===- TransfersTest.cpp - transfers from rank to rank ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "conformance/Conformance.h"

#include <gtest/gtest.h>
#include <utility>

using namespace weft::rt;
using namespace weft::rt::conformance;

namespace {

using Pair = std::pair<int64_t, int64_t>;

/// Calls `body` on `ranks` ranks and expects success.
void expectSuccess(int64_t ranks, const std::function<void(Communicator &link)> &body) {
  auto backend = makeBackendUnderTest(ranks, std::chrono::seconds(60));
  if (!backend) {
    return;
  }
  RunResult run = backend->run(body);
  EXPECT_FALSE(run.failure) << run.failure->message;
}

/// Prepares a transfer, from another place on each of the two ranks.
Communicator::Handle prepare(Communicator &link, Pair pair, ElementType type, int64_t elements) {
  return link.prepare({.kind = CollectiveKind::Transfer, .type = type, .shape = {elements}},
                      pairOf(pair.first, pair.second),
                      {link.rank() == pair.first ? "forward" : "backward", uint32_t(link.rank()),
                       "the activations"});
}

bool isIn(Communicator &link, Pair pair) {
  return link.rank() == pair.first || link.rank() == pair.second;
}

/// Transfers numbers of the sender; expects that they arrive. Does nothing on other ranks.
void transfer(Communicator &link, Pair pair, ElementType type, int64_t elements) {
  if (!isIn(link, pair)) {
    return;
  }
  bool sends = link.rank() == pair.first;
  std::vector<char> sent = makeOperand(type, uint64_t(elements), pair.first);
  std::vector<char> received(sent.size(), 0x55);
  ASSERT_TRUE(link.run(prepare(link, pair, type, elements), sends ? sent.data() : nullptr,
                       sends ? nullptr : received.data()));
  EXPECT_TRUE(sends || received == sent)
      << elements << " of " << nameOf(type) << " from rank " << pair.first;
}

TEST(Transfers, OfEveryTypeAndSizeInBothDirections) {
  expectSuccess(2, [](Communicator &link) {
    for (Pair pair : {Pair(0, 1), Pair(1, 0)}) {
      for (ElementType type : {ElementType::F64, ElementType::F32, ElementType::I64,
                               ElementType::I32, ElementType::BF16, ElementType::F16}) {
        for (int64_t elements : {0, 1, 7, 4096, 8193}) {
          transfer(link, pair, type, elements);
        }
      }
      transfer(link, pair, ElementType::F32, 1'500'001); // More than all buffers of messages.
    }
  });
}

TEST(Transfers, GoDownAChainManyTimes) {
  constexpr int64_t kRanks = 4, kElements = 9000;
  expectSuccess(kRanks, [](Communicator &link) {
    int64_t rank = link.rank();
    std::optional<Communicator::Handle> receives, sends;
    if (rank > 0) {
      receives = prepare(link, {rank - 1, rank}, ElementType::F64, kElements);
    }
    if (rank + 1 < kRanks) {
      sends = prepare(link, {rank, rank + 1}, ElementType::F64, kElements);
    }
    std::vector<double> numbers(kElements);
    for (int i = 0; i < 100; ++i) {
      numbers.assign(kElements, double(i));
      ASSERT_TRUE(!receives || link.run(*receives, nullptr, numbers.data()));
      EXPECT_EQ(numbers.front(), double(i + rank));
      EXPECT_EQ(numbers.back(), double(i + rank));
      for (double &number : numbers) {
        ++number;
      }
      ASSERT_TRUE(!sends || link.run(*sends, numbers.data(), nullptr));
    }
  });
}

TEST(Transfers, BetweenAllReducesOfOtherGroupsOfTheSameRanks) {
  std::vector<Axis> mesh = {{"a", 2}, {"b", 2}};
  expectSuccess(4, [&](Communicator &link) {
    auto sumOver = [&](const std::vector<uint32_t> &axes, uint32_t instruction) {
      return link.prepare({.type = ElementType::F64, .shape = {3000}},
                          groupOver(axes, link.rank(), mesh), {"test", instruction, "sum"});
    };
    Communicator::Handle sums[] = {sumOver({1}, 0), sumOver({0}, 1), sumOver({0, 1}, 2)};
    // Before each sum two pairs at a time, the second pairs in the group of the first sum.
    const std::vector<Pair> pairs[] = {{{0, 2}, {3, 1}}, {{0, 1}, {2, 3}}, {{2, 1}, {1, 2}}};
    std::vector<Communicator::Handle> transfers[3];
    for (size_t i = 0; i < 3; ++i) {
      for (Pair pair : pairs[i]) {
        if (isIn(link, pair)) {
          transfers[i].push_back(prepare(link, pair, ElementType::F64, 3000));
        }
      }
    }
    std::vector<double> numbers(3000), received(3000), all(3000);
    for (int time = 0; time < 100; ++time) {
      for (size_t i = 0; i < 3; ++i) {
        numbers.assign(3000, double(time + link.rank()));
        size_t next = 0;
        for (Pair pair : pairs[i]) {
          if (isIn(link, pair)) {
            bool sends = link.rank() == pair.first;
            ASSERT_TRUE(link.issue(transfers[i][next++], sends ? numbers.data() : nullptr,
                                   sends ? nullptr : received.data()));
          }
        }
        ASSERT_TRUE(link.run(sums[i], numbers.data(), all.data()));
        for (Pair pair : pairs[i]) {
          if (link.rank() == pair.second) {
            EXPECT_EQ(received.back(), double(time + pair.first));
          }
        }
        double expected = i == 0   ? 2 * time + link.rank() / 2 * 4 + 1
                          : i == 1 ? 2 * time + link.rank() % 2 * 2 + 2
                                   : 4 * time + 6;
        EXPECT_EQ(all.back(), expected);
      }
    }
  });
}

TEST(Transfers, OfManyPairsAtTheSameTime) {
  constexpr int64_t kRanks = 12;
  expectSuccess(kRanks, [](Communicator &link) {
    int64_t rank = link.rank();
    bool isOdd = rank % 2 == 1;
    for (int64_t elements : {1, 5000, 20001}) {
      // With the neighbors, then with a rank far away: first to the one side, then back.
      int64_t partners[] = {isOdd ? rank - 1 : rank + 1,
                            isOdd ? (rank + 1) % kRanks : (rank + kRanks - 1) % kRanks,
                            (rank + kRanks / 2) % kRanks};
      for (int64_t partner : partners) {
        Pair pair = std::minmax(rank, partner);
        transfer(link, pair, ElementType::F32, elements);
        transfer(link, {pair.second, pair.first}, ElementType::BF16, elements);
      }
    }
  });
}

TEST(Transfers, FromEachOfManyRanksToEach) {
  constexpr int64_t kRanks = 12;
  expectSuccess(kRanks, [](Communicator &link) {
    for (int64_t from = 0; from < kRanks; ++from) {
      for (int64_t to = 0; to < kRanks; ++to) {
        if (from != to) {
          transfer(link, {from, to}, ElementType::I32, 100 + from * kRanks + to);
        }
      }
    }
  });
}

} // namespace
