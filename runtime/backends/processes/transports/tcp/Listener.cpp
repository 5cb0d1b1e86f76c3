//===- Listener.cpp - accepts connections of a run's processes -----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Listener.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>

using namespace weft::rt::tcp;

Handshake::State Handshake::take(size_t more) {
  count += more;
  uint64_t magic = Hello::kMagic;
  if (std::memcmp(bytes, &magic, std::min(count, sizeof magic)) != 0) {
    return State::Stranger;
  }
  return count == sizeof bytes ? State::Done : State::Speaking;
}

Hello Handshake::hello() const {
  Hello hello;
  std::memcpy(&hello, bytes, sizeof hello);
  return hello;
}

static void watch(const Descriptor &events, const Descriptor &descriptor) {
  epoll_event event = {};
  event.events = EPOLLIN;
  epoll_ctl(events.get(), EPOLL_CTL_ADD, descriptor.get(), &event);
}

void Listener::open(Descriptor opened) {
  events = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  listener = std::move(opened);
  watch(events, listener);
}

void Listener::close() {
  guests.clear();
  listener.close();
  events.close();
}

void Listener::look(const Take &take) {
  // Accept no more at a time, since the caller has other work.
  for (size_t i = 0; i < kMostGuests; ++i) {
    Descriptor guest(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest) {
      if ((errno == EMFILE || errno == ENFILE) && !guests.empty()) {
        guests.pop_front();
        continue;
      }
      break;
    }
    int yes = 1;
    setsockopt(guest.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(guest.get(), SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
    watch(events, guest);
    guests.push_back({std::move(guest), {}});
    if (guests.size() > kMostGuests) {
      guests.pop_front();
    }
  }
  for (auto guest = guests.begin(); guest != guests.end();) {
    std::span<char> room = guest->handshake.room();
    ssize_t count = recv(guest->socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) {
      ++guest;
      continue;
    }
    Handshake::State state =
        count > 0 ? guest->handshake.take(size_t(count)) : Handshake::State::Stranger;
    if (state == Handshake::State::Done) {
      epoll_ctl(events.get(), EPOLL_CTL_DEL, guest->socket.get(), nullptr);
      take(std::move(guest->socket), guest->handshake.hello());
    }
    guest = state == Handshake::State::Speaking ? guest + 1 : guests.erase(guest);
  }
}
