//===- Network.h - messages between processes over TCP --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each two ranks share one connection, which the higher one begins when either first has
// to do with the other; those to rank 0 are there from the beginning. Nothing waits but
// `allGather` and `finish`, and what is under way goes on only within calls: there is no
// thread.
//
// A connection that ends is no failure by itself: whose process has died is found out
// and said by the FailureDetector. Only where that has said nothing for a while, those who wait for
// the rank get an error.
//
// Of groups only the last one made is alive. Belongs to one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_NETWORK_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_NETWORK_H

#include "backends/processes/transports/TransportTable.h"
#include "backends/processes/transports/tcp/Bootstrap.h"
#include "backends/processes/transports/tcp/Outbox.h"

namespace weft::rt::tcp {

class Network {
public:
  using Result = mpi::TransportTable::Result;

  /// `patience` is how long `allGather` waits for others.
  Network(Bootstrap gathered, std::chrono::nanoseconds patience);

  // See TransportTable.h.
  Result makeGroup(int64_t members, uint64_t *group);
  Result allGather(uint64_t group, const void *own, void *all, size_t bytes);
  Result send(uint64_t group, const void *bytes, size_t count, int64_t to, int32_t tag,
              uint64_t *request);
  Result receive(uint64_t group, void *bytes, size_t count, int64_t from, int32_t tag,
                 uint64_t *request);
  Result test(std::span<uint64_t> requests, size_t *doneCount, size_t *done, size_t *bytes);
  void cancel(uint64_t *request);
  void finish();

  static constexpr uint64_t kIdle = 0;

private:
  struct Peer {
    enum class State : uint8_t { Unknown, Connecting, Open, Lost };

    State state = State::Unknown;
    Descriptor socket;
    Inbox inbox;
    Outbox outbox;
    /// What of the socket is waited for.
    uint32_t interest = 0;
    Clock::time_point lostAt;
    std::string reason;
  };
  struct Request {
    int64_t rank = 0;
    bool isSend = false, isDone = false;
    /// That came.
    size_t bytes = 0;
  };

  void progress(std::chrono::milliseconds limit);
  void admit(Descriptor socket, const Hello &hello);
  void adopt(int64_t rank, Descriptor socket, Peer::State state);
  void connect(int64_t rank);
  void handle(int64_t rank, uint32_t events);
  void read(int64_t rank);
  void flush(int64_t rank);
  void settle(int64_t rank);
  void lose(int64_t rank, const std::string &reason);
  uint64_t begin(int64_t rank, bool isSend);
  void end(uint64_t request, size_t bytes);
  /// Why `request` will never be done, or null.
  Result faultOf(uint64_t request);
  Result await(std::span<uint64_t> requests);

  Bootstrap bootstrap;
  const std::chrono::nanoseconds patience;
  Descriptor events;
  std::vector<Peer> peers;
  /// A request is the number of one of these, from 1 on.
  std::vector<Request> requests;
  std::vector<uint64_t> freeRequests;
  uint32_t lastGroup = 0;
  int64_t members = 0;
  std::string error;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_NETWORK_H
