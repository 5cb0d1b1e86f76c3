//===- Inbox.h - received messages of one connection ----------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses the messages of one connection in order: each is a head and the bytes that the
// head counts. A message that a receipt expects goes straight to the receipt's memory. Up
// to `kMostKept` bytes of unexpected messages are kept; beyond that the inbox reads nothing,
// so that the sender waits until somebody expects the next message.
//
// Knows no sockets. Checks all bytes that come.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_INBOX_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_INBOX_H

#include "weft-rt/Status.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace weft::rt::tcp {

/// The head of a message, before its bytes.
struct Head {
  uint32_t group = 0;
  int32_t tag = 0;
  uint64_t bytes = 0;

  bool isOf(const Head &other) const { return group == other.group && tag == other.tag; }
};
static_assert(sizeof(Head) == 16);

class Inbox {
public:
  /// Expects a message with the group and tag of `label`, of at most `label.bytes` bytes.
  struct Receipt {
    Head label;
    char *target = nullptr;
    uint64_t request = 0;
  };
  /// A request whose message has arrived, and the message's size.
  struct Arrival {
    uint64_t request = 0;
    size_t bytes = 0;
  };

  static constexpr size_t kMostKept = size_t(1) << 18;

  /// Allocates what it needs as long as not too many messages are expected at a time; otherwise it
  /// does as they come.
  void reserve();

  /// Adds a receipt. Receipts of one label get messages in order. A message that is longer than its
  /// receipt allows is a failure.
  void expect(const Receipt &receipt);
  /// Cancels a receipt: its memory is not written any more.
  void cancel(uint64_t request);
  /// From now on drops messages of groups before `group`.
  void beginGroup(uint32_t group);

  /// Returns the memory for the bytes that come next; empty while the inbox reads nothing.
  std::span<char> room();
  /// Takes `count` bytes that were received in `room()`.
  void take(size_t count);
  /// Fails if the bytes were not valid messages; then nothing more is read.
  const Status &status() const { return taken; }

  /// The requests that are done; the caller clears it.
  std::vector<Arrival> arrivals;

private:
  enum class Body : uint8_t { None, Expected, Kept, Thrown, Held };
  /// A message whose bytes begin at byte `at` of the room for kept messages.
  struct Message {
    Head head;
    size_t at = 0;
  };
  void beginBody();
  void endBody();
  void refuseLength(const Head &label);
  void keep();
  void forget(std::vector<Message>::iterator message);

  std::vector<Receipt> receipts;
  /// Unexpected messages, in the order of their bytes; the last may be incomplete.
  std::vector<Message> kept;
  /// `kMostKept` bytes for kept messages; null before the first. Pages that no message has needed
  /// take no memory.
  std::unique_ptr<char[]> keptRoom;
  size_t keptBytes = 0;
  uint32_t group = 0;

  Head head;
  size_t headCount = 0;
  Body body = Body::None;
  size_t bodyCount = 0;
  /// The receipt of the message that is being read, if it was expected.
  Receipt current;
  Status taken;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_INBOX_H
