//===- CollectiveGreeting.cpp - a member's first message in a collective --===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/CollectiveGreeting.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt::mpi;

namespace {

/// The first bytes; the text follows, then the elements.
struct GreetingHead {
  uint64_t fingerprint = 0;
  uint32_t textBytes = 0, elementBytes = 0;

  size_t elementsAt() const { return (sizeof(GreetingHead) + textBytes + 15) / 16 * 16; }
};
static_assert(sizeof(GreetingHead) == 16);

} // namespace

char *CollectiveGreeting::encode(char *target, uint64_t fingerprint, std::string_view text,
                                 size_t elementBytes) {
  text = text.substr(0, kMostText);
  GreetingHead head = {fingerprint, uint32_t(text.size()), uint32_t(elementBytes)};
  std::memcpy(target, &head, sizeof head);
  std::ranges::copy(text, target + sizeof head);
  return target + head.elementsAt();
}

std::optional<CollectiveGreeting> CollectiveGreeting::decode(std::span<const char> message) {
  GreetingHead head;
  if (message.size() < sizeof head) {
    return std::nullopt;
  }
  std::memcpy(&head, message.data(), sizeof head);
  if (head.textBytes > kMostText || message.size() != head.elementsAt() + head.elementBytes) {
    return std::nullopt;
  }
  return CollectiveGreeting{head.fingerprint,
                            {message.data() + sizeof head, head.textBytes},
                            message.subspan(head.elementsAt())};
}
