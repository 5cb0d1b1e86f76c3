//===- Handshakes.cpp - the first bytes of a connection --------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first byte chooses. Either the bytes are the messages of a stranger, to a listener and to a
// process that connects; the second byte is the size in which they arrive. Or two processes of
// one run recognize each other, and the bytes change bits of one of their messages.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "backends/processes/connections/Handshake.h"

#include <algorithm>
#include <cstring>

using namespace weft::rt;
using namespace weft::rt::tcp;

using State = Handshake::State;

static constexpr Bytes32 kKey = {1, 2, 3};
static constexpr Claim kClaim = {
    .purpose = Claim::Purpose::Control, .port = 4000, .rank = 3, .size = 8, .unused = 0, .run = 7};

/// Gives `bytes` to one side; returns how many it took.
static size_t give(Handshake &side, std::span<const char> bytes, size_t most) {
  size_t taken = 0;
  while (taken < bytes.size() && side.state() == State::Speaking) {
    require(!side.room().empty(), "who speaks expects more");
    size_t count = std::min({side.room().size(), bytes.size() - taken, most});
    std::memcpy(side.room().data(), bytes.data() + taken, count);
    side.take(count);
    taken += count;
  }
  return taken;
}

static void tryStranger(std::span<const char> bytes, size_t most) {
  ListenerHandshake listener(kKey, kClaim.purpose);
  size_t taken = give(listener, bytes, most);
  size_t said = listener.takeReply().size();
  require(listener.state() != State::Done, "a stranger is never known");
  require(taken <= sizeof(Hello) + sizeof(Proof), "nor heard for long");
  require(said == (listener.wasGreeted() ? sizeof(Hello) : 0), "nor told more than Hello");
  ConnectorHandshake connector(kKey, kClaim);
  require(connector.takeReply().size() == sizeof(Hello), "who connects says Hello");
  taken = give(connector, bytes, most);
  require(connector.state() != State::Done, "a stranger that listens is never known");
  require(taken <= sizeof(Hello) + sizeof(Welcome), "nor heard for long");
  require(connector.takeReply().size() == (connector.hasProved() ? sizeof(Proof) : 0),
          "a proof goes to our version only");
}

static void tryChanged(size_t changed, std::span<const char> mask) {
  ConnectorHandshake connector(kKey, kClaim);
  ListenerHandshake listener(kKey, kClaim.purpose);
  bool isChanged = false;
  for (size_t i = 0; i < 4; ++i) {
    Handshake &from = i % 2 == 0 ? static_cast<Handshake &>(connector) : listener;
    Handshake &to = i % 2 == 0 ? static_cast<Handshake &>(listener) : connector;
    std::vector<char> bytes = from.takeReply();
    for (size_t at = 0; i == changed && at < std::min(bytes.size(), mask.size()); ++at) {
      bytes[at] = char(bytes[at] ^ mask[at]);
      isChanged = isChanged || mask[at] != 0;
    }
    give(to, bytes, SIZE_MAX);
  }
  require((connector.state() == State::Done) == !isChanged, "all bits count");
  require((listener.state() == State::Done) == (!isChanged || changed == 3),
          "and those before the last to the listener, too");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) {
    return 0;
  }
  std::span<const char> bytes(reinterpret_cast<const char *>(data) + 2, size - 2);
  data[0] % 2 == 0 ? tryStranger(bytes, size_t(data[1]) + 1) : tryChanged(data[1] % 4, bytes);
  return 0;
}
