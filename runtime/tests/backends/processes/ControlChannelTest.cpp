//===- ControlChannelTest.cpp - sockets between rank 0 and the others -----===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/ControlChannel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <netinet/in.h>
#include <sys/socket.h>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

using namespace weft::rt;
using namespace weft::rt::mpi;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::SizeIs;

namespace {

constexpr Bytes32 kKey = {1, 2, 3}, kOther = {1, 2, 4};
constexpr std::chrono::seconds kPatience(60);
using Heard = std::tuple<int64_t, int, std::string>;

/// Lets rank 0's channel listen, and returns its address.
std::string addressOf(ControlChannel &first) {
  Result<std::string> address = first.listen("");
  EXPECT_TRUE(address) << address.error().message;
  return *address;
}

/// Returns `address` with only one of rank 0's addresses.
std::string only(const std::string &address, const std::string &one) {
  return address.substr(0, address.find(' ') + 1) + one;
}

/// Rank 0 and ranks 1 and 2, connected.
struct Star {
  std::unique_ptr<ControlChannel> ranks[3] = {std::make_unique<ControlChannel>(),
                                              std::make_unique<ControlChannel>(),
                                              std::make_unique<ControlChannel>()};

  Star() {
    std::string address = addressOf(*ranks[0]);
    std::thread first([&] { EXPECT_TRUE(ranks[1]->connect(address, 1, kKey, kPatience)); });
    std::thread second([&] { EXPECT_TRUE(ranks[2]->connect(address, 2, kKey, kPatience)); });
    EXPECT_TRUE(ranks[0]->accept(3, kKey, kPatience));
    first.join();
    second.join();
  }

  /// Each waits for the others to end too.
  ~Star() {
    std::vector<std::thread> ends;
    for (std::unique_ptr<ControlChannel> &rank : ranks) {
      ends.emplace_back([&rank] { rank.reset(); });
    }
    for (std::thread &end : ends) {
      end.join();
    }
  }

  /// Receives `count` messages at `rank`.
  std::vector<Heard> hear(int64_t rank, size_t count) {
    std::vector<Heard> heard;
    auto end = std::chrono::steady_clock::now() + kPatience;
    while (heard.size() < count && std::chrono::steady_clock::now() < end) {
      ranks[rank]->wait(std::chrono::milliseconds(50), {});
      ranks[rank]->read([&](int64_t from, uint8_t kind, const std::string &text) {
        heard.emplace_back(from, kind, text);
      });
    }
    return heard;
  }
};

TEST(ControlChannelTest, MessagesComeInOrderBothWays) {
  Star star;
  star.ranks[1]->send(0, 3, "one");
  star.ranks[1]->send(0, 4, "");
  star.ranks[1]->send(0, 5, std::string("of\0zeros", 8));
  EXPECT_THAT(star.hear(0, 3), ElementsAre(Heard(1, 3, "one"), Heard(1, 4, ""),
                                           Heard(1, 5, std::string("of\0zeros", 8))));
  star.ranks[0]->send(2, 9, "to two");
  EXPECT_THAT(star.hear(2, 1), ElementsAre(Heard(0, 9, "to two")));
}

TEST(ControlChannelTest, TheEndOfAProcessIsHeardAfterItsMessages) {
  Star star;
  star.ranks[2]->send(0, 7, "last");
  std::thread end([&] { star.ranks[2].reset(); });
  EXPECT_THAT(star.hear(0, 2), ElementsAre(Heard(2, 7, "last"), Heard(2, 0, "")));
  star.ranks[0]->send(2, 1, "to nobody"); // No error, and the others are still there.
  star.ranks[1]->send(0, 8, "here");
  EXPECT_THAT(star.hear(0, 1), ElementsAre(Heard(1, 8, "here")));
  end.join();
}

TEST(ControlChannelTest, ALongTextIsCutAndANextOneComes) {
  Star star;
  star.ranks[1]->send(0, 1, std::string(100000, 'x'));
  star.ranks[1]->send(0, 2, "next");
  std::vector<Heard> heard = star.hear(0, 2);
  ASSERT_THAT(heard, SizeIs(2));
  EXPECT_THAT(std::get<2>(heard[0]), SizeIs(65536));
  EXPECT_THAT(std::get<2>(heard[0]), Each('x'));
  EXPECT_EQ(heard[1], Heard(1, 2, "next"));
}

TEST(ControlChannelTest, WhoDoesNotKnowTheSecretIsSentAway) {
  ControlChannel first, stranger, second;
  std::string address = addressOf(first);
  std::thread others([&] {
    Status status = stranger.connect(only(address, "127.0.0.1"), 1, kOther, kPatience);
    ASSERT_FALSE(status);
    EXPECT_THAT(status.error().message,
                MatchesRegex("rank 1 cannot connect to rank 0, at .* 127.0.0.1 \\(port and "
                             "addresses\\): the process at 127.0.0.1:.* has another secret "
                             "\\(WEFT_SECRET or WEFT_SECRET_FILE\\), or none"));
    EXPECT_TRUE(second.connect(address, 1, kKey, kPatience));
  });
  EXPECT_TRUE(first.accept(2, kKey, kPatience));
  others.join();
  second.send(0, 1, "me");
  std::vector<std::string> heard;
  first.wait(kPatience, {});
  first.read([&](int64_t, uint8_t, const std::string &text) { heard.push_back(text); });
  EXPECT_THAT(heard, ElementsAre("me"));
}

/// Connects to the listener at `address` and sends a part of a handshake.
tcp::Descriptor beginToGreet(const std::string &address) {
  auto port = uint16_t(std::stoi(address));
  auto end = tcp::Clock::now() + kPatience;
  Result<tcp::Descriptor> socket = tcp::connectTo(tcp::resolve("127.0.0.1", port)->front(), end);
  EXPECT_TRUE(socket && tcp::sendAll(*socket, std::string("weft"), end));
  return std::move(*socket);
}

TEST(ControlChannelTest, WhoFallsSilentHoldsUpNobody) {
  ControlChannel first, second;
  std::string address = addressOf(first);
  std::vector<tcp::Descriptor> strangers(50); // In a row they would take longer than the test has.
  for (tcp::Descriptor &stranger : strangers) {
    stranger = beginToGreet(address);
  }
  Status status = first.accept(2, kKey, std::chrono::milliseconds(1));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("1 ranks have not connected"));
  std::thread other([&] { EXPECT_TRUE(second.connect(address, 1, kKey, kPatience)); });
  EXPECT_TRUE(first.accept(2, kKey, kPatience));
  other.join();
}

TEST(ControlChannelTest, ARankComesOnce) {
  ControlChannel first, second, third;
  std::string address = addressOf(first);
  std::atomic<bool> isTried = false;
  std::thread others([&] {
    EXPECT_TRUE(second.connect(address, 1, kKey, kPatience));
    EXPECT_TRUE(third.connect(address, 1, kKey, kPatience)); // It is let go of at once.
    third.wait(kPatience, {});
    third.read([](int64_t, uint8_t kind, const std::string &) { EXPECT_EQ(kind, 0); });
    isTried = true;
  });
  while (!isTried) {
    Status status = first.accept(3, kKey, std::chrono::milliseconds(50));
    EXPECT_FALSE(status);
  }
  others.join();
}

TEST(ControlChannelTest, OnALoopbackAddressNoOtherMachineReachesIt) {
  for (const char *host : {"localhost", "127.0.0.1", "127.0.0.2"}) {
    ControlChannel first;
    Result<std::string> address = first.listen(host);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_THAT(*address, MatchesRegex("[0-9]+ (127.0.0.[12]|::1)"));
  }
}

TEST(ControlChannelTest, SaysHowManyHaveNotCome) {
  ControlChannel first;
  EXPECT_LT(addressOf(first).size(), ControlChannel::kAddressBytes);
  Status status = first.accept(3, kKey, std::chrono::milliseconds(1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message,
            "2 ranks have not connected to rank 0; do their machines let TCP through?");
}

TEST(ControlChannelTest, SaysWhatItHasRefused) {
  ControlChannel first, stranger;
  std::string address = only(addressOf(first), "127.0.0.1");
  std::thread other([&] { EXPECT_FALSE(stranger.connect(address, 1, kOther, kPatience)); });
  Status status = first.accept(2, kKey, std::chrono::seconds(2));
  other.join();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message,
              MatchesRegex("1 ranks have not connected to rank 0; a process from 127.0.0.1:.* was "
                           "sent away: it has another secret, or none"));
}

TEST(ControlChannelTest, ConnectsByEitherProtocol) {
  int six = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  bool hasSix =
      six >= 0 && bind(six, reinterpret_cast<sockaddr *>(&loopback), sizeof loopback) == 0;
  close(six);
  for (const char *host : {"127.0.0.1", "::1"}) {
    if (!hasSix && host != std::string("127.0.0.1")) {
      GTEST_SKIP() << "this machine has no IPv6";
    }
    auto first = std::make_unique<ControlChannel>(), second = std::make_unique<ControlChannel>();
    std::string address = addressOf(*first);
    std::thread connecting(
        [&] { EXPECT_TRUE(second->connect(only(address, host), 1, kKey, kPatience)); });
    EXPECT_TRUE(first->accept(2, kKey, kPatience));
    connecting.join();
    std::thread ending([&] { second.reset(); });
    first.reset();
    ending.join();
  }
}

TEST(ControlChannelTest, SaysWhereRankZeroIsNot) {
  std::string address;
  {
    ControlChannel gone;
    address = addressOf(gone);
  }
  ControlChannel other;
  Status status = other.connect(only(address, "127.0.0.1"), 2, kKey, kPatience);
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("rank 2 cannot connect to rank 0, at "));
}

} // namespace
