//===- Handshake.h - two processes recognize each other -------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The first bytes on every connection between processes of a run. All messages have a fixed size:
//
//   connecting process         listening process
//   Hello, a random number  ->
//                           <- Hello, another random number
//   Proof: a Claim, a code  ->
//                           <- Welcome: a code
//
// The codes are HMAC-SHA-256 of a label of the direction, both Hellos and the Claim, by a key that
// both sides have. Since each side chose one of the random numbers and the labels differ, no code
// can be used again, or sent back to its sender. The connecting process proves itself first: a
// listener tells a stranger nothing that depends on its key, and closes the connection at the first
// wrong message. Nothing else is sent before both sides are proven.
//
// This authenticates the two ends at this moment. It encrypts nothing, and does not protect the
// bytes that follow.
//
// The classes know no sockets. They check all bytes that come. One thread at a time may use an
// object.
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_HANDSHAKE_H
#define WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_HANDSHAKE_H

#include "support/Sha256.h"

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace weft::rt::tcp {

/// Each side's first message. `magic` and `version` stay as they are in all versions.
struct Hello {
  static constexpr uint64_t kMagic = 0x7063742074666577; // "weft tcp" in the bytes' order.
  static constexpr uint32_t kVersion = 2;

  uint64_t magic = kMagic;
  uint32_t version = kVersion;
  uint32_t unused = 0;
  Bytes32 random = {};
};
static_assert(sizeof(Hello) == 48);

/// The claims of the connecting process. They are true if the code fits, except for mistakes.
struct Claim {
  /// The purpose of the connection. A listener takes one.
  enum class Purpose : uint16_t { Rendezvous = 1, Messages, Control };

  Purpose purpose = Purpose::Rendezvous;
  /// The port at which the sender listens.
  uint16_t port = 0;
  /// The number of the sender, and of all processes.
  uint32_t rank = 0, size = 0;
  uint32_t unused = 0;
  /// At the rendezvous, a hash of the run's name; else 0.
  uint64_t run = 0;
};
static_assert(sizeof(Claim) == 24);

struct Proof {
  Claim claim;
  Bytes32 code = {};
};
static_assert(sizeof(Proof) == 56);

struct Welcome {
  Bytes32 code = {};
};

/// The part that both sides have: receives messages of known sizes in parts.
class Handshake {
public:
  /// Ended: the other side is none of ours, see `reason`.
  enum class State : uint8_t { Speaking, Done, Ended };

  /// Returns the memory for the bytes that come next; empty unless Speaking.
  std::span<char> room() { return std::span(bytes).subspan(count, wanted - count); }
  /// Takes `more` bytes that were received in `room()`.
  void take(size_t more);
  State state() const { return now; }
  /// Returns the bytes to send now, and forgets them.
  std::vector<char> takeReply() { return std::exchange(reply, {}); }
  /// Completes "the process at 10.0.0.1:4000 ..."; empty unless Ended.
  const std::string &reason() const { return why; }

protected:
  explicit Handshake(const Bytes32 &key) : key(key) {}
  ~Handshake() = default;

  /// Handles a message of the wanted size.
  virtual void handle(std::span<const char> message) = 0;
  void expect(size_t size);
  template <typename Message> void send(const Message &message) {
    std::span<const char> content = bytesOf(message);
    reply.insert(reply.end(), content.begin(), content.end());
  }
  void end(std::string reason);
  void succeed();
  /// Sets `hello`'s random number; ends if the system has none.
  void fill(Hello &hello);
  /// Returns the code of one direction.
  Bytes32 codeOf(std::string_view label, const Claim &claim) const;

  /// Of the connecting and of the listening process.
  Hello hellos[2];

private:
  Bytes32 key;
  char bytes[sizeof(Proof)] = {};
  size_t count = 0, wanted = 0;
  State now = State::Speaking;
  std::vector<char> reply;
  std::string why;
};

/// The listening process's side.
class ListenerHandshake final : public Handshake {
public:
  ListenerHandshake(const Bytes32 &key, Claim::Purpose purpose);
  /// Returns true if the other side's first message was a Hello of any version.
  bool wasGreeted() const { return isGreeted; }
  /// REQUIRES: the state is Done.
  const Claim &claim() const { return proven; }

private:
  void handle(std::span<const char> message) override;

  Claim::Purpose purpose;
  bool isGreeted = false;
  Claim proven;
};

/// The connecting process's side. Its first reply is there from the beginning.
class ConnectorHandshake final : public Handshake {
public:
  ConnectorHandshake(const Bytes32 &key, const Claim &claim);
  /// Returns true once the Proof was sent: a listener that then closes the connection has another
  /// key.
  bool hasProved() const { return isProven; }

private:
  void handle(std::span<const char> message) override;

  Claim claim;
  bool isProven = false;
};

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_HANDSHAKE_H
