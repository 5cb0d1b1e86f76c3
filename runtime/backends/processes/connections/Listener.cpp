//===- Listener.cpp - accepts connections of a run's processes -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/connections/Listener.h"

#include "support/Text.h"

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>

using namespace weft::rt;
using namespace weft::rt::tcp;

using State = Handshake::State;

static void watch(const Descriptor &events, const Descriptor &descriptor) {
  epoll_event event = {};
  event.events = EPOLLIN;
  epoll_ctl(events.get(), EPOLL_CTL_ADD, descriptor.get(), &event);
}

void Listener::open(Descriptor opened, const Bytes32 &givenKey, Claim::Purpose givenPurpose) {
  key = givenKey;
  purpose = givenPurpose;
  events = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  listener = std::move(opened);
  watch(events, listener);
}

void Listener::close() {
  guests.clear();
  listener.close();
  events.close();
}

/// Gives up the eldest guest, unless it is young. A process of the run needs moments, so that
/// silent strangers cannot take its place, only delay it.
bool Listener::makeRoom() {
  if (guests.empty() || Clock::now() < guests.front().since + kYouth) {
    return false;
  }
  guests.pop_front();
  return true;
}

void Listener::acceptAll() {
  // Accept no more at a time, since the caller has other work.
  for (size_t i = 0; i < kMostGuests; ++i) {
    if (guests.size() == kMostGuests && !makeRoom()) {
      return;
    }
    Descriptor socket(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) {
      if ((errno == EMFILE || errno == ENFILE) && makeRoom()) {
        continue;
      }
      return;
    }
    int yes = 1;
    setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    watch(events, socket);
    guests.push_back({std::move(socket), {key, purpose}, Clock::now()});
  }
}

/// Receives what has come, and answers. Returns false if the connection is lost.
bool Listener::advance(Guest &guest) {
  while (guest.handshake.state() == State::Speaking) {
    std::span<char> room = guest.handshake.room();
    ssize_t count = recv(guest.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count <= 0) {
      return count < 0 && (errno == EAGAIN || errno == EINTR);
    }
    guest.handshake.take(size_t(count));
    // The answers are few bytes, for which a new connection has room.
    std::vector<char> reply = guest.handshake.takeReply();
    if (!sendAll(guest.socket, reply, Clock::now())) {
      return false;
    }
  }
  return true;
}

void Listener::look(const Take &take) {
  acceptAll();
  auto now = Clock::now();
  for (auto guest = guests.begin(); guest != guests.end();) {
    bool isConnected = advance(*guest);
    const ListenerHandshake &handshake = guest->handshake;
    if (handshake.state() == State::Ended && handshake.wasGreeted()) {
      lastRefusal = concat("; a process from ", peerAddress(guest->socket).text(),
                           " was sent away: it ", handshake.reason());
    } else if (handshake.state() == State::Done && isConnected) {
      epoll_ctl(events.get(), EPOLL_CTL_DEL, guest->socket.get(), nullptr);
      take(std::move(guest->socket), handshake.claim());
    }
    bool stays =
        isConnected && handshake.state() == State::Speaking && now < guest->since + kPatience;
    guest = stays ? guest + 1 : guests.erase(guest);
  }
}

HandshakeResult weft::rt::tcp::performHandshake(const Descriptor &socket,
                                                ConnectorHandshake &handshake,
                                                Clock::time_point end) {
  for (;;) {
    std::vector<char> reply = handshake.takeReply();
    if (handshake.state() == State::Ended) {
      return HandshakeResult::Stranger;
    }
    if (handshake.state() == State::Done) {
      return HandshakeResult::Authenticated;
    }
    std::span<char> room = handshake.room();
    bool isOpen = sendAll(socket, reply, end);
    ssize_t count = -1;
    do {
      count = isOpen && waitFor(socket, POLLIN, end)
                  ? recv(socket.get(), room.data(), room.size(), MSG_DONTWAIT)
                  : 0;
    } while (count < 0 && (errno == EAGAIN || errno == EINTR));
    if (count <= 0) {
      bool isLate = Clock::now() >= end;
      return handshake.hasProved() && !isLate ? HandshakeResult::Refused : HandshakeResult::Silent;
    }
    handshake.take(size_t(count));
  }
}
