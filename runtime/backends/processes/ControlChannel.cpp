//===- ControlChannel.cpp - messages about failures, beside MPI ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/ControlChannel.h"

#include "support/Text.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sstream>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

using namespace weft::rt;
using namespace weft::rt::mpi;

/// The time that the end of a process waits for the others to close their sides.
static constexpr std::chrono::seconds kLastWords(1);
/// The seconds that a new connection has to send its greeting, while the others wait.
static constexpr int kGreetingSeconds = 2;

namespace {

/// The head of a message, before its text.
struct Head {
  uint32_t bytes = 0;
  uint32_t kind = 0;
};
constexpr size_t kMostText = 1 << 16;

/// The first bytes on a connection, from the process that connects.
struct Greeting {
  uint64_t secret = 0;
  int64_t rank = 0;
};

/// TCP keepalive: notices within 10 s + 4 * 5 s that a machine is gone.
constexpr int kIdleSeconds = 10, kProbeSeconds = 5, kProbes = 4;

void prepareSocket(int descriptor) {
  int yes = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
  setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
}

/// Returns true if other machines can use the address: it is neither loopback nor link-local.
bool isPublic(const sockaddr &address) {
  if (address.sa_family == AF_INET) {
    return ntohl(reinterpret_cast<const sockaddr_in &>(address).sin_addr.s_addr) >> 24 != 127;
  }
  const in6_addr &six = reinterpret_cast<const sockaddr_in6 &>(address).sin6_addr;
  return !IN6_IS_ADDR_LOOPBACK(&six) && !IN6_IS_ADDR_LINKLOCAL(&six);
}

/// Returns the addresses of this machine, IPv4 first and loopback last.
std::vector<std::string> ownAddresses() {
  std::vector<std::string> addresses;
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) == 0) {
    for (int family : {AF_INET, AF_INET6}) {
      for (ifaddrs *each = list; each; each = each->ifa_next) {
        socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        char text[INET6_ADDRSTRLEN];
        if (each->ifa_addr && each->ifa_addr->sa_family == family && isPublic(*each->ifa_addr) &&
            getnameinfo(each->ifa_addr, size, text, sizeof text, nullptr, 0, NI_NUMERICHOST) == 0) {
          addresses.emplace_back(text);
        }
      }
    }
    freeifaddrs(list);
  }
  addresses.insert(addresses.end(), {"127.0.0.1", "::1"});
  return addresses;
}

/// Returns a socket that is bound to a free port of all addresses (IPv6 too, if the system has it),
/// or -1.
int bindAnywhere() {
  int no = 0;
  sockaddr_in6 six = {};
  six.sin6_family = AF_INET6;
  int descriptor = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor >= 0) {
    if (setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0 &&
        bind(descriptor, reinterpret_cast<sockaddr *>(&six), sizeof six) == 0) {
      return descriptor;
    }
    close(descriptor);
  }
  sockaddr_in four = {};
  four.sin_family = AF_INET;
  descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor >= 0 && bind(descriptor, reinterpret_cast<sockaddr *>(&four), sizeof four) != 0) {
    int code = errno;
    close(descriptor);
    errno = code;
    return -1;
  }
  return descriptor;
}

bool waitFor(int descriptor, short events, int milliseconds) {
  pollfd entry = {descriptor, events, 0};
  return poll(&entry, 1, milliseconds) == 1 && (entry.revents & events);
}

/// Returns a socket that is connected to a numeric address, or -1.
int connectTo(const std::string &address, const std::string &port) {
  addrinfo hints = {}, *target = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  if (getaddrinfo(address.c_str(), port.c_str(), &hints, &target) != 0) {
    return -1;
  }
  int descriptor = socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int code = 0;
  socklen_t size = sizeof code;
  bool ok = descriptor >= 0 &&
            (::connect(descriptor, target->ai_addr, target->ai_addrlen) == 0 ||
             (errno == EINPROGRESS && waitFor(descriptor, POLLOUT, 5000) &&
              getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size) == 0 && code == 0));
  freeaddrinfo(target);
  if (!ok && descriptor >= 0) {
    close(descriptor);
  }
  return ok ? descriptor : -1;
}

} // namespace

/// Reads the others' last messages before closing: closing a connection with unread bytes resets
/// it, and the other side may then lose the last messages to it.
ControlChannel::~ControlChannel() {
  for (const Peer &peer : peers) {
    if (peer.descriptor >= 0) {
      shutdown(peer.descriptor, SHUT_WR);
    }
  }
  auto isOpen = [](const Peer &peer) { return peer.descriptor >= 0; };
  auto end = std::chrono::steady_clock::now() + kLastWords;
  while (std::ranges::any_of(peers, isOpen) && std::chrono::steady_clock::now() < end) {
    wait(std::chrono::milliseconds(50), {});
    read([](int64_t, uint8_t, const std::string &) {});
  }
  for (const Peer &peer : peers) {
    if (isOpen(peer)) {
      close(peer.descriptor);
    }
  }
  if (listener >= 0) {
    close(listener);
  }
}

Result<std::string> ControlChannel::listen() {
  listener = bindAnywhere();
  sockaddr_in6 any = {};
  socklen_t size = sizeof any;
  if (listener < 0 || ::listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr *>(&any), &size) != 0) {
    return makeError("cannot listen for the other ranks: ", systemError(errno));
  }
  static_assert(offsetof(sockaddr_in, sin_port) == offsetof(sockaddr_in6, sin6_port));
  std::string text = std::to_string(ntohs(any.sin6_port));
  for (const std::string &own : ownAddresses()) {
    if (text.size() + own.size() + 2 < kAddressBytes) {
      text += " " + own;
    }
  }
  return text;
}

bool ControlChannel::letIn(int descriptor, int64_t ranks, uint64_t secret) {
  Greeting greeting;
  timeval limit = {kGreetingSeconds, 0}; // For all of it: a part does not begin the time anew.
  setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  bool ok = recv(descriptor, &greeting, sizeof greeting, MSG_WAITALL) == sizeof greeting &&
            greeting.secret == secret && greeting.rank > 0 && greeting.rank < ranks;
  if (!ok) {
    close(descriptor);
    return false;
  }
  prepareSocket(descriptor);
  fcntl(descriptor, F_SETFL, O_NONBLOCK);
  peers.push_back({greeting.rank, descriptor, {}});
  return true;
}

Status ControlChannel::accept(int64_t ranks, uint64_t secret, std::chrono::nanoseconds patience) {
  auto deadline = std::chrono::steady_clock::now() + patience;
  while (int64_t(peers.size()) + 1 < ranks) {
    int descriptor =
        waitFor(listener, POLLIN, 100) ? accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) : -1;
    bool isNew = descriptor >= 0 && letIn(descriptor, ranks, secret);
    if (!isNew && std::chrono::steady_clock::now() > deadline) {
      return makeError(ranks - 1 - int64_t(peers.size()),
                       " ranks have not connected to rank 0; do their machines let TCP through?");
    }
  }
  return {};
}

Status ControlChannel::connect(const std::string &address, int64_t rank, uint64_t secret) {
  std::istringstream words(address);
  std::string port;
  words >> port;
  int descriptor = -1;
  for (std::string each; descriptor < 0 && words >> each;) {
    descriptor = connectTo(each, port);
  }
  Greeting greeting = {secret, rank};
  if (descriptor < 0 ||
      ::send(descriptor, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) {
    return makeError("rank ", rank, " cannot connect to rank 0, at ", address,
                     " (port and addresses); do the machines let TCP through?");
  }
  prepareSocket(descriptor);
  peers.push_back({0, descriptor, {}});
  return {};
}

void ControlChannel::send(int64_t rank, uint8_t kind, const std::string &text) {
  Head head = {uint32_t(std::min(text.size(), kMostText)), kind};
  std::string bytes(reinterpret_cast<const char *>(&head), sizeof head);
  bytes.append(text, 0, head.bytes);
  for (const Peer &peer : peers) {
    if (peer.rank == rank && peer.descriptor >= 0) {
      // After half a message nothing more can be sent: close the connection.
      if (ssize_t sent = ::send(peer.descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
          sent > 0 && size_t(sent) < bytes.size()) {
        shutdown(peer.descriptor, SHUT_WR);
      }
    }
  }
}

void ControlChannel::wait(std::chrono::milliseconds limit, const std::vector<int> &others) const {
  std::vector<pollfd> entries;
  for (const Peer &peer : peers) {
    entries.push_back({peer.descriptor, POLLIN, 0}); // Those below 0 are passed over.
  }
  for (int other : others) {
    entries.push_back({other, POLLIN, 0});
  }
  poll(entries.data(), entries.size(), int(limit.count()));
}

void ControlChannel::read(const Handler &handle) {
  for (Peer &peer : peers) {
    if (peer.descriptor >= 0) {
      read(peer, handle);
    }
  }
}

void ControlChannel::read(Peer &peer, const Handler &handle) {
  char portion[4096];
  ssize_t count = 0;
  while ((count = recv(peer.descriptor, portion, sizeof portion, MSG_DONTWAIT)) > 0) {
    peer.received.append(portion, size_t(count));
  }
  bool isOver = count == 0 || (errno != EAGAIN && errno != EINTR);
  Head head;
  while (peer.received.size() >= sizeof head) {
    std::memcpy(&head, peer.received.data(), sizeof head);
    if (head.bytes > kMostText || head.kind == 0 || head.kind > UINT8_MAX) {
      isOver = true;
      break;
    }
    if (peer.received.size() < sizeof head + head.bytes) {
      break;
    }
    std::string text = peer.received.substr(sizeof head, head.bytes);
    peer.received.erase(0, sizeof head + head.bytes);
    handle(peer.rank, uint8_t(head.kind), text);
  }
  if (isOver) {
    close(peer.descriptor);
    peer.descriptor = -1;
    handle(peer.rank, 0, "");
  }
}
