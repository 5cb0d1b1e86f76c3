//===- Inbox.cpp - received messages of one connection -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Inbox.h"

#include "backends/processes/transports/TransportTable.h"
#include "support/Text.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::tcp;

/// Returns memory for bytes that are dropped; nobody reads it.
static std::span<char> wasteRoom() {
  static thread_local char room[1 << 16];
  return room;
}

/// Returns the bytes that a kept message counts; an empty message counts too.
static size_t costOf(const Head &head) { return size_t(head.bytes) + 64; }

void Inbox::reserve() {
  constexpr size_t kUsual = 64;
  receipts.reserve(kUsual);
  kept.reserve(kUsual);
  arrivals.reserve(kUsual);
  keptRoom = std::make_unique_for_overwrite<char[]>(kMostKept);
}

void Inbox::refuseLength(const Head &label) {
  taken = makeError("it sent a message of ", head.bytes, " bytes, expected at most ", label.bytes);
}

/// Begins to keep the message of the present head. Its bytes come behind those of the last kept
/// message; where these leave no room at the end, gaps that forgotten messages have left are
/// closed.
void Inbox::keep() {
  if (!keptRoom) {
    reserve();
  }
  auto endOf = [](const Message &message) { return message.at + size_t(message.head.bytes); };
  size_t end = kept.empty() ? 0 : endOf(kept.back());
  if (head.bytes > kMostKept - end) {
    end = 0;
    for (Message &message : kept) {
      std::memmove(keptRoom.get() + end, keptRoom.get() + message.at, size_t(message.head.bytes));
      message.at = end;
      end = endOf(message);
    }
  }
  keptBytes += costOf(head);
  kept.push_back({head, end});
}

void Inbox::forget(std::vector<Message>::iterator message) {
  keptBytes -= costOf(message->head);
  kept.erase(message);
}

void Inbox::expect(const Receipt &receipt) {
  auto found = std::ranges::find_if(
      kept, [&](const Message &message) { return message.head.isOf(receipt.label); });
  if (found == kept.end()) {
    receipts.push_back(receipt);
    if (body == Body::Held && head.isOf(receipt.label)) {
      beginBody();
    }
    return;
  }
  if (found->head.bytes > receipt.label.bytes) {
    return refuseLength(receipt.label);
  }
  bool isOnItsWay = body == Body::Kept && found + 1 == kept.end();
  size_t here = isOnItsWay ? bodyCount : size_t(found->head.bytes);
  if (here > 0) {
    std::memcpy(receipt.target, keptRoom.get() + found->at, here);
  }
  if (isOnItsWay) {
    body = Body::Expected;
    current = receipt;
  } else {
    arrivals.push_back({receipt.request, here});
  }
  forget(found);
}

void Inbox::cancel(uint64_t request) {
  std::erase_if(receipts, [&](const Receipt &receipt) { return receipt.request == request; });
  if (body == Body::Expected && current.request == request) {
    body = Body::Thrown;
  }
}

void Inbox::beginGroup(uint32_t next) {
  group = next;
  std::erase_if(receipts, [&](const Receipt &receipt) { return receipt.label.group < group; });
  if (body != Body::None && head.group < group) {
    body = Body::Thrown;
  }
  for (size_t i = kept.size(); i-- > 0;) {
    if (kept[i].head.group < group) {
      forget(kept.begin() + ptrdiff_t(i));
    }
  }
  if (body == Body::Thrown && bodyCount == head.bytes) {
    endBody(); // It was held, and has no bytes.
  }
}

std::span<char> Inbox::room() {
  size_t rest = size_t(head.bytes) - bodyCount;
  if (!taken || body == Body::Held) {
    return {};
  }
  switch (body) {
  case Body::Expected:
    return {current.target + bodyCount, rest};
  case Body::Kept:
    return {keptRoom.get() + kept.back().at + bodyCount, rest};
  case Body::Thrown:
    return wasteRoom().first(std::min(rest, wasteRoom().size()));
  default:
    return {reinterpret_cast<char *>(&head) + headCount, sizeof head - headCount};
  }
}

void Inbox::take(size_t count) {
  if (body != Body::None) {
    bodyCount += count;
    if (bodyCount == head.bytes) {
      endBody();
    }
    return;
  }
  headCount += count;
  if (headCount == sizeof head) {
    headCount = 0;
    beginBody();
  }
}

void Inbox::beginBody() {
  body = Body::None;
  bodyCount = 0;
  // The last tag is for messages of the transport itself.
  if (head.bytes > mpi::kMostBytes || head.tag < 0 || head.tag > mpi::kTags) {
    taken = makeError("it sent an invalid message");
    return;
  }
  auto receipt =
      std::ranges::find_if(receipts, [&](const Receipt &each) { return each.label.isOf(head); });
  if (head.group < group) {
    body = Body::Thrown;
  } else if (receipt != receipts.end()) {
    if (head.bytes > receipt->label.bytes) {
      return refuseLength(receipt->label);
    }
    body = Body::Expected;
    current = *receipt;
    receipts.erase(receipt);
  } else if (keptBytes + costOf(head) <= kMostKept) {
    body = Body::Kept;
    keep();
  } else {
    body = Body::Held;
    return;
  }
  if (head.bytes == 0) {
    endBody();
  }
}

void Inbox::endBody() {
  if (body == Body::Expected) {
    arrivals.push_back({current.request, bodyCount});
  }
  body = Body::None;
}
