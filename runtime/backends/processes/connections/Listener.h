//===- Listener.h - accepts connections of a run's processes --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any program can connect to a port. A Listener passes on only connections whose handshake has
// succeeded. Nobody waits for the others: it serves all at the same time, closes a connection at
// the first wrong byte, and one that is not done after `kPatience`. If there are too many, the
// eldest goes, or new ones wait while that one is young.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_LISTENER_H
#define WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_LISTENER_H

#include "backends/processes/connections/Address.h"
#include "backends/processes/connections/Handshake.h"

#include <deque>
#include <functional>

namespace weft::rt::tcp {

class Listener {
public:
  using Take = std::function<void(Descriptor socket, const Claim &claim)>;

  /// The time that a handshake may take, and the time for which one is never given up.
  static constexpr std::chrono::seconds kPatience{30}, kYouth{1};
  /// The most connections whose handshake is not done.
  static constexpr size_t kMostGuests = 256;

  /// Accepts connections of the listening socket `listener` from now on.
  void open(Descriptor listener, const Bytes32 &key, Claim::Purpose purpose);
  void close();
  /// Returns a descriptor that is readable when `look` has work.
  const Descriptor &descriptor() const { return events; }
  /// Returns the address at which it listens.
  Address address() const { return ownAddress(listener); }
  /// Passes each connection whose handshake is done to `take`. Does not wait.
  void look(const Take &take);
  /// Describes the last process of weft that was refused, for an error: "; a process from
  /// 10.0.0.1:4000 was sent away: it has another secret, or none". Empty if there is none.
  const std::string &refusal() const { return lastRefusal; }

private:
  struct Guest {
    Descriptor socket;
    ListenerHandshake handshake;
    Clock::time_point since;
  };
  bool makeRoom();
  void acceptAll();
  static bool advance(Guest &guest);

  Descriptor events, listener;
  Bytes32 key = {};
  Claim::Purpose purpose = Claim::Purpose::Rendezvous;
  std::deque<Guest> guests;
  std::string lastRefusal;
};

/// The outcome of a handshake with a process that listens.
enum class HandshakeResult : uint8_t {
  Authenticated,
  /// It is not of this run: see the handshake's `reason`.
  Stranger,
  /// It has closed the connection on this process's proof: it has another key.
  Refused,
  /// It has closed the connection before, or does not answer.
  Silent,
};

/// Runs the handshake at a connected socket; waits for the other side until `end`.
HandshakeResult performHandshake(const Descriptor &socket, ConnectorHandshake &handshake,
                                 Clock::time_point end);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_LISTENER_H
