//===- Address.h - addresses and sockets of TCP ---------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_ADDRESS_H
#define WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_ADDRESS_H

#include "weft-rt/Status.h"

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

namespace weft::rt::tcp {

using Clock = std::chrono::steady_clock;

/// Owns a file descriptor and closes it at the end; -1 if there is none.
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

/// An address of IPv4 or IPv6, and a port.
class Address {
public:
  /// The form in which an address is sent.
  struct Packed {
    uint8_t family = 0; // 4 or 6.
    uint8_t unused = 0;
    uint16_t port = 0;
    uint8_t bytes[16] = {};
  };

  Address() = default;
  /// Turns an IPv4 address that is mapped into IPv6 back into one of IPv4.
  explicit Address(const sockaddr_storage &storage);
  /// Has family 0 if `packed` is no valid address.
  explicit Address(const Packed &packed);
  Packed pack() const;

  const sockaddr *data() const { return reinterpret_cast<const sockaddr *>(&storage); }
  socklen_t size() const;
  int family() const { return storage.ss_family; }
  uint16_t port() const;
  Address withPort(uint16_t port) const;
  bool isLoopback() const;
  /// Returns the address as text: "10.0.0.3:4000", "[fe80::1]:4000"; and without the port,
  /// "10.0.0.3", "fe80::1".
  std::string text() const;
  std::string hostText() const;

private:
  sockaddr_storage storage = {};
};

/// Returns the address that `text` is, as hostText() returns it, with port 0.
std::optional<Address> parseAddress(const std::string &text);

Address ownAddress(const Descriptor &socket);
Address peerAddress(const Descriptor &socket);

/// Returns all addresses of `host`, which is a name or an address: at least one.
Result<std::vector<Address>> resolve(const std::string &host, uint16_t port);

/// Returns true if `host` means the own machine on every machine: localhost or a loopback address.
bool isLocalName(const std::string &host);

/// Open a non-blocking listening socket at `address`, or at all addresses of this machine.
Result<Descriptor> listenAt(const Address &address);
Result<Descriptor> listenAnywhere(uint16_t port);
/// Listens where other processes of a run can reach this machine, whose first rank is on `host`: at
/// `host` itself if all of them are on one machine, so that no other machine can connect.
Result<Descriptor> listenFor(const std::string &host, uint16_t port);

/// Begins to connect and does not wait. Returns none and sets `errno` if it fails.
Descriptor beginToConnect(const Address &address);
/// Returns the result of `beginToConnect`: 0 or an `errno`. REQUIRES: the socket is writable.
int connectResult(const Descriptor &socket);
/// Connects, and waits until `end`.
Result<Descriptor> connectTo(const Address &address, Clock::time_point end);

/// Returns what `act` returns for the first of `addresses` with which it succeeds, or its last
/// error.
template <typename Act>
Result<Descriptor> atFirst(const std::vector<Address> &addresses, const Act &act) {
  Result<Descriptor> socket = act(addresses.front());
  for (size_t i = 1; !socket && i < addresses.size(); ++i) {
    socket = act(addresses[i]);
  }
  return socket;
}

/// Waits for `events` of `descriptor`. Returns false if they did not come before `end`.
bool waitFor(const Descriptor &descriptor, short events, Clock::time_point end);
/// Send or receive all of `bytes`, and wait for that. Return false at `end`, or if the other side
/// has closed the connection.
bool sendAll(const Descriptor &socket, std::span<const char> bytes, Clock::time_point end);
bool receiveAll(const Descriptor &socket, std::span<char> bytes, Clock::time_point end);

} // namespace weft::rt::tcp

#endif // WEFT_RT_BACKENDS_PROCESSES_CONNECTIONS_ADDRESS_H
