//===- CollectiveExchange.h - one collective by messages ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// First each member sends each other member a greeting: it describes the sender's collective
// and carries the elements themselves if they are few. If two members have begun different
// collectives, the run fails at once and names both.
//
// Messages of a group of ranks have the group's number as their tag.
//
// Running a collective allocates nothing. Elements that do not fit into `kRoom` at once are
// exchanged in rounds.
//
// Only one thread at a time may use a CollectiveExchange or any function of MPI.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEEXCHANGE_H
#define WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEEXCHANGE_H

#include "backends/processes/FailureDetector.h"
#include "backends/processes/Route.h"
#include "backends/processes/transports/TransportTable.h"
#include "support/TestDelays.h"

#include <memory>

namespace weft::rt::mpi {

/// Sends and receives the messages of a rank.
struct Post {
  const TransportTable &library;
  uint64_t world;
  int64_t self;
  FailureDetector &detector;

  /// Returns true if `result` is a success; else fails the run.
  bool check(TransportTable::Result result) const;
};

/// A prepared collective. Immutable.
struct Operation {
  Collective collective;
  CallSite site;
  /// See CallText.h.
  std::string text;
  uint64_t fingerprint = 0;
  RankGroup group;
  /// The group's key in `Engine::begun`.
  int64_t counter = 0;
  /// The index of this rank in the group.
  size_t me = 0;
  std::vector<Exchange> exchanges;
  /// What links add, for tests.
  TestDelays::Duration linkDelay = {};
};

struct Issued {
  const Operation *operation = nullptr;
  const void *operand = nullptr;
  void *result = nullptr;
};

class CollectiveExchange {
public:
  /// Works for groups of up to `members` ranks. `post` must outlive it.
  CollectiveExchange(const Post &post, size_t members);
  /// Cancels requests that are under way.
  ~CollectiveExchange();

  /// Begins a collective: greets all members. REQUIRES: isOver().
  void begin(const Issued &next);
  /// Does all work that needs no waiting. Returns true if there was progress; there is none once
  /// the run has failed.
  /// REQUIRES: !isOver().
  bool advance();
  bool isOver() const { return stage == Stage::Over; }
  /// Returns the ranks with a message to or from this rank that is not done.
  std::vector<int64_t> missing() const;

private:
  enum class Stage : uint8_t { Over, Greeting, Exchanging };
  /// A request under way.
  struct Pending {
    enum class Kind : uint8_t { Send, Greeting, Elements };

    size_t member = 0;
    Kind kind = Kind::Send;
    /// The bytes of the message.
    size_t bytes = 0;
  };

  /// Check a received message, of `bytes` bytes, and fail the run if it is not what it should be.
  void checkGreeting(size_t member, size_t bytes);
  void checkElements(const Pending &pending, size_t bytes);
  void endStage();
  void beginExchange(size_t index);
  void beginRound();
  void endRound();
  void bringOwn(const Exchange &exchange, int64_t length);
  void reduce(const Exchange &exchange, int64_t count);
  bool isInline() const;
  int64_t roundLength(const Exchange &exchange) const;

  void send(size_t member, const char *bytes, size_t count, bool isGreeting);
  void receive(size_t member, char *bytes, size_t count, Pending::Kind kind);
  char *arrivalFrom(size_t member);
  char *greetingFrom(size_t member) { return greetings.get() + (2 * member) * kGreetingBytes; }
  char *greetingTo(size_t member) { return greetings.get() + (2 * member + 1) * kGreetingBytes; }

  /// The bytes of received parts, and of parts to send, that are buffered at a time.
  static constexpr size_t kRoom = size_t(4) << 20;
  /// The bytes of a greeting: the text of a collective and kFewBytes of elements.
  static constexpr size_t kGreetingBytes = 18432;

  const Post &post;
  /// The collective under way, or else the last one.
  Issued issued;
  Stage stage = Stage::Over;
  size_t exchangeIndex = 0;
  int64_t first = 0; // Element at which the round begins.
  std::vector<uint64_t> requests;
  std::vector<Pending> pendings;
  std::vector<size_t> doneIndices, doneBytes;
  /// The number of requests that are not done.
  size_t open = 0;
  std::unique_ptr<char[]> greetings, arrivals, departures;
  /// By member, the elements of this round that it sent, packed.
  std::vector<const char *> sources;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEEXCHANGE_H
