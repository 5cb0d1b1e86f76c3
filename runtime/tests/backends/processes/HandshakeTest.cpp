//===- HandshakeTest.cpp - two processes recognize each other -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Handshake.h"

#include <gtest/gtest.h>

#include <cstring>

using namespace weft::rt;
using namespace weft::rt::tcp;

namespace {

using State = Handshake::State;
using Bytes = std::vector<char>;

constexpr Bytes32 kKey = {1, 2, 3}, kOther = {1, 2, 4};
constexpr Claim kClaim = {
    .purpose = Claim::Purpose::Messages, .port = 4000, .rank = 3, .size = 8, .unused = 0, .run = 7};

/// Gives `bytes` to one side in portions of at most `most`, as far as it takes them.
void give(Handshake &side, std::span<const char> bytes, size_t most = SIZE_MAX) {
  while (!bytes.empty() && !side.room().empty()) {
    size_t count = std::min({bytes.size(), side.room().size(), most});
    std::memcpy(side.room().data(), bytes.data(), count);
    bytes = bytes.subspan(count);
    side.take(count);
  }
}

ListenerHandshake listening(const Bytes32 &key = kKey) { return {key, kClaim.purpose}; }

TEST(HandshakeTest, BothSidesKnowEachOther) {
  for (size_t most : {size_t(1), size_t(7), SIZE_MAX}) {
    ConnectorHandshake connector(kKey, kClaim);
    ListenerHandshake listener = listening();
    EXPECT_FALSE(listener.wasGreeted());
    EXPECT_TRUE(listener.takeReply().empty()); // It says nothing first.
    give(listener, connector.takeReply(), most);
    EXPECT_TRUE(listener.wasGreeted());
    EXPECT_FALSE(connector.hasProved());
    give(connector, listener.takeReply(), most);
    EXPECT_TRUE(connector.hasProved());
    EXPECT_EQ(listener.state(), State::Speaking);
    give(listener, connector.takeReply(), most);
    ASSERT_EQ(listener.state(), State::Done);
    EXPECT_EQ(connector.state(), State::Speaking);
    give(connector, listener.takeReply(), most);
    EXPECT_EQ(connector.state(), State::Done);
    EXPECT_TRUE(connector.takeReply().empty());
    EXPECT_EQ(std::memcmp(&listener.claim(), &kClaim, sizeof kClaim), 0);
  }
}

TEST(HandshakeTest, AListenerDoesNotAnswerWithoutProof) {
  ConnectorHandshake connector(kOther, kClaim);
  ListenerHandshake listener = listening();
  give(listener, connector.takeReply());
  give(connector, listener.takeReply());
  give(listener, connector.takeReply());
  EXPECT_EQ(listener.state(), State::Ended);
  EXPECT_EQ(listener.reason(), "has another secret, or none");
  EXPECT_TRUE(listener.takeReply().empty());
}

TEST(HandshakeTest, AConnectorWantsAProofToo) {
  ConnectorHandshake connector(kKey, kClaim);
  ListenerHandshake listener = listening();
  give(listener, connector.takeReply());
  give(connector, listener.takeReply());
  connector.takeReply();
  give(connector, Bytes(sizeof(Welcome), 'x'));
  EXPECT_EQ(connector.state(), State::Ended);
  EXPECT_EQ(connector.reason(), "has another secret, or none");
}

TEST(HandshakeTest, EveryBitCounts) {
  constexpr size_t kBytes[4] = {sizeof(Hello), sizeof(Hello), sizeof(Proof), sizeof(Welcome)};
  for (size_t message = 0; message < 4; ++message) {
    for (size_t bit = 0; bit < 8 * kBytes[message]; ++bit) {
      ConnectorHandshake connector(kKey, kClaim);
      ListenerHandshake listener = listening();
      for (size_t i = 0; i < 4; ++i) {
        Handshake &from = i % 2 == 0 ? static_cast<Handshake &>(connector) : listener;
        Handshake &to = i % 2 == 0 ? static_cast<Handshake &>(listener) : connector;
        Bytes bytes = from.takeReply();
        if (i == message) {
          ASSERT_EQ(bytes.size(), kBytes[message]);
          bytes[bit / 8] = char(bytes[bit / 8] ^ 1 << bit % 8);
        }
        give(to, bytes);
      }
      EXPECT_NE(connector.state(), State::Done) << message << " " << bit;
      EXPECT_EQ(listener.state() == State::Done, message == 3) << message << " " << bit;
    }
  }
}

TEST(HandshakeTest, NothingCanBeSaidAgain) {
  ConnectorHandshake connector(kKey, kClaim);
  ListenerHandshake listener = listening();
  Bytes hello = connector.takeReply();
  give(listener, hello);
  give(connector, listener.takeReply());
  Bytes proof = connector.takeReply();
  give(listener, proof);
  ASSERT_EQ(listener.state(), State::Done);
  ListenerHandshake another = listening();
  give(another, hello);
  give(another, proof);
  EXPECT_EQ(another.state(), State::Ended);
}

TEST(HandshakeTest, NothingCanBeSaidBack) {
  ConnectorHandshake connector(kKey, kClaim);
  give(connector, connector.takeReply()); // Its own Hello.
  Bytes proof = connector.takeReply();
  ASSERT_EQ(proof.size(), sizeof(Proof));
  give(connector, std::span(proof).last(sizeof(Welcome))); // Its own code.
  EXPECT_EQ(connector.state(), State::Ended);
}

TEST(HandshakeTest, OnePurposeIsNotForAnother) {
  Claim claim = kClaim;
  claim.purpose = Claim::Purpose::Control;
  ConnectorHandshake connector(kKey, claim);
  ListenerHandshake listener = listening();
  give(listener, connector.takeReply());
  give(connector, listener.takeReply());
  give(listener, connector.takeReply());
  EXPECT_EQ(listener.reason(), "has come to the wrong port");
  EXPECT_TRUE(listener.takeReply().empty());
}

TEST(HandshakeTest, StrangersAreKnownByTheirFirstByte) {
  ListenerHandshake listener = listening();
  give(listener, std::string("G"));
  EXPECT_EQ(listener.state(), State::Ended);
  EXPECT_EQ(listener.reason(), "is no program made by weft");
  EXPECT_FALSE(listener.wasGreeted());
  EXPECT_TRUE(listener.takeReply().empty());
  ConnectorHandshake connector(kKey, kClaim);
  connector.takeReply();
  give(connector, std::string("220 mail.example.org"));
  EXPECT_EQ(connector.reason(), "is no program made by weft");
  EXPECT_TRUE(connector.takeReply().empty());
}

TEST(HandshakeTest, OtherVersionsLearnThisOne) {
  Hello other;
  other.version = 1;
  ListenerHandshake listener = listening();
  give(listener, bytesOf(other).first(32)); // Its Hello may be shorter.
  EXPECT_EQ(listener.reason(), "is of version 1 of the handshake, expected 2");
  Bytes reply = listener.takeReply();
  ASSERT_EQ(reply.size(), sizeof(Hello));
  other.version = 3;
  ConnectorHandshake connector(kKey, kClaim);
  connector.takeReply();
  give(connector, bytesOf(other));
  EXPECT_EQ(connector.reason(), "is of version 3 of the handshake, expected 2");
  EXPECT_TRUE(connector.takeReply().empty()); // No proof for it.
}

} // namespace
