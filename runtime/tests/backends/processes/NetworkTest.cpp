//===- NetworkTest.cpp - messages between processes over TCP --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Network.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::tcp;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

constexpr std::chrono::seconds kPatience(60);

/// Ranks of one process, each of which a test may use in turn.
struct Ranks {
  std::vector<std::unique_ptr<Network>> all;
  std::vector<uint16_t> ports;
  uint64_t group = 0;

  explicit Ranks(int64_t size, std::chrono::nanoseconds patience = kPatience)
      : all(size_t(size)), ports(size_t(size)) {
    mpi::Launcher launcher;
    launcher.size = size;
    uint16_t port = ownAddress(*listenAt(resolve("127.0.0.1", 0)->front())).port();
    launcher.rendezvousPoint = {"127.0.0.1", port, "WEFT_PORT", ""};
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < size; ++rank) {
      launcher.rank = rank;
      threads.emplace_back([this, rank, launcher, patience] {
        Result<Bootstrap> bootstrap = gather(launcher, Secret(), kPatience);
        ASSERT_TRUE(bootstrap) << bootstrap.error().message;
        ports[size_t(rank)] = rank == 0 ? 0 : bootstrap->listener.address().port();
        all[size_t(rank)] = std::make_unique<Network>(std::move(*bootstrap), patience);
      });
    }
    for (std::thread &thread : threads) {
      thread.join();
    }
    makeGroup();
  }

  void makeGroup() {
    for (const std::unique_ptr<Network> &each : all) {
      each->makeGroup(int64_t(all.size()), &group);
    }
  }

  uint64_t send(size_t from, size_t to, const std::string &text, int32_t tag = 0) {
    uint64_t request = 0;
    EXPECT_EQ(all[from]->send(group, text.data(), text.size(), int64_t(to), tag, &request),
              nullptr);
    return request;
  }
  uint64_t receive(size_t at, size_t from, std::string &room, int32_t tag = 0) {
    uint64_t request = 0;
    EXPECT_EQ(all[at]->receive(group, room.data(), room.size(), int64_t(from), tag, &request),
              nullptr);
    return request;
  }
  /// Lets all ranks progress until `request` of `rank` is done; returns its bytes, or the error.
  std::string finish(size_t rank, uint64_t request) {
    auto end = Clock::now() + kPatience;
    while (Clock::now() < end) {
      for (size_t other = 0; other < all.size(); ++other) {
        size_t count = 0, index = 0, bytes = 0;
        uint64_t none = Network::kIdle;
        if (!all[other]) {
          continue;
        }
        const char *reason =
            all[other]->test({other == rank ? &request : &none, 1}, &count, &index, &bytes);
        if (reason || count > 0) {
          return reason ? reason : std::to_string(bytes);
        }
      }
    }
    return "a hang";
  }
};

TEST(NetworkTest, AnyTwoRanksMayBeginWithEachOther) {
  Ranks ranks(3);
  std::string text = "text", room(4, ' ');
  for (auto [from, to] : {std::pair(1, 2), std::pair(2, 1), std::pair(0, 2), std::pair(2, 0)}) {
    room.assign(4, ' ');
    uint64_t sent = ranks.send(size_t(from), size_t(to), text);
    uint64_t received = ranks.receive(size_t(to), size_t(from), room);
    EXPECT_EQ(ranks.finish(size_t(to), received), "4");
    EXPECT_EQ(ranks.finish(size_t(from), sent), "0");
    EXPECT_EQ(room, text);
  }
}

TEST(NetworkTest, LargeMessagesGoThroughFullSockets) {
  Ranks ranks(2);
  std::string large(size_t(64) << 20, 'x'), back(large.size(), 'y'), here(large.size(), ' '),
      there(large.size(), ' ');
  large.back() = 'z';
  uint64_t sent = ranks.send(0, 1, large);
  ranks.send(1, 0, back);
  uint64_t first = ranks.receive(1, 0, there), second = ranks.receive(0, 1, here);
  EXPECT_EQ(ranks.finish(1, first), std::to_string(large.size()));
  EXPECT_EQ(ranks.finish(0, second), std::to_string(back.size()));
  EXPECT_EQ(ranks.finish(0, sent), "0");
  EXPECT_TRUE(there == large && here == back);
}

TEST(NetworkTest, AFailedRunLeavesNothingToTheNext) {
  Ranks ranks(2);
  std::string large(size_t(32) << 20, 'x'), room(large.size(), ' '), text = "text", little(4, ' ');
  uint64_t sent = ranks.send(0, 1, large); // More than sockets take, so that it is half sent.
  uint64_t received = ranks.receive(1, 0, room);
  ranks.send(0, 1, text, 1);
  ranks.all[1]->cancel(&received);
  ranks.all[0]->cancel(&sent);
  EXPECT_EQ(sent, Network::kIdle);
  large.clear();
  large.shrink_to_fit();
  ranks.makeGroup();
  ranks.send(0, 1, text);
  EXPECT_EQ(ranks.finish(1, ranks.receive(1, 0, little)), "4");
  EXPECT_EQ(little, text);
}

TEST(NetworkTest, WhoHasGoneIsNamedAfterAWhile) {
  Ranks ranks(3);
  std::string text = "last", room(4, ' ');
  ranks.finish(2, ranks.send(2, 1, text));
  uint64_t received = ranks.receive(1, 2, room);
  EXPECT_EQ(ranks.finish(1, received), "4"); // They are connected then.
  received = ranks.receive(1, 2, room);
  ranks.all[2].reset();
  auto begin = Clock::now();
  EXPECT_THAT(ranks.finish(1, received),
              MatchesRegex("the connection to rank 2 at 127.0.0.1:.* is lost: it has ended the "
                           "connection"));
  EXPECT_GT(Clock::now() - begin, std::chrono::seconds(2)); // The FailureDetector comes first.
  EXPECT_THAT(ranks.finish(1, ranks.send(1, 2, text)), HasSubstr("to rank 2"));
}

TEST(NetworkTest, NobodyWaitsForEverAtTheBeginning) {
  Ranks ranks(3, std::chrono::milliseconds(200));
  std::string own = "own", all(9, ' ');
  EXPECT_STREQ(ranks.all[0]->allGather(ranks.group, own.data(), all.data(), own.size()),
               "waited 0.2 s for rank 1 at the start of the run");
}

TEST(NetworkTest, StrangersHarmNobody) {
  Ranks ranks(3);
  std::vector<Descriptor> strangers;
  // One that knows how to speak, and not what.
  std::vector<char> hello = ConnectorHandshake({}, Claim()).takeReply();
  for (std::string text : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("weft"),
                           std::string(hello.begin(), hello.end()) + std::string(56, 'x')}) {
    for (int i = 0; i < 100; ++i) {
      Address listener = resolve("127.0.0.1", ranks.ports[1])->front();
      Result<Descriptor> stranger = connectTo(listener, Clock::now() + kPatience);
      ASSERT_TRUE(stranger) << stranger.error().message;
      sendAll(*stranger, text, Clock::now() + kPatience);
      strangers.push_back(std::move(*stranger));
      size_t count = 0;
      ranks.all[1]->test({}, &count, nullptr, nullptr);
    }
  }
  std::string text = "text", room(4, ' ');
  ranks.send(2, 1, text);
  EXPECT_EQ(ranks.finish(1, ranks.receive(1, 2, room)), "4");
  EXPECT_EQ(room, text);
}

} // namespace
