//===- ListenerTest.cpp - accepts connections of a run's processes --------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <poll.h>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::tcp;
using testing::ElementsAre;
using testing::MatchesRegex;

namespace {

constexpr std::chrono::seconds kPatience(60);
constexpr Bytes32 kKey = {1, 2, 3}, kOther = {1, 2, 4};

/// A listener at a loopback address, and the ranks that have come.
struct Entrance {
  Listener listener;
  std::vector<uint32_t> ranks;

  Entrance() {
    listener.open(std::move(*listenAt(resolve("127.0.0.1", 0)->front())), kKey,
                  Claim::Purpose::Messages);
  }
  Descriptor knock(std::string_view bytes = "") const {
    Result<Descriptor> socket = connectTo(listener.address(), Clock::now() + kPatience);
    EXPECT_TRUE(socket) << socket.error().message;
    EXPECT_TRUE(sendAll(*socket, bytes, Clock::now() + kPatience));
    return std::move(*socket);
  }
  /// Serves until `count` ranks have come.
  void serve(size_t count) {
    auto end = Clock::now() + kPatience;
    while (ranks.size() < count && Clock::now() < end) {
      waitFor(listener.descriptor(), POLLIN, end);
      listener.look([&](const Descriptor &, const Claim &claim) { ranks.push_back(claim.rank); });
    }
  }
  /// Connects as a rank.
  HandshakeResult come(uint32_t rank, const Bytes32 &key = kKey,
                       Claim::Purpose purpose = Claim::Purpose::Messages) const {
    Descriptor socket = knock();
    ConnectorHandshake handshake(key, {.purpose = purpose, .rank = rank});
    return performHandshake(socket, handshake, Clock::now() + kPatience);
  }
};

TEST(ListenerTest, PassesOnWhoProvesItself) {
  Entrance entrance;
  std::thread others([&] {
    EXPECT_EQ(entrance.come(1), HandshakeResult::Authenticated);
    EXPECT_EQ(entrance.come(2, kOther), HandshakeResult::Refused);
    EXPECT_EQ(entrance.come(3, kKey, Claim::Purpose::Control), HandshakeResult::Refused);
    EXPECT_EQ(entrance.come(4), HandshakeResult::Authenticated);
  });
  entrance.serve(2);
  others.join();
  EXPECT_THAT(entrance.ranks, ElementsAre(1, 4));
  EXPECT_THAT(
      entrance.listener.refusal(),
      MatchesRegex("; a process from 127.0.0.1:.* was sent away: it has come to the wrong port"));
}

TEST(ListenerTest, SilentStrangersOnlyDelay) {
  Entrance entrance;
  std::vector<Descriptor> strangers(Listener::kMostGuests + 44);
  for (Descriptor &stranger : strangers) {
    stranger = entrance.knock("weft");
  }
  std::thread other([&] { EXPECT_EQ(entrance.come(1), HandshakeResult::Authenticated); });
  entrance.serve(1);
  other.join();
  EXPECT_THAT(entrance.ranks, ElementsAre(1));
  EXPECT_EQ(entrance.listener.refusal(), ""); // They have not even said who they are.
}

TEST(ListenerTest, AConnectorDoesNotWaitForEver) {
  Descriptor silent = std::move(*listenAt(resolve("127.0.0.1", 0)->front()));
  auto end = Clock::now() + kPatience;
  Result<Descriptor> socket = connectTo(ownAddress(silent), end);
  ASSERT_TRUE(socket) << socket.error().message;
  ConnectorHandshake handshake(kKey, {});
  EXPECT_EQ(performHandshake(*socket, handshake, Clock::now() + std::chrono::milliseconds(50)),
            HandshakeResult::Silent);
}

} // namespace
