//===- ControlChannel.h - how processes notice that one is gone -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A socket from every rank's process to that of rank 0, besides MPI. When a process
// ends in whatever way, the system closes its socket, and the other side notices at
// once; a process that is stuck in MPI or in a kernel can still be asked and told.
//
// Short messages of a kind and some text go both ways, in order. To send never waits: a
// process that does not read for so long that its socket is full misses messages.
//
// Not safe for several threads, except that `wait` may run beside anything but `close`.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_CONTROLCHANNEL_H
#define WEFT_RT_BACKENDS_PROCESSES_CONTROLCHANNEL_H

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace weft::rt::mpi {

class ControlChannel {
public:
  static constexpr size_t kAddressBytes = 512;

  /// Gets a message of `rank`, or with kind 0 that its socket is closed, which is the last.
  using Handler = std::function<void(int64_t rank, uint8_t kind, const std::string &text)>;

  ControlChannel() = default;
  ControlChannel(const ControlChannel &) = delete;
  ControlChannel &operator=(const ControlChannel &) = delete;
  ~ControlChannel();

  /// Of rank 0: where the others find it, in less than `kAddressBytes`. Then lets the others in,
  /// `ranks` with itself; who does not bring `secret` is sent away.
  bool listen(std::string &address, std::string &error);
  bool accept(int64_t ranks, uint64_t secret, std::chrono::nanoseconds patience,
              std::string &error);

  /// Of another rank.
  bool connect(const std::string &address, int64_t rank, uint64_t secret, std::string &error);

  /// To rank 0, or from rank 0 to `rank`. Kinds are above 0.
  void send(int64_t rank, uint8_t kind, const std::string &text);

  /// Waits until there is something to read, here or from `others`, or `limit` has passed.
  void wait(std::chrono::milliseconds limit, const std::vector<int> &others) const;
  /// Handles all that there is to read.
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
