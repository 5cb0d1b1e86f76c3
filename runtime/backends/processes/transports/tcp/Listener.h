//===- Listener.h - accepts connections of a run's processes --------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any program can connect to a port. A connection whose first bytes are no Hello is closed
// without an answer; one that sends a part of a Hello and falls silent stays until there are
// too many.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_LISTENER_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_LISTENER_H

#include "backends/processes/transports/tcp/Address.h"

#include <deque>
#include <functional>

namespace weft::rt::tcp {

/// The first bytes on every connection, sent by the process that begins it. `magic` and `version`
/// stay as they are in all versions.
struct Hello {
  static constexpr uint64_t kMagic = 0x7063742074666577; // "weft tcp" in the bytes' order.
  static constexpr uint32_t kVersion = 1;

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  /// The port at which the sender listens.
  uint16_t port = 0;
  uint16_t unused = 0;
  uint32_t rank = 0, size = 0;
  /// Identifies the run: to rank 0 a hash of the run's name, to others the secret that rank 0 has
  /// sent to all.
  uint64_t key = 0;
};
static_assert(sizeof(Hello) == 32);

/// Receives the Hello of one connection in parts.
class Handshake {
public:
  enum class State : uint8_t { Speaking, Done, Stranger };

  /// Returns the memory for the bytes that come next.
  std::span<char> room() { return {bytes + count, sizeof bytes - count}; }
  /// Takes `more` bytes that were received in `room()`.
  State take(size_t more);
  /// REQUIRES: the state is Done.
  Hello hello() const;

private:
  char bytes[sizeof(Hello)] = {};
  size_t count = 0;
};

class Listener {
public:
  using Take = std::function<void(Descriptor socket, const Hello &hello)>;

  /// Accepts connections of the listening socket `listener` from now on.
  void open(Descriptor listener);
  void close();
  /// Returns a descriptor that is readable when `look` has work.
  const Descriptor &descriptor() const { return events; }
  /// Returns the address at which it listens.
  Address address() const { return ownAddress(listener); }
  /// Passes each connection whose Hello is complete to `take`. Does not wait.
  void look(const Take &take);

private:
  struct Guest {
    Descriptor socket;
    Handshake handshake;
  };
  /// The most connections with an incomplete Hello.
  static constexpr size_t kMostGuests = 256;

  Descriptor events, listener;
  std::deque<Guest> guests;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_LISTENER_H
