//===- Outbox.h - what goes to one rank -----------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages of one connection, in the order they were given. They are sent from where they
// lie. Knows no sockets.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_OUTBOX_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_OUTBOX_H

#include "backends/processes/transports/tcp/Inbox.h"

#include <sys/uio.h>

namespace weft::rt::tcp {

class Outbox {
public:
  /// What goes before all messages: it is copied.
  void pushFirst(std::span<const char> bytes);
  /// `head.bytes` at `bytes` stay there until `request` is done or cancelled.
  void push(const Head &head, const char *bytes, uint64_t request);
  /// A message that nothing is sent of yet is not sent; the rest of one that is half sent is
  /// copied.
  void cancel(uint64_t request);

  bool isEmpty() const { return first == messages.size(); }
  /// What is to be sent next; returns how many of `parts` there are.
  size_t next(std::span<iovec> parts);
  /// `count` bytes of it have gone; calls `done` with each request that has.
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
    /// Bytes of the head that are sent: all, or none where there is none.
    size_t headBytes = 0;
    const char *bytes = nullptr;
    size_t gone = 0;
    uint64_t request = 0;
    std::vector<char> own;

    size_t rest() const { return headBytes + size_t(head.bytes) - gone; }
  };

  /// From `first` on.
  std::vector<Message> messages;
  size_t first = 0;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_OUTBOX_H
