//===- Address.cpp - addresses and sockets of TCP ------------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Address.h"

#include "support/Text.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::tcp;

void Descriptor::close() {
  if (number >= 0) {
    ::close(std::exchange(number, -1));
  }
}

static sockaddr_in &in4(sockaddr_storage &storage) {
  return reinterpret_cast<sockaddr_in &>(storage);
}
static sockaddr_in6 &in6(sockaddr_storage &storage) {
  return reinterpret_cast<sockaddr_in6 &>(storage);
}

Address::Address(const sockaddr_storage &given) : storage(given) {
  sockaddr_in6 &six = in6(storage);
  if (family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
    sockaddr_in four = {};
    four.sin_family = AF_INET;
    four.sin_port = six.sin6_port;
    std::memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof four.sin_addr);
    storage = {};
    std::memcpy(&storage, &four, sizeof four);
  }
}

Address::Address(const Packed &packed) {
  if (packed.family == 4) {
    in4(storage).sin_family = AF_INET;
    in4(storage).sin_port = htons(packed.port);
    std::memcpy(&in4(storage).sin_addr, packed.bytes, sizeof(in_addr));
  } else if (packed.family == 6) {
    in6(storage).sin6_family = AF_INET6;
    in6(storage).sin6_port = htons(packed.port);
    std::memcpy(&in6(storage).sin6_addr, packed.bytes, sizeof(in6_addr));
    *this = Address(storage);
  }
}

Address::Packed Address::pack() const {
  Packed packed;
  sockaddr_storage copy = storage;
  packed.port = port();
  if (family() == AF_INET) {
    packed.family = 4;
    std::memcpy(packed.bytes, &in4(copy).sin_addr, sizeof(in_addr));
  } else if (family() == AF_INET6) {
    packed.family = 6;
    std::memcpy(packed.bytes, &in6(copy).sin6_addr, sizeof(in6_addr));
  }
  return packed;
}

socklen_t Address::size() const {
  return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

uint16_t Address::port() const {
  sockaddr_storage copy = storage;
  return ntohs(family() == AF_INET6 ? in6(copy).sin6_port : in4(copy).sin_port);
}

Address Address::withPort(uint16_t port) const {
  Address changed = *this;
  (family() == AF_INET6 ? in6(changed.storage).sin6_port : in4(changed.storage).sin_port) =
      htons(port);
  return changed;
}

bool Address::isLoopback() const {
  sockaddr_storage copy = storage;
  if (family() == AF_INET6) {
    return IN6_IS_ADDR_LOOPBACK(&in6(copy).sin6_addr);
  }
  return family() == AF_INET && ntohl(in4(copy).sin_addr.s_addr) >> 24 == 127;
}

std::string Address::text() const {
  std::string host = hostText();
  return family() == AF_INET6 ? concat("[", host, "]:", port()) : concat(host, ":", port());
}

std::string Address::hostText() const {
  char name[NI_MAXHOST] = "?";
  getnameinfo(data(), size(), name, sizeof name, nullptr, 0, NI_NUMERICHOST);
  return name;
}

std::optional<Address> weft::rt::tcp::parseAddress(const std::string &text) {
  Address::Packed four = {4, 0, 0, {}}, six = {6, 0, 0, {}};
  if (inet_pton(AF_INET, text.c_str(), four.bytes) == 1) {
    return Address(four);
  }
  if (inet_pton(AF_INET6, text.c_str(), six.bytes) == 1) {
    return Address(six);
  }
  return std::nullopt;
}

Address weft::rt::tcp::ownAddress(const Descriptor &socket) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  getsockname(socket.get(), reinterpret_cast<sockaddr *>(&storage), &size);
  return Address(storage);
}

Address weft::rt::tcp::peerAddress(const Descriptor &socket) {
  sockaddr_storage storage = {};
  socklen_t size = sizeof storage;
  getpeername(socket.get(), reinterpret_cast<sockaddr *>(&storage), &size);
  return Address(storage);
}

Result<std::vector<Address>> weft::rt::tcp::resolve(const std::string &host, uint16_t port) {
  addrinfo hints = {}, *list = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  std::vector<Address> addresses;
  if (int code = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list)) {
    return makeError(code == EAI_SYSTEM ? systemError(errno) : gai_strerror(code));
  }
  for (addrinfo *each = list; each; each = each->ai_next) {
    sockaddr_storage storage = {};
    std::memcpy(&storage, each->ai_addr, std::min<size_t>(each->ai_addrlen, sizeof storage));
    addresses.emplace_back(storage);
  }
  freeaddrinfo(list);
  return addresses;
}

bool weft::rt::tcp::isLocalName(const std::string &host) {
  std::optional<Address> address = parseAddress(host);
  return host == "localhost" || (address && address->isLoopback());
}

static Descriptor openSocket(int family) {
  Descriptor made(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  int yes = 1;
  setsockopt(made.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(made.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  return made;
}

Result<Descriptor> weft::rt::tcp::listenAt(const Address &address) {
  Descriptor made = openSocket(address.family());
  // Connections of an earlier run may linger; an IPv6 socket accepts IPv4 too.
  int yes = 1, no = 0;
  setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (address.family() == AF_INET6) {
    setsockopt(made.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (!made || bind(made.get(), address.data(), address.size()) != 0 ||
      listen(made.get(), SOMAXCONN) != 0) {
    return makeError(systemError(errno));
  }
  return made;
}

Result<Descriptor> weft::rt::tcp::listenAnywhere(uint16_t port) {
  Result<Descriptor> made = listenAt(Address(Address::Packed{6, 0, port, {}}));
  // A machine may be without IPv6.
  return made ? std::move(made) : listenAt(Address(Address::Packed{4, 0, port, {}}));
}

Result<Descriptor> weft::rt::tcp::listenFor(const std::string &host, uint16_t port) {
  if (!isLocalName(host)) {
    return listenAnywhere(port);
  }
  Result<std::vector<Address>> addresses = resolve(host, port);
  return addresses ? atFirst(*addresses, listenAt) : addresses.error();
}

Descriptor weft::rt::tcp::beginToConnect(const Address &address) {
  Descriptor made = openSocket(address.family());
  bool ok =
      made && (connect(made.get(), address.data(), address.size()) == 0 || errno == EINPROGRESS);
  return ok ? std::move(made) : Descriptor();
}

int weft::rt::tcp::connectResult(const Descriptor &socket) {
  int code = 0;
  socklen_t size = sizeof code;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &code, &size) == 0 ? code : errno;
}

Result<Descriptor> weft::rt::tcp::connectTo(const Address &address, Clock::time_point end) {
  Descriptor made = beginToConnect(address);
  if (!made || !waitFor(made, POLLOUT, end)) {
    return makeError(systemError(made ? ETIMEDOUT : errno));
  }
  if (int code = connectResult(made)) {
    return makeError(systemError(code));
  }
  // If nobody listens at the port, the socket may get it as its own port and connect to itself.
  if (ownAddress(made).text() == peerAddress(made).text()) {
    return makeError(systemError(ECONNREFUSED));
  }
  return made;
}

bool weft::rt::tcp::waitFor(const Descriptor &descriptor, short events, Clock::time_point end) {
  for (;;) {
    auto rest = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd entry = {descriptor.get(), events, 0};
    int count = poll(&entry, 1, int(std::clamp<int64_t>(rest, 0, 1000)));
    if (count != 0 || rest <= 0) {
      return count == 1;
    }
  }
}

bool weft::rt::tcp::sendAll(const Descriptor &socket, std::span<const char> bytes,
                            Clock::time_point end) {
  while (!bytes.empty()) {
    ssize_t count = send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes = bytes.subspan(size_t(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR) ||
               !waitFor(socket, POLLOUT, end)) {
      return false;
    }
  }
  return true;
}

bool weft::rt::tcp::receiveAll(const Descriptor &socket, std::span<char> bytes,
                               Clock::time_point end) {
  while (!bytes.empty()) {
    ssize_t count = recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count > 0) {
      bytes = bytes.subspan(size_t(count));
    } else if (count == 0 || (errno != EAGAIN && errno != EINTR) || !waitFor(socket, POLLIN, end)) {
      return false;
    }
  }
  return true;
}
