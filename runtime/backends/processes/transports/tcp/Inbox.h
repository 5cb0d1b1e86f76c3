//===- Inbox.h - what comes from one rank ---------------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Messages of one connection, in the order they come: a head, then as many bytes as it
// says. What a receipt waits for goes straight where the receipt says; what nobody waits
// for yet is kept up to `kMostKept` bytes, and what is more stays with the sender until
// somebody does, as nothing is read meanwhile.
//
// Knows no sockets. Believes nothing that comes.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_INBOX_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_INBOX_H

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace weft::rt::tcp {

/// What goes before the bytes of a message.
struct Head {
  uint32_t group = 0;
  int32_t tag = 0;
  uint64_t bytes = 0;

  bool isOf(const Head &other) const { return group == other.group && tag == other.tag; }
};
static_assert(sizeof(Head) == 16);

class Inbox {
public:
  /// What waits for a message of `label`, whose `bytes` are how many there is room for.
  struct Receipt {
    Head label;
    char *target = nullptr;
    uint64_t request = 0;
  };
  /// A request that has got its message of `bytes`.
  struct Arrival {
    uint64_t request = 0;
    size_t bytes = 0;
  };

  static constexpr size_t kMostKept = size_t(1) << 18;

  /// Receipts of one label get messages in order. Where one is too short, that is a failure.
  void expect(const Receipt &receipt);
  /// Its memory is not written to any more.
  void cancel(uint64_t request);
  /// Messages of groups before `group` are thrown away from now on.
  void beginGroup(uint32_t group);

  /// Where what comes next belongs; empty while nothing is to be read.
  std::span<char> room();
  /// `count` bytes have come there.
  void take(size_t count);
  /// Why nothing more can be read, as it was not what a rank sends here. Empty if all is well.
  const std::string &failure() const { return problem; }

  /// What has arrived since it was cleared.
  std::vector<Arrival> arrivals;

private:
  enum class Body : uint8_t { None, Expected, Kept, Thrown, Held };
  struct Message {
    Head head;
    std::vector<char> bytes;
  };
  void beginBody();
  void endBody();
  void refuseLength(const Head &label);
  void forget(std::deque<Message>::iterator message);

  std::vector<Receipt> receipts;
  /// The last may still be on its way.
  std::deque<Message> kept;
  size_t keptBytes = 0;
  uint32_t group = 0;

  Head head;
  size_t headCount = 0;
  Body body = Body::None;
  size_t bodyCount = 0;
  /// Of an expected one.
  Receipt current;
  std::string problem;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_INBOX_H
