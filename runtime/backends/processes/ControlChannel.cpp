//===- ControlChannel.cpp - messages about failures, beside MPI ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/ControlChannel.h"

#include "support/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sstream>

using namespace weft::rt;
using namespace weft::rt::mpi;
using tcp::Address;
using tcp::Clock;
using tcp::Descriptor;

/// The time that the end of a process waits for the others to close their sides.
static constexpr std::chrono::seconds kLastWords(1);
/// The longest time until a machine answers that somebody listens there, or nobody.
static constexpr std::chrono::seconds kTry(5);

namespace {

/// The head of a message, before its text.
struct Head {
  uint32_t bytes = 0;
  uint32_t kind = 0;
};

/// TCP keepalive: notices within 10 s + 4 * 5 s that a machine is gone.
constexpr int kIdleSeconds = 10, kProbeSeconds = 5, kProbes = 4;

void watchMachine(const Descriptor &socket) {
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE, &kIdleSeconds, sizeof kIdleSeconds);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL, &kProbeSeconds, sizeof kProbeSeconds);
  setsockopt(socket.get(), IPPROTO_TCP, TCP_KEEPCNT, &kProbes, sizeof kProbes);
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

/// Returns the addresses in the text that `listen` returned; none if it is no such text.
std::vector<Address> parseAddresses(const std::string &text) {
  std::istringstream words(text);
  uint16_t port = 0;
  std::vector<Address> addresses;
  if (words >> port) {
    for (std::string each; words >> each;) {
      std::optional<Address> address = tcp::parseAddress(each);
      if (!address) {
        return {};
      }
      addresses.push_back(address->withPort(port));
    }
  }
  return addresses;
}

} // namespace

std::string ControlMessages::encode(uint8_t kind, const std::string &text) {
  Head head = {uint32_t(std::min(text.size(), kMostText)), kind};
  std::string bytes(reinterpret_cast<const char *>(&head), sizeof head);
  return bytes.append(text, 0, head.bytes);
}

bool ControlMessages::take(std::span<const char> bytes, const Handler &handle) {
  if (!isValid) {
    return false;
  }
  received.append(bytes.data(), bytes.size());
  size_t at = 0;
  Head head;
  while (received.size() - at >= sizeof head) {
    std::memcpy(&head, received.data() + at, sizeof head);
    isValid = head.bytes <= kMostText && head.kind > 0 && head.kind <= UINT8_MAX;
    if (!isValid || received.size() - at < sizeof head + head.bytes) {
      break;
    }
    handle(uint8_t(head.kind), received.substr(at + sizeof head, head.bytes));
    at += sizeof head + head.bytes;
  }
  received.erase(0, at);
  return isValid;
}

/// Reads the others' last messages before closing: closing a connection with unread bytes resets
/// it, and the other side may then lose the last messages to it.
ControlChannel::~ControlChannel() {
  for (const Peer &peer : peers) {
    if (peer.socket) {
      shutdown(peer.socket.get(), SHUT_WR);
    }
  }
  auto isOpen = [](const Peer &peer) { return bool(peer.socket); };
  auto end = Clock::now() + kLastWords;
  while (std::ranges::any_of(peers, isOpen) && Clock::now() < end) {
    wait(std::chrono::milliseconds(50), {});
    read([](int64_t, uint8_t, const std::string &) {});
  }
}

Result<std::string> ControlChannel::listen(const std::string &host) {
  Result<Descriptor> made = tcp::listenFor(host, 0);
  if (!made) {
    return makeError("cannot listen for the other ranks: ", made.error().message);
  }
  listening = std::move(*made);
  Address at = tcp::ownAddress(listening);
  std::string text = std::to_string(at.port());
  for (const std::string &own :
       at.isLoopback() ? std::vector<std::string>{at.hostText()} : ownAddresses()) {
    if (text.size() + own.size() + 2 < kAddressBytes) {
      text += " " + own;
    }
  }
  return text;
}

void ControlChannel::adopt(int64_t rank, Descriptor socket) {
  watchMachine(socket);
  peers.push_back({rank, std::move(socket), {}});
}

Status ControlChannel::accept(int64_t ranks, const Bytes32 &key,
                              std::chrono::nanoseconds patience) {
  if (listening) {
    listener.open(std::move(listening), key, tcp::Claim::Purpose::Control);
  }
  auto end = Clock::now() + patience;
  while (int64_t(peers.size()) + 1 < ranks) {
    listener.look([&](Descriptor socket, const tcp::Claim &claim) {
      bool isMissing = claim.rank > 0 && claim.rank < ranks &&
                       std::ranges::find(peers, int64_t(claim.rank), &Peer::rank) == peers.end();
      if (isMissing) {
        adopt(claim.rank, std::move(socket));
      }
    });
    int64_t missing = ranks - 1 - int64_t(peers.size());
    if (missing > 0 && Clock::now() > end) {
      const std::string &refusal = listener.refusal();
      return makeError(missing, " ranks have not connected to rank 0",
                       refusal.empty() ? "; do their machines let TCP through?" : refusal);
    }
    if (missing > 0) {
      tcp::waitFor(listener.descriptor(), POLLIN,
                   std::min<Clock::time_point>(end, Clock::now() + std::chrono::seconds(1)));
    }
  }
  listener.close();
  return {};
}

Status ControlChannel::connect(const std::string &address, int64_t rank, const Bytes32 &key,
                               std::chrono::nanoseconds patience) {
  std::string reason;
  for (const Address &each : parseAddresses(address)) {
    Result<Descriptor> socket = tcp::connectTo(each, Clock::now() + kTry);
    if (!socket) {
      continue;
    }
    tcp::ConnectorHandshake handshake(
        key, {.purpose = tcp::Claim::Purpose::Control, .rank = uint32_t(rank)});
    switch (tcp::performHandshake(*socket, handshake, Clock::now() + patience)) {
    case tcp::HandshakeResult::Authenticated:
      adopt(0, std::move(*socket));
      return {};
    case tcp::HandshakeResult::Refused:
      reason = concat("the process at ", each.text(),
                      " has another secret (WEFT_SECRET or WEFT_SECRET_FILE), or none");
      break;
    case tcp::HandshakeResult::Stranger:
      reason = concat("the process at ", each.text(), " ", handshake.reason());
      break;
    case tcp::HandshakeResult::Silent:
      reason = concat("the process at ", each.text(), " does not answer");
      break;
    }
  }
  return makeError("rank ", rank, " cannot connect to rank 0, at ", address,
                   " (port and addresses)",
                   reason.empty() ? "; do the machines let TCP through?" : ": " + reason);
}

void ControlChannel::send(int64_t rank, uint8_t kind, const std::string &text) {
  std::string bytes = ControlMessages::encode(kind, text);
  for (const Peer &peer : peers) {
    if (peer.rank == rank && peer.socket) {
      // After half a message nothing more can be sent: close the connection.
      if (ssize_t sent = ::send(peer.socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
          sent > 0 && size_t(sent) < bytes.size()) {
        shutdown(peer.socket.get(), SHUT_WR);
      }
    }
  }
}

void ControlChannel::wait(std::chrono::microseconds limit, std::span<const int> others) {
  polled.clear();
  for (const Peer &peer : peers) {
    polled.push_back({peer.socket.get(), POLLIN, 0}); // Those below 0 are passed over.
  }
  for (int other : others) {
    polled.push_back({other, POLLIN, 0});
  }
  const auto seconds = std::chrono::floor<std::chrono::seconds>(limit);
  const timespec time = {seconds.count(), std::chrono::nanoseconds(limit - seconds).count()};
  ppoll(polled.data(), polled.size(), &time, nullptr);
}

void ControlChannel::read(const Handler &handle) {
  for (Peer &peer : peers) {
    if (peer.socket) {
      read(peer, handle);
    }
  }
}

void ControlChannel::read(Peer &peer, const Handler &handle) {
  // No more at a time, since the others have messages too.
  char portion[4096];
  ssize_t count = 0;
  bool isOver = false;
  for (size_t total = 0; !isOver && total < ControlMessages::kMostText; total += size_t(count)) {
    count = recv(peer.socket.get(), portion, sizeof portion, MSG_DONTWAIT);
    if (count <= 0) {
      isOver = count == 0 || (errno != EAGAIN && errno != EINTR);
      break;
    }
    isOver = !peer.messages.take(
        std::span(portion).first(size_t(count)),
        [&](uint8_t kind, const std::string &text) { handle(peer.rank, kind, text); });
  }
  if (isOver) {
    peer.socket.close();
    handle(peer.rank, 0, "");
  }
}
