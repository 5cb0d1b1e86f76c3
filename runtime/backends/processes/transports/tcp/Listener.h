//===- Listener.h - who comes to a process by TCP -------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Anybody can connect to a port. Who does not say at once what a process of a run says is
// sent away without an answer; who says a part of it and falls silent waits until too
// many do.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_LISTENER_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_LISTENER_H

#include "backends/processes/transports/tcp/Address.h"

#include <deque>
#include <functional>

namespace weft::rt::tcp {

/// What a process says first on every connection that it begins. The first two stay as they are in
/// every version.
struct Hello {
  static constexpr uint64_t kMagic = 0x7063742074666577; // "weft tcp" in the bytes' order.
  static constexpr uint32_t kVersion = 1;

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  /// Where the sender listens itself.
  uint16_t port = 0;
  uint16_t unused = 0;
  uint32_t rank = 0, size = 0;
  /// Of the run: what its name gives, to rank 0; what rank 0 has told all, to others.
  uint64_t key = 0;
};
static_assert(sizeof(Hello) == 32);

/// One who says hello, byte by byte.
class Handshake {
public:
  enum class State : uint8_t { Speaking, Done, Stranger };

  /// Where what comes next belongs.
  std::span<char> room() { return {bytes + count, sizeof bytes - count}; }
  /// `more` bytes have come.
  State take(size_t more);
  /// REQUIRES: Done.
  Hello hello() const;

private:
  char bytes[sizeof(Hello)] = {};
  size_t count = 0;
};

class Listener {
public:
  using Take = std::function<void(Descriptor socket, const Hello &hello)>;

  /// Lets in who comes to `listener`.
  void open(Descriptor listener);
  void close();
  /// Can be read when somebody is at the listener.
  const Descriptor &descriptor() const { return events; }
  /// Where it is, on the interfaces it listens at.
  Address address() const { return ownAddress(listener); }
  /// Gives away who has said hello. Does not wait.
  void look(const Take &take);

private:
  struct Guest {
    Descriptor socket;
    Handshake handshake;
  };
  /// How many may wait at the listener.
  static constexpr size_t kMostGuests = 256;

  Descriptor events, listener;
  std::deque<Guest> guests;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_LISTENER_H
