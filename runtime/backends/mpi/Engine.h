//===- Engine.h - runs collectives by messages ----------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A queue of collectives that the rank has issued, of which the first is under way. A
// collective begins with a message from each member to each: it says what the sender
// means to do, with the elements themselves if they are few. If a partner means another
// collective, the run fails at once and names both. Nothing else is sent before.
//
// `advance` does what can be done without waiting. The rank's thread calls it while it
// waits, another one now and then while the rank computes; a lock lets one at a time in.
//
// Messages of a group of ranks have the group's number as their tag: the mesh's axes that
// its members differ on, as bits, so that the same ranks always have the same.
//
// Running a collective allocates nothing. What does not fit into `kRoom` at once is done in
// rounds.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_MPI_ENGINE_H
#define WEFT_RT_BACKENDS_MPI_ENGINE_H

#include "backends/mpi/Library.h"
#include "backends/mpi/Route.h"
#include "backends/mpi/Watch.h"

#include <atomic>
#include <deque>
#include <map>
#include <memory>

namespace weft::rt::mpi {

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

class Engine {
public:
  using Clock = Watch::Clock;

  /// Bytes of pieces that come, and of pieces that go, that are kept at a time.
  static constexpr size_t kRoom = size_t(4) << 20;

  Engine(const Library &library, uint64_t world, std::vector<Axis> mesh, int64_t rank, Watch &watch,
         std::chrono::nanoseconds timeout);
  /// Takes back what is under way.
  ~Engine();

  // See Communicator. By the rank's thread.
  Communicator::Handle prepare(const Collective &collective, const CallSite &site);
  bool issue(Communicator::Handle handle, const void *operand, void *result);
  bool wait(Communicator::Handle handle);
  bool collect(std::span<const char> own, const Communicator::Receiver &take);
  double waitedSeconds() const { return waited; }

  /// Any thread: goes on with what has been issued, if nobody else does. Returns whether there is
  /// still something to do for it; when there is again, `Watch::wake` is called.
  bool help();

  /// How many collectives of each group have begun. By the rank's thread, or after its end.
  const std::map<int64_t, int64_t> &begun() const { return begunCounts; }

private:
  struct Issued {
    const Operation *operation = nullptr;
    const void *operand = nullptr;
    void *result = nullptr;
  };
  enum class Stage : uint8_t { Waiting, Meeting, Exchanging };
  /// A request under way.
  struct Pending {
    size_t member = 0;
    bool isGreeting = false;
  };

  bool advance();
  void begin(const Issued &issued);
  void checkGreeting(const Issued &issued, size_t member);
  void endStage(const Issued &issued);
  void beginExchange(const Issued &issued, size_t index);
  void beginRound(const Issued &issued);
  void endRound(const Issued &issued);
  void bringOwn(const Issued &issued, const Exchange &exchange, int64_t count);
  void reduce(const Issued &issued, const Exchange &exchange, int64_t count);
  void finish();
  bool isInline(const Operation &operation) const;
  int64_t roundLength(const Operation &operation, const Exchange &exchange) const;
  char *arrivalFrom(const Operation &operation, size_t member);

  void send(const Operation &operation, size_t member, const char *bytes, size_t count,
            bool isGreeting);
  void receive(const Operation &operation, size_t member, char *bytes, size_t count,
               bool isGreeting);
  bool check(Library::Result result);
  char *greetingFrom(size_t member) { return greetings.get() + (2 * member) * kGreetingBytes; }
  char *greetingTo(size_t member) { return greetings.get() + (2 * member + 1) * kGreetingBytes; }

  bool isQueued(Communicator::Handle handle) const;
  void keepWaiting(Clock::duration idle);
  void report(bool isTooLong);
  bool transfer(const Operation &operation, int64_t partner, uint64_t request);
  bool transferAll(const Operation &operation, int64_t partner, char *bytes, size_t count);
  static void pauseFor(Clock::duration idle);

  /// Room for the text of a collective and for kFewBytes of elements.
  static constexpr size_t kGreetingBytes = 18432;

  const Library &library;
  const uint64_t world;
  const std::vector<Axis> mesh;
  const int64_t self;
  Watch &watch;
  const std::chrono::nanoseconds timeout;
  double waited = 0;
  /// Whether the rank's thread waits, and so goes on with the queue itself.
  std::atomic<bool> isAttended = false;
  Clock::duration nextAsk = {};
  bool hasReported = false;

  /// One of a rank's own, for `collect`.
  Communicator::Handle collecting = 0;
  /// Never shrinks, so operations stay where they are.
  std::deque<Operation> operations;

  /// Guards MPI and all below.
  std::mutex mutex;
  std::vector<Issued> queue;
  /// Of the first in the queue.
  Stage stage = Stage::Waiting;
  size_t exchangeIndex = 0;
  int64_t first = 0; // Element at which the round begins.
  std::vector<uint64_t> requests;
  std::vector<Pending> pendings;
  std::vector<size_t> doneIndices, doneBytes;
  /// Requests that are not done.
  size_t open = 0;
  Clock::time_point lastMove;
  std::map<int64_t, int64_t> begunCounts;
  std::unique_ptr<char[]> greetings, arrivals, departures;
  /// Of the round: by member, the elements that come from it, one after another.
  std::vector<const char *> sources;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_MPI_ENGINE_H
