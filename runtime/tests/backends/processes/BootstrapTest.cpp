//===- BootstrapTest.cpp - how processes find each other by TCP -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sys/poll.h>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::tcp;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

namespace {

constexpr std::chrono::seconds kPatience(60);
/// The patience of ranks that wait in vain; ranks that come may take `kLong` on a busy machine.
constexpr std::chrono::milliseconds kShort(300);
constexpr std::chrono::seconds kLong(2);

/// Returns a port at which most likely nobody listens.
uint16_t freePort(const std::string &host = "127.0.0.1") {
  return ownAddress(*listenAt(resolve(host, 0)->front())).port();
}

mpi::Launcher launcherOf(int64_t rank, int64_t size, uint16_t port,
                         const std::string &run = "test") {
  mpi::Launcher launcher;
  launcher.rank = rank;
  launcher.size = size;
  launcher.rendezvousPoint = {"127.0.0.1", port, "MASTER_PORT + 1", run};
  return launcher;
}

/// The result of `gather` as a value that a thread can set.
struct Found {
  Bootstrap bootstrap;
  bool ok = false;
  std::string error;
};

Found found(const mpi::Launcher &launcher, std::chrono::nanoseconds patience = kPatience,
            const Secret &secret = Secret()) {
  Result<Bootstrap> result = gather(launcher, secret, patience);
  return result ? Found{std::move(*result), true, ""} : Found{{}, false, result.error().message};
}

/// Returns the secret of a process whose environment has `text` as WEFT_SECRET.
Secret secretOf(const std::string &text) {
  return *Secret::find([&](const char *name) {
    return name == std::string("WEFT_SECRET") ? text.c_str() : nullptr;
  });
}

/// Runs `gather` for all of `launchers` at the same time.
std::vector<Found> foundBy(const std::vector<mpi::Launcher> &launchers,
                           const Secret &secret = Secret()) {
  std::vector<Found> results(launchers.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < launchers.size(); ++i) {
    threads.emplace_back([&, i] { results[i] = found(launchers[i], kPatience, secret); });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  return results;
}

void expectAll(const std::vector<Found> &all) {
  for (const Found &each : all) {
    ASSERT_TRUE(each.ok) << each.error;
    EXPECT_EQ(each.bootstrap.runKey, all[0].bootstrap.runKey);
    for (size_t rank = 0; rank < all.size(); ++rank) {
      bool isStar = (rank == 0) != (each.bootstrap.rank == 0);
      EXPECT_EQ(bool(each.bootstrap.connections[rank]), isStar);
      if (rank != 0) {
        EXPECT_EQ(each.bootstrap.addresses[rank].port(),
                  all[rank].bootstrap.listener.address().port());
      }
    }
  }
}

TEST(BootstrapTest, AllKnowWhereAllAre) {
  uint16_t port = freePort();
  expectAll(foundBy({launcherOf(0, 3, port), launcherOf(1, 3, port), launcherOf(2, 3, port)}));
}

TEST(BootstrapTest, EachRunHasAnotherKey) {
  std::set<Bytes32> keys;
  for (const char *secret : {"the secret of all", "the secret of all", "another than theirs"}) {
    uint16_t port = freePort();
    std::vector<Found> both =
        foundBy({launcherOf(0, 2, port), launcherOf(1, 2, port)}, secretOf(secret));
    expectAll(both);
    keys.insert(both[0].bootstrap.runKey);
  }
  EXPECT_EQ(keys.size(), 3);
}

TEST(BootstrapTest, ByNameAndByIPv6) {
  for (std::string host : {"localhost", "::1"}) {
    Result<std::vector<Address>> addresses = resolve(host, 0);
    Result<Descriptor> socket = addresses ? listenAt(addresses->front()) : addresses.error();
    if (!socket) {
      std::printf("skipped: %s: %s\n", host.c_str(), socket.error().message.c_str());
      continue;
    }
    uint16_t port = freePort(host);
    std::vector<mpi::Launcher> both = {launcherOf(0, 2, port), launcherOf(1, 2, port)};
    both[0].rendezvousPoint->host = both[1].rendezvousPoint->host = host;
    expectAll(foundBy(both));
  }
}

TEST(BootstrapTest, OneAloneMeetsNobody) { EXPECT_TRUE(found(launcherOf(0, 1, 1)).ok); }

TEST(BootstrapTest, RankZeroSaysWhoIsMissing) {
  uint16_t port = freePort();
  Found other;
  std::thread third([&] { other = found(launcherOf(2, 4, port)); });
  EXPECT_EQ(found(launcherOf(0, 4, port), kLong).error,
            "waited 2 s at port " + std::to_string(port) +
                " (MASTER_PORT + 1) for ranks 1, 3, which have not come");
  third.join();
  EXPECT_FALSE(other.ok);
  EXPECT_EQ(other.error, ""); // Rank 0 has said it.
  EXPECT_THAT(found(launcherOf(0, 12, port), kShort).error,
              HasSubstr("for ranks 1, 2, 3, 4, 5, 6, 7, 8 and others, which have not come"));
}

TEST(BootstrapTest, OthersSayWhereRankZeroIsNot) {
  uint16_t port = freePort();
  EXPECT_EQ(found(launcherOf(1, 2, port), kShort).error,
            "rank 1 tried for 0.3 s to reach rank 0 at 127.0.0.1 port " + std::to_string(port) +
                " (MASTER_ADDR, MASTER_PORT + 1): Connection refused");
  mpi::Launcher lost = launcherOf(1, 2, port);
  lost.rendezvousPoint->host = "nowhere.invalid";
  EXPECT_THAT(found(lost, kShort).error,
              MatchesRegex("rank 1 tried for 0.3 s to reach rank 0 at nowhere.invalid port .*: "
                           "(Name or service not known|Temporary failure in name resolution)"));
}

TEST(BootstrapTest, APortThatIsTakenIsNamed) {
  Result<Descriptor> other = listenAt(resolve("127.0.0.1", 0)->front());
  uint16_t port = ownAddress(*other).port();
  EXPECT_EQ(found(launcherOf(0, 2, port)).error,
            "rank 0 cannot listen for the other ranks at port " + std::to_string(port) +
                " (MASTER_PORT + 1): Address already in use; WEFT_PORT may name another");
}

/// Expects that a rank 0 that waits for one other refuses `odd`.
void expectRefusal(const mpi::Launcher &odd, const std::string &reason) {
  uint16_t port = odd.rendezvousPoint->port;
  Found first;
  std::thread host([&] { first = found(launcherOf(0, 2, port), kLong); });
  Found other = found(odd);
  EXPECT_EQ(other.error, "rank 0 at 127.0.0.1 port " + std::to_string(port) +
                             " (MASTER_ADDR, MASTER_PORT + 1) has sent this process, rank " +
                             std::to_string(odd.rank) + ", away: " + reason);
  host.join();
  EXPECT_THAT(first.error, AllOf(HasSubstr("for rank 1, which has not come; a process from 127."),
                                 HasSubstr(" was sent away: " + reason)));
}

TEST(BootstrapTest, WhoDoesNotBelongIsToldWhy) {
  expectRefusal(launcherOf(1, 3, freePort()), "its WORLD_SIZE is 3, that of rank 0 is 2");
  expectRefusal(launcherOf(1, 2, freePort(), "other"),
                "another run uses this port, 'test' by TORCHELASTIC_RUN_ID");
}

TEST(BootstrapTest, WhoHasAnotherSecretIsRefused) {
  const Secret none, ours = secretOf("the secret of all"),
                     other = secretOf("not the secret of all");
  const std::string has = "this process has the one in WEFT_SECRET",
                    hasNone =
                        "this process has none (neither WEFT_SECRET nor WEFT_SECRET_FILE is set)";
  for (const auto &[first, second] :
       {std::pair(&ours, &other), std::pair(&ours, &none), std::pair(&none, &ours)}) {
    uint16_t port = freePort();
    Found host;
    std::thread thread([&] { host = found(launcherOf(0, 2, port), kPatience, *first); });
    EXPECT_EQ(found(launcherOf(1, 2, port), kPatience, *second).error,
              "rank 0 at 127.0.0.1 port " + std::to_string(port) +
                  " (MASTER_ADDR, MASTER_PORT + 1) has sent this process, rank 1, away: it has "
                  "another secret, or none; " +
                  (second == &none ? hasNone : has));
    EXPECT_TRUE(found(launcherOf(1, 2, port), kPatience, *first).ok);
    thread.join();
    EXPECT_TRUE(host.ok) << host.error;
  }
}

TEST(BootstrapTest, RankZeroSaysWhoHasAnotherSecret) {
  const Secret none, ours = secretOf("the secret of all");
  for (const auto &[first, second] : {std::pair(&ours, &none), std::pair(&none, &ours)}) {
    uint16_t port = freePort();
    std::thread other([&] { found(launcherOf(1, 2, port), kLong, *second); });
    EXPECT_THAT(found(launcherOf(0, 2, port), kLong, *first).error,
                MatchesRegex("waited 2 s at port .* for rank 1, which has not come; a process from "
                             "127.0.0.1:.* was sent away: it has another secret, or none; this "
                             "process has " +
                             std::string(first == &none ? "none .*" : "the one in WEFT_SECRET")));
    other.join();
  }
}

TEST(BootstrapTest, OneRankTwiceHarmsNobody) {
  uint16_t port = freePort();
  std::vector<mpi::Launcher> twice = {launcherOf(0, 3, port), launcherOf(1, 3, port),
                                      launcherOf(1, 3, port)};
  std::vector<Found> all(3);
  std::vector<std::thread> threads; // The refused process comes again as the missing rank.
  Found last;
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      all[i] = found(twice[i]);
      if (!all[i].ok) {
        last = found(launcherOf(2, 3, port));
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  EXPECT_TRUE(all[0].ok) << all[0].error;
  EXPECT_TRUE(last.ok) << last.error;
  EXPECT_NE(all[1].ok, all[2].ok);
  EXPECT_THAT(all[1].error + all[2].error, HasSubstr("away: there is a RANK 1 already, from 127."));
}

/// Connects to rank 0 as soon as it listens.
Descriptor reach(uint16_t port) {
  Address first = resolve("127.0.0.1", port)->front();
  auto end = Clock::now() + kPatience;
  Result<Descriptor> socket = connectTo(first, end);
  while (!socket && Clock::now() < end) {
    socket = connectTo(first, end);
  }
  EXPECT_TRUE(socket) << socket.error().message;
  return socket ? std::move(*socket) : Descriptor();
}

/// Connects and sends `bytes`.
Descriptor strangerAt(uint16_t port, std::string_view bytes) {
  Descriptor socket = reach(port);
  sendAll(socket, bytes, Clock::now() + kPatience);
  return socket;
}

TEST(BootstrapTest, StrangersHarmNobody) {
  uint16_t port = freePort();
  Found first;
  std::thread host([&] { first = found(launcherOf(0, 3, port)); });
  Found second;
  std::thread other([&] { second = found(launcherOf(1, 3, port)); });
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(strangerAt(port, "GET / HTTP/1.1\r\n\r\n"));
    strangers.push_back(strangerAt(port, "weft tcp")); // And nothing more.
    strangers.push_back(strangerAt(port, ""));
  }
  Found third = found(launcherOf(2, 3, port));
  host.join();
  other.join();
  EXPECT_TRUE(first.ok) << first.error;
  EXPECT_TRUE(second.ok) << second.error;
  EXPECT_TRUE(third.ok) << third.error;
}

/// Returns all bytes that the other side sends until it closes the connection.
std::string allFrom(const Descriptor &socket) {
  std::string bytes;
  for (char one = 0; receiveAll(socket, std::span(&one, 1), Clock::now() + kPatience);) {
    bytes += one;
  }
  return bytes;
}

TEST(BootstrapTest, AStrangerIsToldNothing) {
  uint16_t port = freePort();
  const Secret ours = secretOf("the secret of all");
  Found first, second;
  std::thread host([&] { first = found(launcherOf(0, 2, port), kPatience, ours); });
  EXPECT_EQ(allFrom(strangerAt(port, "GET / HTTP/1.1\r\n\r\n")), "");
  EXPECT_EQ(allFrom(strangerAt(port, std::string(200, '\0'))), "");
  // One of weft without the secret gets a Hello, which is a random number, and no answer to its
  // proof.
  std::set<std::string> hellos;
  for (int i = 0; i < 3; ++i) {
    ConnectorHandshake stranger(Secret().key(), {.rank = 1, .size = 2});
    std::vector<char> hello = stranger.takeReply();
    Descriptor socket = strangerAt(port, {hello.data(), hello.size()});
    ASSERT_TRUE(receiveAll(socket, stranger.room(), Clock::now() + kPatience));
    std::span<char> room = stranger.room();
    hellos.emplace(room.begin(), room.end());
    stranger.take(room.size());
    ASSERT_TRUE(sendAll(socket, stranger.takeReply(), Clock::now() + kPatience));
    EXPECT_EQ(allFrom(socket), "");
  }
  EXPECT_EQ(hellos.size(), 3);
  for (const std::string &hello : hellos) {
    EXPECT_EQ(hello.substr(0, 16), std::string("weft tcp\2\0\0\0\0\0\0\0", 16));
  }
  second = found(launcherOf(1, 2, port), kPatience, ours);
  host.join();
  EXPECT_TRUE(first.ok) << first.error;
  EXPECT_TRUE(second.ok) << second.error;
}

TEST(BootstrapTest, WhatIsNotRankZeroIsToldFromIt) {
  Descriptor listener = std::move(*listenAt(resolve("127.0.0.1", 0)->front()));
  uint16_t port = ownAddress(listener).port();
  std::thread server([&] {
    waitFor(listener, POLLIN, Clock::now() + kPatience);
    Descriptor guest(accept(listener.get(), nullptr, nullptr));
    sendAll(guest, std::string("220 mail.example.org ESMTP\r\n"), Clock::now() + kPatience);
    char waste[sizeof(Hello)];
    receiveAll(guest, waste, Clock::now() + kPatience);
  });
  EXPECT_EQ(found(launcherOf(1, 2, port)).error,
            "the program that listens at 127.0.0.1 port " + std::to_string(port) +
                " (MASTER_ADDR, MASTER_PORT + 1) is no program made by weft");
  server.join();
}

TEST(BootstrapTest, AnAnswerThatIsNoneIsReported) {
  Listener listener;
  listener.open(std::move(*listenAt(resolve("127.0.0.1", 0)->front())), Secret().key(),
                Claim::Purpose::Rendezvous);
  uint16_t port = listener.address().port();
  std::thread server([&] {
    Descriptor guest;
    for (auto end = Clock::now() + kPatience; !guest && Clock::now() < end;) {
      waitFor(listener.descriptor(), POLLIN, end);
      listener.look([&](Descriptor socket, const Claim &) { guest = std::move(socket); });
    }
    sendAll(guest, std::string(sizeof(AnswerHead), 'x'), Clock::now() + kPatience);
  });
  EXPECT_EQ(found(launcherOf(1, 2, port)).error,
            "rank 0 at 127.0.0.1 port " + std::to_string(port) +
                " (MASTER_ADDR, MASTER_PORT + 1) has sent an invalid answer");
  server.join();
}

TEST(BootstrapTest, RankZeroNoticesWhoHasGoneAgain) {
  uint16_t port = freePort();
  Found first;
  std::thread host([&] { first = found(launcherOf(0, 3, port, "")); });
  Descriptor socket = reach(port);
  ConnectorHandshake handshake(
      Secret().key(),
      {.rank = 1, .size = 3, .run = 0xcbf29ce484222325}); // Of a run without a name.
  EXPECT_EQ(performHandshake(socket, handshake, Clock::now() + kPatience),
            HandshakeResult::Authenticated);
  std::this_thread::sleep_for(kShort);
  socket.close();
  host.join();
  EXPECT_THAT(first.error, MatchesRegex("rank 1 is gone: its process at 127.0.0.1:.* has ended "
                                        "before all ranks had come"));
}

TEST(RosterTest, WhatDoesNotFitIsNone) {
  std::vector<Address> addresses = {Address(), resolve("10.0.0.1", 7)->front(),
                                    resolve("fe80::1", 8)->front()};
  std::vector<char> bytes = encodeRoster({42}, addresses);
  Bytes32 run = {};
  std::vector<Address> read;
  ASSERT_TRUE(decodeRoster(bytes, 3, run, read));
  EXPECT_EQ(run, Bytes32{42});
  EXPECT_EQ(read[1].text(), "10.0.0.1:7");
  EXPECT_EQ(read[2].text(), "[fe80::1]:8");
  EXPECT_FALSE(decodeRoster(bytes, 2, run, read));
  EXPECT_FALSE(decodeRoster(std::span(bytes).first(5), 3, run, read));
  bytes[sizeof run + sizeof(Address::Packed)] = 5; // Of no family.
  EXPECT_FALSE(decodeRoster(bytes, 3, run, read));
}

} // namespace
