//===- EngineTest.cpp - collectives with a partner that errs --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/Engine.h"

#include "backends/processes/CollectiveGreeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

using namespace weft::rt;
using namespace weft::rt::mpi;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

/// The messages of rank 1, in order, as changes of those that rank 0 sends first; and the requests
/// of rank 0.
struct Partner {
  std::deque<std::function<std::string(const std::string &sent)>> replies;
  /// The beginnings of messages and their whole sizes.
  std::deque<std::string> sent;
  std::vector<size_t> sizes;
  std::map<uint64_t, std::pair<char *, size_t>> receipts;
  uint64_t last = 0;
};
Partner partner;

TransportTable::Result send(uint64_t, const void *bytes, size_t count, int64_t, int32_t,
                            uint64_t *request) {
  partner.sent.emplace_back(static_cast<const char *>(bytes), std::min(count, size_t(1) << 16));
  partner.sizes.push_back(count);
  *request = ++partner.last;
  return nullptr;
}

TransportTable::Result receive(uint64_t, void *bytes, size_t count, int64_t, int32_t,
                               uint64_t *request) {
  *request = ++partner.last;
  partner.receipts[*request] = {static_cast<char *>(bytes), count};
  return nullptr;
}

/// Ends one request: sends at once, receipts with the next reply.
TransportTable::Result test(uint64_t *requests, size_t count, size_t *doneCount, size_t *done,
                            size_t *bytes) {
  *doneCount = 0;
  for (size_t i = count; i-- > 0 && *doneCount == 0;) {
    if (requests[i] == 0) {
      continue;
    }
    auto receipt = partner.receipts.find(requests[i]);
    bytes[0] = 0;
    if (receipt != partner.receipts.end()) {
      if (partner.replies.empty()) {
        return "rank 1 has nothing to say";
      }
      std::string message =
          partner.replies.front()(partner.sent.empty() ? "" : partner.sent.front());
      partner.replies.pop_front();
      auto [target, room] = receipt->second;
      bytes[0] = std::min(message.size(), room);
      std::memcpy(target, message.data(), bytes[0]);
    }
    requests[i] = 0;
    done[(*doneCount)++] = i;
  }
  return nullptr;
}

void cancel(uint64_t *request) { *request = 0; }

constexpr TransportTable kTable = {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr,
                                   send,    receive, test,    cancel,  0};

/// Rank 0 of two.
struct FirstRank {
  ControlChannel channel;
  FailureDetector detector{
      channel, 0, {"process 1 on 'a'", "process 2 on 'a'"}, "test", std::chrono::seconds(0)};
  Engine engine{kTable, 1, 2, 0, detector, std::chrono::seconds(60)};

  explicit FirstRank(decltype(Partner::replies) replies) {
    partner = Partner();
    partner.replies = std::move(replies);
  }
  /// Returns the failure of the run.
  std::string failure() {
    EXPECT_TRUE(detector.stopped());
    RunResult result = detector.serve([] { return true; }, [] { return FailureDetector::kNoWork; },
                                      [] { return std::map<int64_t, int64_t>(); });
    return result.failure ? result.failure->message : "none";
  }
};

std::string same(const std::string &sent) { return sent; }
std::string cut(const std::string &sent) { return sent.substr(0, sent.size() / 2); }
std::string without(const std::string &sent) {
  auto greeting = CollectiveGreeting::decode(sent);
  std::vector<char> bytes(CollectiveGreeting::kMostHead);
  return {bytes.data(),
          CollectiveGreeting::encode(bytes.data(), greeting->fingerprint, greeting->text, 0)};
}

auto bytesOfNumber(uint64_t number, size_t bytes = sizeof(uint64_t)) {
  return [=](const std::string &) {
    return std::string(reinterpret_cast<const char *>(&number), bytes);
  };
}
auto text(const char *words) {
  return [=](const std::string &) { return std::string(words); };
}

/// Runs an all-reduce of `count` floats.
bool reduce(FirstRank &rank, int64_t count) {
  std::vector<float> operand(size_t(count), 1), result = operand;
  Collective collective;
  collective.shape = {count};
  Communicator::Handle handle = rank.engine.prepare(collective, allRanks(2), {"step", 5, "loss"});
  return rank.engine.issue(handle, operand.data(), result.data()) && rank.engine.wait(handle) &&
         result == std::vector<float>(size_t(count), 2);
}

TEST(EngineTest, APartnerMayAnswer) {
  FirstRank rank({same});
  EXPECT_TRUE(reduce(rank, 4));
}

TEST(EngineTest, AGreetingThatIsNoneFailsTheRun) {
  FirstRank rank({cut});
  EXPECT_FALSE(reduce(rank, 4));
  EXPECT_THAT(rank.failure(),
              MatchesRegex("rank 1 has sent an invalid message to rank 0 in all-reduce .*loss.*"));
}

TEST(EngineTest, MissingElementsFailTheRun) {
  FirstRank rank({without});
  EXPECT_FALSE(reduce(rank, 4));
  EXPECT_THAT(rank.failure(), MatchesRegex("rank 1 has sent 0 bytes to rank 0, expected 16, in "
                                           "all-reduce .*loss.*"));
  FirstRank large({same, text("few")});
  EXPECT_FALSE(reduce(large, 1 << 20));
  EXPECT_THAT(large.failure(),
              HasSubstr("rank 1 has sent 3 bytes to rank 0, expected 2097152, in"));
}

TEST(EngineTest, ALargeTransferGoesInRounds) {
#ifdef WEFT_SANITIZED
  GTEST_SKIP() << "a sanitizer may touch all memory";
#endif
  FirstRank rank({same});
  auto count = int64_t(kMostBytes / sizeof(float)) + 1;
  std::unique_ptr<float[]> operand(new float[size_t(count)]); // Takes no memory until it is used.
  std::fill_n(operand.get(), 1 << 14, 1);
  Communicator::Handle handle =
      rank.engine.prepare({.kind = CollectiveKind::Transfer, .shape = {count}}, pairOf(0, 1),
                          {"forward", 5, "activations"});
  EXPECT_TRUE(rank.engine.issue(handle, operand.get(), nullptr) && rank.engine.wait(handle));
  EXPECT_THAT(partner.sizes, ElementsAre(partner.sent[0].size(), kMostBytes, sizeof(float)));
}

/// Ranks transfer with several others, and count what they do with each.
TEST(EngineTest, TransfersAreCountedByPair) {
  auto sameAsLast = [](const std::string &) { return partner.sent.back(); };
  FirstRank rank({sameAsLast, sameAsLast});
  float number = 1;
  for (RankGroup pair : {pairOf(0, 1), pairOf(1, 0)}) {
    Communicator::Handle handle = rank.engine.prepare(
        {.kind = CollectiveKind::Transfer, .shape = {0}}, pair, {"step", 5, "x"});
    EXPECT_TRUE(rank.engine.issue(handle, &number, &number) && rank.engine.wait(handle));
  }
  rank.engine.prepare({.kind = CollectiveKind::Transfer, .shape = {1}}, pairOf(2, 0),
                      {"s", 6, "y"});
  std::vector<int64_t> counts;
  for (const auto &[key, count] : rank.engine.begun()) {
    if (key > kGroupNumbers) {
      counts.push_back(count);
    }
  }
  EXPECT_THAT(counts, testing::UnorderedElementsAre(2, 0));
}

/// Runs `collect`, and returns what rank 1 has sent.
std::vector<std::string> collect(FirstRank &rank) {
  std::vector<std::string> taken;
  rank.engine.collect(std::string("own"), [&](int64_t from, std::span<const char> bytes) {
    if (from == 1) {
      taken.emplace_back(bytes.begin(), bytes.end());
    }
  });
  return taken;
}

TEST(EngineTest, CollectsWhatComes) {
  FirstRank rank({same, bytesOfNumber(5), text("texts")});
  EXPECT_THAT(collect(rank), ElementsAre("texts"));
}

TEST(EngineTest, CollectsNoMoreThanThereIsMemory) {
#ifdef WEFT_SANITIZED
  GTEST_SKIP() << "the sanitizer ends a program that wants so much";
#endif
  FirstRank rank({same, bytesOfNumber(uint64_t(1) << 62)});
  EXPECT_THAT(collect(rank), ElementsAre());
  EXPECT_EQ(rank.failure(), "rank 0 has no memory for the 4.00 EiB that rank 1 sends it for files");
}

TEST(EngineTest, CollectsNothingThatIsCut) {
  FirstRank rank({same, bytesOfNumber(5, 4)});
  EXPECT_THAT(collect(rank), ElementsAre());
  EXPECT_THAT(rank.failure(), HasSubstr("rank 1 has sent 4 bytes to rank 0, expected 8, in "));
  FirstRank other({same, bytesOfNumber(5), text("tex")});
  EXPECT_THAT(collect(other), ElementsAre());
  EXPECT_THAT(other.failure(), HasSubstr("rank 1 has sent 3 bytes to rank 0, expected 5, in "));
}

} // namespace
