//===- CollectiveExchange.h - one collective by messages ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A collective begins with a message from each member to each: it says what the sender
// means to do, with the elements themselves if they are few. If a partner means another
// collective, the run fails at once and names both. Nothing else is sent before.
//
// Messages of a group of ranks have the group's number as their tag: the mesh's axes that
// its members differ on, as bits, so that the same ranks always have the same.
//
// Running a collective allocates nothing. What does not fit into `kRoom` at once is done in
// rounds.
//
// One thread at a time may use it, or anything else of MPI.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEEXCHANGE_H
#define WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEEXCHANGE_H

#include "backends/processes/FailureDetector.h"
#include "backends/processes/Route.h"
#include "backends/processes/transports/TransportTable.h"

#include <memory>

namespace weft::rt::mpi {

/// What a rank's messages go by.
struct Post {
  const TransportTable &library;
  uint64_t world;
  int64_t self;
  FailureDetector &detector;

  /// Fails the run if MPI has failed. Returns whether all is well.
  bool check(TransportTable::Result result) const;
};

/// A prepared collective. Immutable.
struct Operation {
  Collective collective;
  CallSite site;
  /// `describeCall` of it, and a number that is the same only for the same call.
  std::string text;
  uint64_t fingerprint = 0;
  /// Ranks in group order, and which of them this is.
  std::vector<int64_t> ranks;
  size_t me = 0;
  int64_t group = 0;
  std::vector<Exchange> exchanges;
};

struct Issued {
  const Operation *operation = nullptr;
  const void *operand = nullptr;
  void *result = nullptr;
};

class CollectiveExchange {
public:
  /// Of groups of up to `members`. `post` must outlive it.
  CollectiveExchange(const Post &post, size_t members);
  /// Takes back what is under way.
  ~CollectiveExchange();

  /// Greets all members. REQUIRES: isOver().
  void begin(const Issued &next);
  /// Does what can be done without waiting. Returns whether anything has happened; nothing does
  /// any more once the run has failed.
  /// REQUIRES: !isOver().
  bool advance();
  bool isOver() const { return stage == Stage::Over; }
  /// The ranks whose next message is still to come, or to be taken.
  std::vector<int64_t> missing() const;

private:
  enum class Stage : uint8_t { Over, Greeting, Exchanging };
  /// A request under way.
  struct Pending {
    size_t member = 0;
    bool isGreeting = false;
  };

  void checkGreeting(size_t member);
  void endStage();
  void beginExchange(size_t index);
  void beginRound();
  void endRound();
  void bringOwn(const Exchange &exchange, int64_t length);
  void reduce(const Exchange &exchange, int64_t count);
  bool isInline() const;
  int64_t roundLength(const Exchange &exchange) const;

  void send(size_t member, const char *bytes, size_t count, bool isGreeting);
  void receive(size_t member, char *bytes, size_t count, bool isGreeting);
  char *arrivalFrom(size_t member);
  char *greetingFrom(size_t member) { return greetings.get() + (2 * member) * kGreetingBytes; }
  char *greetingTo(size_t member) { return greetings.get() + (2 * member + 1) * kGreetingBytes; }

  /// Bytes of parts that come, and of parts that go, that are kept at a time.
  static constexpr size_t kRoom = size_t(4) << 20;
  /// Room for the text of a collective and for kFewBytes of elements.
  static constexpr size_t kGreetingBytes = 18432;

  const Post &post;
  /// What it is about, or was last.
  Issued issued;
  Stage stage = Stage::Over;
  size_t exchangeIndex = 0;
  int64_t first = 0; // Element at which the round begins.
  std::vector<uint64_t> requests;
  std::vector<Pending> pendings;
  std::vector<size_t> doneIndices, doneBytes;
  /// Requests that are not done.
  size_t open = 0;
  std::unique_ptr<char[]> greetings, arrivals, departures;
  /// Of the round: by member, the elements that come from it, one after another.
  std::vector<const char *> sources;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_COLLECTIVEEXCHANGE_H
