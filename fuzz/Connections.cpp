//===- Connections.cpp - messages that a process receives by TCP -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes are the messages of a peer after the handshake: to a rank that waits for the roster, to
// a rank that waits for messages, and to one that has begun a collective. The first bytes choose
// the expected messages, and the sizes in which the others arrive.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"

#include "backends/processes/CollectiveGreeting.h"
#include "backends/processes/transports/TransportTable.h"
#include "backends/processes/transports/tcp/Bootstrap.h"
#include "backends/processes/transports/tcp/Inbox.h"

#include <algorithm>
#include <cstring>
#include <map>

using namespace weft::rt;
using namespace weft::rt::tcp;

static void readRoster(std::span<const uint8_t> bytes, int64_t size) {
  Bytes32 run = {};
  std::vector<Address> addresses;
  if (!decodeRoster({reinterpret_cast<const char *>(bytes.data()), bytes.size()}, size, run,
                    addresses)) {
    return;
  }
  require(addresses.size() == size_t(size), "a roster has all ranks");
  for (size_t rank = 1; rank < addresses.size(); ++rank) {
    require(addresses[rank].family() != 0 && !addresses[rank].text().empty(), "and where each is");
  }
}

static void readGreeting(std::span<const char> bytes) {
  using mpi::CollectiveGreeting;
  auto greeting = CollectiveGreeting::decode(bytes);
  if (!greeting) {
    return;
  }
  require(greeting->text.size() <= CollectiveGreeting::kMostText, "a text has its limit");
  require(greeting->elements.data() + greeting->elements.size() == bytes.data() + bytes.size(),
          "elements go to the end");
  std::vector<char> again(CollectiveGreeting::kMostHead);
  const char *place = CollectiveGreeting::encode(again.data(), greeting->fingerprint,
                                                 greeting->text, greeting->elements.size());
  require(place - again.data() == greeting->elements.data() - bytes.data(), "from their place");
}

namespace {

/// A rank that waits for some messages and receives others.
class Receiver {
public:
  void hear(std::span<const uint8_t> bytes) {
    while (bytes.size() > 2 && inbox.status()) {
      uint8_t what = bytes[0], part = bytes[1];
      bytes = bytes.subspan(2);
      if (what % 8 == 0) {
        expect(part);
      } else if (what % 8 == 1) {
        cancel(part);
      } else if (what % 64 == 2) {
        inbox.beginGroup(++group);
        expected.clear();
      }
      take(bytes, part);
      check();
    }
  }

private:
  void expect(uint8_t part) {
    std::vector<char> &target = expected[++last];
    target.resize(part);
    inbox.expect({{group, int32_t(part % 4), part}, target.data(), last});
  }
  void cancel(uint8_t part) {
    auto found = expected.lower_bound(last - std::min<uint64_t>(part, last));
    if (found != expected.end()) {
      inbox.cancel(found->first);
      expected.erase(found); // A sanitizer sees who writes there.
    }
  }
  void take(std::span<const uint8_t> &bytes, size_t most) {
    std::span<char> room = inbox.room();
    size_t count = std::min({room.size(), bytes.size(), most});
    if (count > 0) {
      std::memcpy(room.data(), bytes.data(), count);
      bytes = bytes.subspan(count);
      inbox.take(count);
    }
  }
  void check() {
    for (const Inbox::Arrival &arrival : inbox.arrivals) {
      auto found = expected.find(arrival.request);
      require(found != expected.end(), "what arrives was waited for");
      require(arrival.bytes <= found->second.size(), "and there is room for it");
      expected.erase(found);
    }
    inbox.arrivals.clear();
  }

  Inbox inbox;
  uint32_t group = 0;
  uint64_t last = 0;
  std::map<uint64_t, std::vector<char>> expected;
};

} // namespace

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::span<const uint8_t> bytes(data, size);
  readRoster(bytes, size == 0 ? 1 : data[0] % 4 + 1);
  readGreeting({reinterpret_cast<const char *>(data), size});
  Receiver().hear(bytes);
  return 0;
}
