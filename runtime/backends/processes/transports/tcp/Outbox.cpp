//===- Outbox.cpp - messages to send over one connection -----------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Outbox.h"

#include <algorithm>

using namespace weft::rt::tcp;

void Outbox::push(const Head &head, const char *bytes, uint64_t request) {
  messages.push_back({head, bytes, 0, request, {}});
}

void Outbox::cancel(uint64_t request) {
  auto message = std::ranges::find(messages.begin() + ptrdiff_t(first), messages.end(), request,
                                   &Message::request);
  if (message == messages.end()) {
    return;
  }
  if (message->gone == 0) {
    messages.erase(message);
    return;
  }
  size_t gone = std::max(message->gone, sizeof(Head)) - sizeof(Head);
  message->own.assign(message->bytes + gone, message->bytes + message->head.bytes);
  message->bytes = message->own.data(); // Which stays where it is when the message is moved.
  message->head.bytes -= gone;          // `gone` now counts only bytes of the head.
  message->gone -= gone;
  message->request = 0;
}

size_t Outbox::next(std::span<iovec> parts) {
  size_t count = 0;
  for (size_t i = first; i < messages.size() && count + 2 <= parts.size(); ++i) {
    Message &message = messages[i];
    size_t ofHead = std::min(message.gone, sizeof(Head)), gone = message.gone - ofHead;
    if (ofHead < sizeof(Head)) {
      parts[count++] = {reinterpret_cast<char *>(&message.head) + ofHead, sizeof(Head) - ofHead};
    }
    if (gone < message.head.bytes) {
      // The system only reads it.
      parts[count++] = {const_cast<char *>(message.bytes) + gone,
                        size_t(message.head.bytes) - gone};
    }
  }
  return count;
}
