//===- Outbox.h - messages to send over one connection --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Queues the messages of one connection, in order. Messages are not copied. Knows no sockets.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_OUTBOX_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_OUTBOX_H

#include "backends/processes/transports/tcp/Inbox.h"

#include <sys/uio.h>

namespace weft::rt::tcp {

class Outbox {
public:
  /// Allocates what it needs as long as not too many messages are queued; otherwise it does as they
  /// come.
  void reserve() { messages.reserve(64); }
  /// Adds a message. The memory at `bytes` must stay valid until `request` is done or cancelled.
  void push(const Head &head, const char *bytes, uint64_t request);
  /// Removes a message of which nothing was sent yet; copies the rest of one that is partly sent.
  void cancel(uint64_t request);

  bool isEmpty() const { return first == messages.size(); }
  /// Fills `parts` with the memory to send next, and returns their number.
  size_t next(std::span<iovec> parts);
  /// Records that `count` bytes were sent, and calls `done` with each request that is thereby done.
  template <typename Done> void sent(size_t count, const Done &done) {
    while (first < messages.size() && count >= messages[first].rest()) {
      count -= messages[first].rest();
      if (messages[first].request != 0) {
        done(messages[first].request);
      }
      ++first;
    }
    if (count > 0) {
      messages[first].gone += count;
    }
    if (isEmpty()) {
      messages.clear();
      first = 0;
    }
  }

private:
  struct Message {
    Head head;
    const char *bytes = nullptr;
    size_t gone = 0;
    uint64_t request = 0;
    std::vector<char> own;

    size_t rest() const { return sizeof head + size_t(head.bytes) - gone; }
  };

  /// The queue begins at index `first`.
  std::vector<Message> messages;
  size_t first = 0;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_OUTBOX_H
