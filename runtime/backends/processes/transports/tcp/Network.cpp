//===- Network.cpp - messages between processes over TCP ------------------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Network.h"

#include "support/Text.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sched.h>
#include <sys/epoll.h>

using namespace weft::rt;
using namespace weft::rt::tcp;

/// The time that the FailureDetector may take to report a dead process.
static constexpr std::chrono::seconds kDetectorPatience(3);
/// The time that the end of a process waits for the others to end their connections.
static constexpr std::chrono::seconds kLastWords(1);
/// Marks events of the listener, in place of a rank.
static constexpr uint32_t kListener = UINT32_MAX;

Network::Network(Bootstrap gathered, std::chrono::nanoseconds patience)
    : bootstrap(std::move(gathered)), patience(patience), events(epoll_create1(EPOLL_CLOEXEC)),
      peers(size_t(bootstrap.size)) {
  if (bootstrap.listener.descriptor()) {
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u32 = kListener;
    epoll_ctl(events.get(), EPOLL_CTL_ADD, bootstrap.listener.descriptor().get(), &event);
  }
  for (size_t rank = 0; rank < bootstrap.connections.size(); ++rank) {
    if (bootstrap.connections[rank]) {
      adopt(int64_t(rank), std::move(bootstrap.connections[rank]), Peer::State::Open);
    }
  }
}

void Network::adopt(int64_t rank, Descriptor socket, Peer::State state) {
  Peer &peer = peers[size_t(rank)];
  peer.socket = std::move(socket);
  peer.state = state;
  // Steps allocate nothing, whatever the order in which messages come.
  peer.inbox.reserve();
  peer.outbox.reserve();
  epoll_event event = {};
  event.data.u32 = uint32_t(rank);
  epoll_ctl(events.get(), EPOLL_CTL_ADD, peer.socket.get(), &event);
  settle(rank);
}

/// Accepts a connection of a higher rank; closes all others.
void Network::admit(Descriptor socket, const Claim &claim) {
  bool isExpected = claim.size == bootstrap.size && claim.rank > bootstrap.rank &&
                    claim.rank < bootstrap.size && peers[claim.rank].state == Peer::State::Unknown;
  if (isExpected) {
    adopt(claim.rank, std::move(socket), Peer::State::Open);
    flush(claim.rank);
  }
}

/// Connects to `rank` if it is lower than this rank; a higher rank connects by itself.
void Network::connect(int64_t rank) {
  Peer &peer = peers[size_t(rank)];
  if (peer.state != Peer::State::Unknown || rank > bootstrap.rank) {
    return;
  }
  peer.handshake.emplace(bootstrap.runKey, Claim{.purpose = Claim::Purpose::Messages,
                                                 .rank = uint32_t(bootstrap.rank),
                                                 .size = uint32_t(bootstrap.size)});
  Descriptor socket = beginToConnect(bootstrap.addresses[size_t(rank)]);
  if (!socket) {
    return lose(rank, systemError(errno));
  }
  adopt(rank, std::move(socket), Peer::State::Connecting);
}

/// Updates the events that a rank's socket is polled for.
void Network::settle(int64_t rank) {
  Peer &peer = peers[size_t(rank)];
  if (!peer.socket) {
    return;
  }
  bool isOpen = peer.state == Peer::State::Open;
  bool writes = peer.state == Peer::State::Connecting || (isOpen && !peer.outbox.isEmpty());
  bool reads = peer.state == Peer::State::Greeting || (isOpen && !peer.inbox.room().empty());
  uint32_t wanted = (reads ? EPOLLIN : 0U) | (writes ? EPOLLOUT : 0U);
  if (wanted != peer.interest) {
    peer.interest = wanted;
    epoll_event event = {};
    event.events = wanted;
    event.data.u32 = uint32_t(rank);
    epoll_ctl(events.get(), EPOLL_CTL_MOD, peer.socket.get(), &event);
  }
}

void Network::lose(int64_t rank, const std::string &reason) {
  Peer &peer = peers[size_t(rank)];
  if (peer.state != Peer::State::Lost) {
    peer.state = Peer::State::Lost;
    peer.lostAt = Clock::now();
    peer.reason = reason;
    peer.socket.close();
  }
}

void Network::progress(std::chrono::milliseconds limit) {
  epoll_event found[64];
  int count = epoll_wait(events.get(), found, std::size(found), int(limit.count()));
  for (int i = 0; i < count; ++i) {
    if (found[i].data.u32 == kListener) {
      bootstrap.listener.look(
          [this](Descriptor socket, const Claim &claim) { admit(std::move(socket), claim); });
    } else {
      handle(int64_t(found[i].data.u32), found[i].events);
    }
  }
}

void Network::handle(int64_t rank, uint32_t found) {
  Peer &peer = peers[size_t(rank)];
  if (peer.state == Peer::State::Connecting) {
    if (int code = connectResult(peer.socket)) {
      return lose(rank, systemError(code));
    }
    peer.state = Peer::State::Greeting;
  }
  if (peer.state == Peer::State::Greeting) {
    greet(rank);
  }
  if (found & EPOLLOUT) {
    flush(rank);
  }
  if (found & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
    read(rank);
  }
  settle(rank);
}

/// Goes on with the handshake at a connection that this rank has begun, and then sends its
/// messages.
void Network::greet(int64_t rank) {
  Peer &peer = peers[size_t(rank)];
  ConnectorHandshake &handshake = *peer.handshake;
  for (;;) {
    // These few bytes have room in the socket.
    if (!sendAll(peer.socket, handshake.takeReply(), Clock::now())) {
      return lose(rank, systemError(errno));
    }
    if (handshake.state() == Handshake::State::Ended) {
      return lose(rank, concat("the process there ", handshake.reason()));
    }
    if (handshake.state() == Handshake::State::Done) {
      peer.handshake.reset();
      peer.state = Peer::State::Open;
      return flush(rank);
    }
    std::span<char> room = handshake.room();
    ssize_t count = recv(peer.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count > 0) {
      handshake.take(size_t(count));
    } else if (count == 0) {
      return lose(rank, "it has refused this rank");
    } else if (errno != EINTR) {
      return errno == EAGAIN ? void() : lose(rank, systemError(errno));
    }
  }
}

void Network::read(int64_t rank) {
  Peer &peer = peers[size_t(rank)];
  bool isMore = true;
  while (isMore && peer.state == Peer::State::Open) {
    std::span<char> room = peer.inbox.room();
    if (room.empty()) {
      break;
    }
    ssize_t count = recv(peer.socket.get(), room.data(), room.size(), MSG_DONTWAIT);
    if (count > 0) {
      peer.inbox.take(size_t(count));
      isMore = size_t(count) == room.size();
    } else if (count == 0) {
      lose(rank, "it has ended the connection");
    } else if (errno != EINTR) {
      if (errno != EAGAIN) {
        lose(rank, systemError(errno));
      }
      break;
    }
    if (!peer.inbox.status()) {
      lose(rank, peer.inbox.status().error().message);
    }
  }
  for (const Inbox::Arrival &arrival : peer.inbox.arrivals) {
    end(arrival.request, arrival.bytes);
  }
  peer.inbox.arrivals.clear();
}

void Network::flush(int64_t rank) {
  Peer &peer = peers[size_t(rank)];
  while (peer.state == Peer::State::Open && !peer.outbox.isEmpty()) {
    iovec parts[16];
    msghdr message = {};
    message.msg_iov = parts;
    message.msg_iovlen = peer.outbox.next(parts);
    ssize_t count = sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      peer.outbox.sent(size_t(count), [this](uint64_t request) { end(request, 0); });
    } else if (errno != EINTR) {
      if (errno != EAGAIN) {
        std::string reason = systemError(errno);
        read(rank); // Messages from before the end.
        lose(rank, reason);
      }
      break;
    }
  }
  settle(rank);
}

uint64_t Network::begin(int64_t rank, bool isSend) {
  if (freeRequests.empty()) {
    requests.emplace_back();
    freeRequests.reserve(requests.capacity());
    freeRequests.push_back(requests.size());
  }
  uint64_t request = freeRequests.back();
  freeRequests.pop_back();
  requests[request - 1] = {rank, isSend, false, 0};
  connect(rank);
  return request;
}

void Network::end(uint64_t request, size_t bytes) {
  requests[request - 1].isDone = true;
  requests[request - 1].bytes = bytes;
}

Network::Result Network::makeGroup(int64_t count, uint64_t *group) {
  ++lastGroup;
  members = count;
  for (int64_t rank = 0; rank < bootstrap.size; ++rank) {
    peers[size_t(rank)].inbox.beginGroup(lastGroup);
    settle(rank);
  }
  *group = bootstrap.rank < count ? lastGroup : 0;
  return nullptr;
}

Network::Result Network::send(uint64_t group, const void *bytes, size_t count, int64_t to,
                              int32_t tag, uint64_t *request) {
  *request = begin(to, true);
  peers[size_t(to)].outbox.push({uint32_t(group), tag, count}, static_cast<const char *>(bytes),
                                *request);
  flush(to);
  return nullptr;
}

Network::Result Network::receive(uint64_t group, void *bytes, size_t count, int64_t from,
                                 int32_t tag, uint64_t *request) {
  *request = begin(from, false);
  Peer &peer = peers[size_t(from)];
  peer.inbox.expect({{uint32_t(group), tag, count}, static_cast<char *>(bytes), *request});
  for (const Inbox::Arrival &arrival : peer.inbox.arrivals) {
    end(arrival.request, arrival.bytes);
  }
  peer.inbox.arrivals.clear();
  if (!peer.inbox.status()) {
    lose(from, peer.inbox.status().error().message);
  }
  settle(from);
  return nullptr;
}

Network::Result Network::faultOf(uint64_t request) {
  const Request &each = requests[request - 1];
  const Peer &peer = peers[size_t(each.rank)];
  if (peer.state != Peer::State::Lost || Clock::now() < peer.lostAt + kDetectorPatience) {
    return nullptr;
  }
  error = concat("the connection to rank ", each.rank,
                 each.rank == 0 ? std::string()
                                : concat(" at ", bootstrap.addresses[size_t(each.rank)].text()),
                 " is lost: ", peer.reason);
  return error.c_str();
}

Network::Result Network::test(std::span<uint64_t> tested, size_t *doneCount, size_t *done,
                              size_t *bytes) {
  progress(std::chrono::milliseconds(0));
  *doneCount = 0;
  Result fault = nullptr;
  for (size_t i = 0; i < tested.size(); ++i) {
    if (tested[i] == kIdle) {
      continue;
    }
    if (const Request &each = requests[tested[i] - 1]; each.isDone) {
      done[*doneCount] = i;
      bytes[(*doneCount)++] = each.bytes;
      freeRequests.push_back(std::exchange(tested[i], kIdle));
    } else if (!fault) {
      fault = faultOf(tested[i]);
    }
  }
  if (*doneCount == 0) {
    sched_yield();
    return fault;
  }
  return nullptr;
}

void Network::cancel(uint64_t *request) {
  if (*request == kIdle) {
    return;
  }
  const Request &each = requests[*request - 1];
  Peer &peer = peers[size_t(each.rank)];
  each.isSend ? peer.outbox.cancel(*request) : peer.inbox.cancel(*request);
  freeRequests.push_back(std::exchange(*request, kIdle));
}

/// Waits for all of `awaited`; cancels them on failure.
Network::Result Network::await(std::span<uint64_t> awaited) {
  auto end = Clock::now() + patience;
  for (;;) {
    int64_t missing = -1;
    Result fault = nullptr;
    for (uint64_t &request : awaited) {
      if (request != kIdle && requests[request - 1].isDone) {
        freeRequests.push_back(std::exchange(request, kIdle));
      } else if (request != kIdle && !fault) {
        missing = missing < 0 ? requests[request - 1].rank : missing;
        fault = faultOf(request);
      }
    }
    if (missing < 0) {
      return nullptr;
    }
    if (!fault && Clock::now() > end) {
      error = concat("waited ", std::chrono::duration<double>(patience).count(), " s for rank ",
                     missing, " at the start of the run");
      fault = error.c_str();
    }
    if (fault) {
      for (uint64_t &request : awaited) {
        cancel(&request);
      }
      return fault;
    }
    progress(std::chrono::milliseconds(10));
  }
}

/// Gathers through rank 0, which can then name missing ranks.
Network::Result Network::allGather(uint64_t group, const void *own, void *all, size_t bytes) {
  std::vector<uint64_t> pending(size_t(members), kIdle);
  auto at = [&](int64_t rank) { return static_cast<char *>(all) + size_t(rank) * bytes; };
  size_t whole = size_t(members) * bytes;
  constexpr int32_t kTag = mpi::kTags;
  if (bootstrap.rank != 0) {
    uint64_t both[2] = {};
    send(group, own, bytes, 0, kTag, &both[0]);
    receive(group, all, whole, 0, kTag, &both[1]);
    return await(both);
  }
  std::memcpy(all, own, bytes);
  for (int64_t rank = 1; rank < members; ++rank) {
    receive(group, at(rank), bytes, rank, kTag, &pending[size_t(rank)]);
  }
  if (Result fault = await(pending)) {
    return fault;
  }
  for (int64_t rank = 1; rank < members; ++rank) {
    send(group, all, whole, rank, kTag, &pending[size_t(rank)]);
  }
  return await(pending);
}

/// Reads all bytes before closing: closing a connection with unread bytes resets it, and the other
/// side may then lose the last messages to it.
void Network::finish() {
  for (const Peer &peer : peers) {
    if (peer.state == Peer::State::Open) {
      shutdown(peer.socket.get(), SHUT_WR);
    }
  }
  auto end = Clock::now() + kLastWords;
  for (Peer &peer : peers) {
    char waste[4096];
    while (peer.state == Peer::State::Open &&
           receiveAll(peer.socket, waste, std::min(end, Clock::now() + kLastWords))) {
    }
    peer.socket.close();
    peer.state = Peer::State::Lost;
  }
}
