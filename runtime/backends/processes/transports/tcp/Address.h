//===- Address.h - sockets of TCP and where they lead ---------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_ADDRESS_H
#define WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_ADDRESS_H

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace weft::rt::tcp {

using Clock = std::chrono::steady_clock;

/// Something open that is closed with this; -1 if there is nothing.
class Descriptor {
public:
  Descriptor() = default;
  explicit Descriptor(int number) : number(number) {}
  Descriptor(Descriptor &&other) noexcept : number(std::exchange(other.number, -1)) {}
  Descriptor &operator=(Descriptor &&other) noexcept {
    std::swap(number, other.number);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return number; }
  explicit operator bool() const { return number >= 0; }
  void close();

private:
  int number = -1;
};

/// A place of IPv4 or IPv6 and a port there.
class Address {
public:
  /// As it travels.
  struct Packed {
    uint8_t family = 0; // 4 or 6.
    uint8_t unused = 0;
    uint16_t port = 0;
    uint8_t bytes[16] = {};
  };

  Address() = default;
  /// One of IPv4 that came as one of IPv6 becomes one of IPv4.
  explicit Address(const sockaddr_storage &storage);
  /// Family 0 if `packed` is none.
  explicit Address(const Packed &packed);
  Packed pack() const;

  const sockaddr *data() const { return reinterpret_cast<const sockaddr *>(&storage); }
  socklen_t size() const;
  int family() const { return storage.ss_family; }
  uint16_t port() const;
  Address withPort(uint16_t port) const;
  bool isLoopback() const;
  /// "10.0.0.3:4000", "[fe80::1]:4000".
  std::string text() const;

private:
  sockaddr_storage storage = {};
};

Address ownAddress(const Descriptor &socket);
Address peerAddress(const Descriptor &socket);

/// All that `host`, a name or an address, is known by. Empty, and why, if it is not known.
std::vector<Address> resolve(const std::string &host, uint16_t port, std::string &error);

/// Whether `host` means the machine it is said on, whoever says it.
bool isLocalName(const std::string &host);

/// Listens without waiting at `address`, or at all of this machine's. None, and why, if it cannot.
Descriptor listenAt(const Address &address, std::string &error);
Descriptor listenAnywhere(uint16_t port, std::string &error);

/// Begins to connect, and does not wait for the end. None, and `errno`, if it cannot.
Descriptor beginToConnect(const Address &address);
/// What became of it, once the socket can be written to: 0 or a number of `errno`.
int connectResult(const Descriptor &socket);
/// Both, and waits. None, and why, after `end` or if there is nobody.
Descriptor connectTo(const Address &address, Clock::time_point end, std::string &error);

/// Whether `events` came before `end`.
bool waitFor(const Descriptor &descriptor, short events, Clock::time_point end);
/// Waits until all has gone, or all has come. Not after `end`, nor if the other side is gone.
bool sendAll(const Descriptor &socket, std::span<const char> bytes, Clock::time_point end);
bool receiveAll(const Descriptor &socket, std::span<char> bytes, Clock::time_point end);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_TRANSPORTS_TCP_ADDRESS_H
