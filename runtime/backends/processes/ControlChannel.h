//===- ControlChannel.h - messages about failures, beside MPI -------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A socket from every rank's process to that of rank 0, beside MPI. However a process ends,
// the system closes its socket, and the other side notices at once; a process that is stuck
// in MPI or in a kernel can still get and answer messages.
//
// Short messages, of a kind and a text, go both ways, in order. Sending never waits: a
// process that does not read until its socket is full misses messages.
//
// Not safe for several threads, except that `wait` may run beside any function but `close`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_CONTROLCHANNEL_H
#define WEFT_RT_BACKENDS_PROCESSES_CONTROLCHANNEL_H

#include "backends/processes/connections/Listener.h"
#include "weft-rt/Status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

namespace weft::rt::mpi {

/// Parses the messages of one connection: each is a head and a text. Keeps at most one message and
/// what was received with it. Knows no sockets.
class ControlMessages {
public:
  using Handler = std::function<void(uint8_t kind, const std::string &text)>;

  /// The longest text; `encode` cuts longer ones.
  static constexpr size_t kMostText = 1 << 16;

  static std::string encode(uint8_t kind, const std::string &text);
  /// Takes bytes that have come, and handles the messages that are thereby complete. Returns false
  /// once the bytes were no valid messages; nothing more is handled then.
  bool take(std::span<const char> bytes, const Handler &handle);

private:
  std::string received;
  bool isValid = true;
};

class ControlChannel {
public:
  static constexpr size_t kAddressBytes = 512;

  /// Handles a message of `rank`. Kind 0 means that the socket is closed; no message follows it.
  using Handler = std::function<void(int64_t rank, uint8_t kind, const std::string &text)>;

  ControlChannel() = default;
  ControlChannel(const ControlChannel &) = delete;
  ControlChannel &operator=(const ControlChannel &) = delete;
  ~ControlChannel();

  /// Rank 0 calls both. `listen` returns the address to connect to, shorter than `kAddressBytes`.
  /// If `host`, the launcher's name of rank 0's machine, is a loopback address, no other machine
  /// can connect. `accept` waits up to `patience` for all `ranks` (rank 0 included) to connect and
  /// to prove that they have `key`.
  Result<std::string> listen(const std::string &host);
  Status accept(int64_t ranks, const Bytes32 &key, std::chrono::nanoseconds patience);

  /// Connects another rank to rank 0, within `patience` for each of its addresses.
  Status connect(const std::string &address, int64_t rank, const Bytes32 &key,
                 std::chrono::nanoseconds patience);

  /// Sends to `rank`; all but rank 0 can only send to rank 0. REQUIRES: kind > 0.
  void send(int64_t rank, uint8_t kind, const std::string &text);

  /// Waits until a message can be read, or a descriptor of `others`, or `limit` has passed.
  void wait(std::chrono::microseconds limit, std::span<const int> others);
  /// Handles the messages that have arrived, up to 64 KiB of each rank. Does not wait.
  void read(const Handler &handle);

private:
  struct Peer {
    int64_t rank = 0;
    tcp::Descriptor socket;
    ControlMessages messages;
  };
  void adopt(int64_t rank, tcp::Descriptor socket);
  static void read(Peer &peer, const Handler &handle);

  /// Listens from `listen` to the end of `accept`.
  tcp::Descriptor listening;
  tcp::Listener listener;
  std::vector<Peer> peers;
  /// What `wait` polls; kept so that waiting allocates nothing.
  std::vector<pollfd> polled;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_CONTROLCHANNEL_H
