//===- InboxTest.cpp - received messages and messages to send -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/TransportTable.h"
#include "backends/processes/transports/tcp/Outbox.h"
#include "tests/ErrorOf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

using namespace weft::rt;
using namespace weft::rt::tcp;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

std::string message(uint32_t group, int32_t tag, const std::string &text) {
  Head head = {group, tag, text.size()};
  return std::string(reinterpret_cast<const char *>(&head), sizeof head) + text;
}

/// Gives `bytes` to `inbox`, at most `most` at a time; returns how many it takes.
size_t feed(Inbox &inbox, const std::string &bytes, size_t most = SIZE_MAX) {
  size_t at = 0;
  while (at < bytes.size() && !inbox.room().empty()) {
    std::span<char> room = inbox.room();
    size_t count = std::min({room.size(), bytes.size() - at, most});
    std::memcpy(room.data(), bytes.data() + at, count);
    inbox.take(count);
    at += count;
  }
  return at;
}

std::vector<std::pair<uint64_t, size_t>> arrivalsOf(Inbox &inbox) {
  std::vector<std::pair<uint64_t, size_t>> arrivals;
  for (const Inbox::Arrival &arrival : inbox.arrivals) {
    arrivals.emplace_back(arrival.request, arrival.bytes);
  }
  inbox.arrivals.clear();
  return arrivals;
}

using Arrived = std::pair<uint64_t, size_t>;

TEST(InboxTest, ReceiptsBeforeAndAfterMessages) {
  for (size_t most : {size_t(1), size_t(7), SIZE_MAX}) {
    Inbox inbox;
    char first[4] = "", second[4] = "", third[4] = "";
    inbox.expect({{1, 5, 3}, first, 11});
    feed(inbox, message(1, 5, "abc") + message(1, 5, "de") + message(1, 6, "") + message(1, 5, "f"),
         most);
    EXPECT_THAT(arrivalsOf(inbox), ElementsAre(Arrived(11, 3)));
    inbox.expect({{1, 5, 3}, second, 12});
    inbox.expect({{1, 6, 0}, nullptr, 13});
    inbox.expect({{1, 5, 3}, third, 14});
    EXPECT_THAT(arrivalsOf(inbox), ElementsAre(Arrived(12, 2), Arrived(13, 0), Arrived(14, 1)));
    EXPECT_EQ(std::string(first) + second + third, "abcdef");
    EXPECT_EQ(errorOf(inbox.status()), "");
  }
}

TEST(InboxTest, AReceiptInTheMidstOfAMessage) {
  Inbox inbox;
  char target[7] = "";
  std::string bytes = message(1, 5, "abcdef");
  feed(inbox, bytes.substr(0, 19));
  inbox.expect({{1, 5, 6}, target, 11});
  EXPECT_THAT(arrivalsOf(inbox), IsEmpty());
  feed(inbox, bytes.substr(19));
  EXPECT_THAT(arrivalsOf(inbox), ElementsAre(Arrived(11, 6)));
  EXPECT_STREQ(target, "abcdef");
}

TEST(InboxTest, WhatIsTooMuchToKeepIsNotRead) {
  Inbox inbox;
  std::string large(Inbox::kMostKept, 'x'), bytes = message(1, 5, large) + message(1, 6, "next");
  EXPECT_EQ(feed(inbox, bytes), sizeof(Head));
  EXPECT_TRUE(inbox.room().empty());
  std::string target(large.size(), ' ');
  inbox.expect({{1, 5, target.size()}, target.data(), 11});
  EXPECT_EQ(feed(inbox, bytes.substr(sizeof(Head))), bytes.size() - sizeof(Head));
  EXPECT_THAT(arrivalsOf(inbox), ElementsAre(Arrived(11, large.size())));
  EXPECT_EQ(target, large);
}

TEST(InboxTest, KeptMessagesMoveTogetherWhereTheEndHasNoRoom) {
  Inbox inbox;
  std::string third(Inbox::kMostKept / 3, 'a'), other(third.size(), 'b'), more(third.size(), 'c');
  feed(inbox, message(1, 5, third) + message(1, 6, other));
  std::string target(third.size(), ' '), otherTarget = target, moreTarget = target;
  inbox.expect({{1, 5, target.size()}, target.data(), 11});
  // There is room for two messages, but not behind the one that is left.
  std::string large = message(1, 7, more + "end"), next = message(1, 8, "next");
  EXPECT_EQ(feed(inbox, large, 1000), large.size());
  EXPECT_EQ(feed(inbox, next), next.size());
  moreTarget.resize(more.size() + 3);
  char nextTarget[5] = "";
  inbox.expect({{1, 8, 4}, nextTarget, 14});
  inbox.expect({{1, 7, moreTarget.size()}, moreTarget.data(), 13});
  inbox.expect({{1, 6, otherTarget.size()}, otherTarget.data(), 12});
  EXPECT_THAT(arrivalsOf(inbox),
              ElementsAre(Arrived(11, third.size()), Arrived(14, 4), Arrived(13, moreTarget.size()),
                          Arrived(12, other.size())));
  EXPECT_EQ(target, third);
  EXPECT_EQ(otherTarget, other);
  EXPECT_EQ(moreTarget, more + "end");
  EXPECT_STREQ(nextTarget, "next");
}

TEST(InboxTest, ManyMessagesOfNothingAreTooMuchToo) {
  Inbox inbox;
  std::string many;
  for (int i = 0; i < 10000; ++i) {
    many += message(1, 5, "");
  }
  EXPECT_LT(feed(inbox, many), many.size());
  inbox.beginGroup(2); // No receipt expects them any more.
  EXPECT_EQ(feed(inbox, many), many.size());
}

TEST(InboxTest, MessagesOfAGroupThatIsDeadAreThrownAway) {
  Inbox inbox;
  char old[9] = "old", target[5] = "";
  std::string large(Inbox::kMostKept, 'x');
  inbox.expect({{1, 5, 8}, old, 11});
  feed(inbox, message(1, 6, "kept") + message(1, 5, "halfhalf").substr(0, 20));
  inbox.beginGroup(2);
  inbox.expect({{2, 6, 4}, target, 12});
  EXPECT_STREQ(old, "half"); // Its memory may be gone since.
  feed(inbox, "half" + message(1, 6, large) + message(2, 6, "next"));
  EXPECT_STREQ(old, "half");
  EXPECT_STREQ(target, "next");
  EXPECT_THAT(arrivalsOf(inbox), ElementsAre(Arrived(12, 4)));
}

TEST(InboxTest, ACancelledReceiptIsNotWrittenTo) {
  Inbox inbox;
  char first[5] = "____", second[5] = "____";
  inbox.expect({{1, 5, 4}, first, 11});
  inbox.expect({{1, 6, 4}, second, 12});
  feed(inbox, message(1, 5, "abcd").substr(0, 18));
  inbox.cancel(11);
  inbox.cancel(12);
  feed(inbox, "cd" + message(1, 6, "efgh"));
  EXPECT_STREQ(first, "ab__");
  EXPECT_STREQ(second, "____");
  EXPECT_THAT(arrivalsOf(inbox), IsEmpty());
}

TEST(InboxTest, WhatIsNoMessageIsAFailure) {
  for (Head head : {Head{1, -1, 0}, Head{1, mpi::kTags + 1, 0}, Head{1, 0, mpi::kMostBytes + 1}}) {
    Inbox inbox;
    feed(inbox, {reinterpret_cast<const char *>(&head), sizeof head});
    EXPECT_EQ(errorOf(inbox.status()), "it sent an invalid message");
    EXPECT_TRUE(inbox.room().empty());
  }
}

TEST(InboxTest, AMessageThatIsTooLongIsAFailure) {
  for (bool isLate : {false, true}) {
    Inbox inbox;
    char target[3];
    if (isLate) {
      feed(inbox, message(1, 5, "abcd"));
    }
    inbox.expect({{1, 5, 3}, target, 11});
    feed(inbox, message(1, 5, "abcd"));
    EXPECT_EQ(errorOf(inbox.status()), "it sent a message of 4 bytes, expected at most 3");
    EXPECT_THAT(arrivalsOf(inbox), IsEmpty());
  }
}

/// Returns the next bytes that `outbox` sends, at most `most`; `done` gets the finished requests.
std::string sent(Outbox &outbox, size_t most, std::vector<uint64_t> &done) {
  iovec parts[16];
  size_t count = outbox.next(parts);
  std::string bytes;
  for (size_t i = 0; i < count; ++i) {
    bytes.append(static_cast<const char *>(parts[i].iov_base), parts[i].iov_len);
  }
  bytes.resize(std::min(bytes.size(), most));
  outbox.sent(bytes.size(), [&](uint64_t request) { done.push_back(request); });
  return bytes;
}

TEST(OutboxTest, MessagesGoInOrderHoweverTheyArePartedUp) {
  for (size_t most : {size_t(1), size_t(17), SIZE_MAX}) {
    Outbox outbox;
    std::vector<uint64_t> done;
    std::string bytes;
    outbox.push({1, 5, 3}, "abc", 11);
    outbox.push({1, 6, 0}, nullptr, 12);
    outbox.push({1, 5, 2}, "de", 13);
    while (!outbox.isEmpty()) {
      bytes += sent(outbox, most, done);
    }
    EXPECT_EQ(bytes, message(1, 5, "abc") + message(1, 6, "") + message(1, 5, "de"));
    EXPECT_THAT(done, ElementsAre(11, 12, 13));
  }
}

TEST(OutboxTest, WhatIsCancelledIsNotSentButItsEndIs) {
  for (size_t already : {size_t(0), size_t(9), size_t(16), size_t(18)}) {
    Outbox outbox;
    std::vector<uint64_t> done;
    std::string text = "abcd";
    outbox.push({1, 5, 4}, text.data(), 11);
    outbox.push({1, 5, 2}, "ef", 12);
    std::string bytes = sent(outbox, already, done);
    outbox.cancel(11);
    outbox.cancel(99);
    text = "????"; // Its memory is used for something else.
    while (!outbox.isEmpty()) {
      bytes += sent(outbox, 3, done);
    }
    EXPECT_EQ(bytes, (already ? message(1, 5, "abcd") : "") + message(1, 5, "ef"));
    EXPECT_THAT(done, ElementsAre(12));
  }
}

} // namespace
