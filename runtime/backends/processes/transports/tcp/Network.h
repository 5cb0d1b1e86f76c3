//===- Network.h - messages between processes over TCP --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each pair of ranks shares one connection, which the higher rank begins when it first needs
// it; the connections to rank 0 exist from the beginning. Only `allGather` and `finish` wait.
// Messages make progress only within calls: there is no thread.
//
// A lost connection alone is no failure: the FailureDetector finds and reports dead processes.
// Requests for a lost rank fail only after some time without such a report.
//
// Only the group that was made last may be used. Only one thread at a time may call.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_NETWORK_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_NETWORK_H

#include "backends/processes/transports/TransportTable.h"
#include "backends/processes/transports/tcp/Bootstrap.h"
#include "backends/processes/transports/tcp/Outbox.h"

#include <optional>

namespace weft::rt::tcp {

class Network {
public:
  using Result = mpi::TransportTable::Result;

  /// `allGather` waits up to `patience` for other ranks.
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
    enum class State : uint8_t { Unknown, Connecting, Greeting, Open, Lost };

    State state = State::Unknown;
    Descriptor socket;
    /// Set while Connecting or Greeting.
    std::optional<ConnectorHandshake> handshake;
    Inbox inbox;
    Outbox outbox;
    /// The events of the socket that are polled for.
    uint32_t interest = 0;
    Clock::time_point lostAt;
    std::string reason;
  };
  struct Request {
    int64_t rank = 0;
    bool isSend = false, isDone = false;
    /// The bytes received.
    size_t bytes = 0;
  };

  void progress(std::chrono::milliseconds limit);
  void admit(Descriptor socket, const Claim &claim);
  void adopt(int64_t rank, Descriptor socket, Peer::State state);
  void connect(int64_t rank);
  void handle(int64_t rank, uint32_t events);
  void greet(int64_t rank);
  void read(int64_t rank);
  void flush(int64_t rank);
  void settle(int64_t rank);
  void lose(int64_t rank, const std::string &reason);
  uint64_t begin(int64_t rank, bool isSend);
  void end(uint64_t request, size_t bytes);
  /// Returns the reason why `request` will never be done, or null.
  Result faultOf(uint64_t request);
  Result await(std::span<uint64_t> requests);

  Bootstrap bootstrap;
  const std::chrono::nanoseconds patience;
  Descriptor events;
  std::vector<Peer> peers;
  /// Request handles are indices into this, plus 1.
  std::vector<Request> requests;
  std::vector<uint64_t> freeRequests;
  uint32_t lastGroup = 0;
  int64_t members = 0;
  std::string error;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_NETWORK_H
