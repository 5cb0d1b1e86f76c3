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

#include "weft-rt/Status.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft::rt::mpi {

class ControlChannel {
public:
  static constexpr size_t kAddressBytes = 512;

  /// Handles a message of `rank`. Kind 0 means that the socket is closed; no message follows it.
  using Handler = std::function<void(int64_t rank, uint8_t kind, const std::string &text)>;

  ControlChannel() = default;
  ControlChannel(const ControlChannel &) = delete;
  ControlChannel &operator=(const ControlChannel &) = delete;
  ~ControlChannel();

  /// Rank 0 calls both. `listen` returns the address to connect to, shorter than `kAddressBytes`;
  /// `accept` waits up to `patience` for all `ranks` (rank 0 included) to connect. It closes
  /// connections that do not send `secret`.
  Result<std::string> listen();
  Status accept(int64_t ranks, uint64_t secret, std::chrono::nanoseconds patience);

  /// Connects another rank to rank 0.
  Status connect(const std::string &address, int64_t rank, uint64_t secret);

  /// Sends to `rank`; all but rank 0 can only send to rank 0. REQUIRES: kind > 0.
  void send(int64_t rank, uint8_t kind, const std::string &text);

  /// Waits until a message can be read, or a descriptor of `others`, or `limit` has passed.
  void wait(std::chrono::milliseconds limit, const std::vector<int> &others) const;
  /// Handles all messages that have arrived. Does not wait.
  void read(const Handler &handle);

private:
  struct Peer {
    int64_t rank = 0;
    int descriptor = -1;
    std::string received;
  };
  bool letIn(int descriptor, int64_t ranks, uint64_t secret);
  void read(Peer &peer, const Handler &handle);

  int listener = -1;
  std::vector<Peer> peers;
};

} // namespace weft::rt::mpi

#endif // WEFT_RT_BACKENDS_PROCESSES_CONTROLCHANNEL_H
