//===- Bootstrap.cpp - connects the processes of a run over TCP ----------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "backends/processes/transports/tcp/Bootstrap.h"

#include "support/Text.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/resource.h>
#include <thread>

using namespace weft::rt;
using namespace weft::rt::tcp;

namespace {

/// The longest time for one attempt to connect and for an answer, and the time between attempts.
constexpr std::chrono::seconds kTry(5);
constexpr std::chrono::milliseconds kPause(100);
/// The time that another rank waits longer than rank 0, to get rank 0's error.
constexpr std::chrono::seconds kMargin(5);

/// Returns a hash (FNV-1a) of the run's name.
uint64_t keyOf(const std::string &run) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char letter : run) {
    hash = (hash ^ uint8_t(letter)) * 0x100000001b3;
  }
  return hash;
}

bool answer(const Descriptor &socket, AnswerHead::Kind kind, std::span<const char> content) {
  AnswerHead head = {Hello::kMagic, kind, uint32_t(content.size())};
  std::vector<char> bytes(sizeof head + content.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::ranges::copy(content, bytes.begin() + sizeof head);
  return sendAll(socket, bytes, Clock::now() + kTry);
}

std::string secondsText(std::chrono::nanoseconds time) {
  return concat(std::chrono::duration<double>(time).count(), " s");
}

/// Raises the limit on open sockets to the system's maximum, since each rank needs one.
void allowManySockets() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
  }
}

/// Returns the first socket that `open` gives for one of `addresses`, or its last error.
template <typename Open>
Result<Descriptor> atFirst(const std::vector<Address> &addresses, const Open &open) {
  Result<Descriptor> socket = open(addresses.front());
  for (size_t i = 1; !socket && i < addresses.size(); ++i) {
    socket = open(addresses[i]);
  }
  return socket;
}

/// Accepts the other ranks at rank 0.
class Host {
public:
  Host(const mpi::Launcher &launcher, Bootstrap &bootstrap)
      : launcher(launcher), point(*launcher.rendezvousPoint), bootstrap(bootstrap) {}

  Status gather(std::chrono::nanoseconds patience) {
    Result<Descriptor> listener = listen();
    if (!listener) {
      return makeError("rank 0 cannot listen for the other ranks at port ", point.port, " (",
                       point.portName, "): ", listener.error().message,
                       point.portName == "WEFT_PORT" ? "" : "; WEFT_PORT may name another");
    }
    bootstrap.listener.open(std::move(*listener));
    Status status = await(Clock::now() + patience, patience);
    bootstrap.listener.close();
    return status ? tellAll() : status;
  }

private:
  Result<Descriptor> listen() const {
    if (!isLocalName(point.host)) {
      return listenAnywhere(point.port);
    }
    // Other machines need not reach a local address.
    Result<std::vector<Address>> addresses = resolve(point.host, point.port);
    return addresses ? atFirst(*addresses, listenAt) : addresses.error();
  }

  Status await(Clock::time_point end, std::chrono::nanoseconds patience) {
    while (come + 1 < launcher.size) {
      bootstrap.listener.look(
          [this](Descriptor socket, const Hello &hello) { receive(std::move(socket), hello); });
      if (int64_t gone = whoIsGone()) {
        return giveUp(makeError("rank ", gone, " is gone: its process at ",
                                bootstrap.addresses[size_t(gone)].text(),
                                " has ended before all ranks had come"));
      }
      if (Clock::now() > end) {
        return giveUp(makeError("waited ", secondsText(patience), " at port ", point.port, " (",
                                point.portName, ") for ", missingText(), refusal));
      }
      if (come + 1 < launcher.size) {
        waitFor(bootstrap.listener.descriptor(), POLLIN, std::min(end, Clock::now() + kPause));
      }
    }
    return {};
  }

  void receive(Descriptor socket, const Hello &hello) {
    std::string reason;
    Address from = peerAddress(socket);
    if (hello.version != Hello::kVersion) {
      reason = concat("it is of another version of the runtime, ", hello.version,
                      ", than rank 0's, ", uint32_t(Hello::kVersion));
    } else if (hello.key != keyOf(point.run)) {
      reason = concat("another run uses this port, '", point.run, "' by TORCHELASTIC_RUN_ID");
    } else if (hello.size != launcher.size) {
      reason = concat("its WORLD_SIZE is ", hello.size, ", that of rank 0 is ", launcher.size);
    } else if (hello.rank == 0 || hello.rank >= hello.size) {
      reason = concat("rank 0 is there already, got another RANK ", hello.rank);
    } else if (bootstrap.connections[hello.rank]) {
      reason = concat("there is a RANK ", hello.rank, " already, from ",
                      peerAddress(bootstrap.connections[hello.rank]).text());
    }
    if (!reason.empty()) {
      refusal = concat("; a process from ", from.text(), " was sent away: ", reason);
      answer(socket, AnswerHead::Kind::Refused, reason);
      return;
    }
    bootstrap.addresses[hello.rank] = from.withPort(hello.port);
    bootstrap.connections[hello.rank] = std::move(socket);
    ++come;
  }

  /// Returns a rank that had come and whose process has ended, or 0. A rank sends nothing until it
  /// is answered, so a readable connection is a closed one.
  int64_t whoIsGone() const {
    std::vector<pollfd> entries;
    for (const Descriptor &socket : bootstrap.connections) {
      entries.push_back({socket.get(), POLLIN, 0}); // Those below 0 are passed over.
    }
    poll(entries.data(), entries.size(), 0);
    auto found = std::ranges::find_if(entries, [](const pollfd &entry) { return entry.revents; });
    return found == entries.end() ? 0 : found - entries.begin();
  }

  std::string missingText() const {
    std::string text;
    int64_t count = 0;
    for (int64_t rank = 1; rank < launcher.size; ++rank) {
      if (!bootstrap.connections[size_t(rank)]) {
        text += count < 8 ? concat(count ? ", " : "", rank) : "";
        ++count;
      }
    }
    return concat(count == 1 ? "rank " : "ranks ", text, count > 8 ? " and others" : "",
                  count == 1 ? ", which has not come" : ", which have not come");
  }

  /// Returns `error`.
  Error giveUp(Error error) {
    for (const Descriptor &socket : bootstrap.connections) {
      if (socket) {
        answer(socket, AnswerHead::Kind::Over, {});
      }
    }
    return error;
  }

  Status tellAll() {
    std::random_device random;
    bootstrap.secret = uint64_t(random()) << 32 | random();
    std::vector<char> roster = encodeRoster(bootstrap.secret, bootstrap.addresses);
    for (int64_t rank = 1; rank < launcher.size; ++rank) {
      if (!answer(bootstrap.connections[size_t(rank)], AnswerHead::Kind::Roster, roster)) {
        return makeError("rank ", rank, " is gone: its process at ",
                         bootstrap.addresses[size_t(rank)].text(), " has ended or does not listen");
      }
    }
    return {};
  }

  const mpi::Launcher &launcher;
  const mpi::RendezvousPoint &point;
  Bootstrap &bootstrap;
  int64_t come = 0;
  /// Describes the last refused process.
  std::string refusal;
};

/// Connects another rank to rank 0.
class Traveller {
public:
  Traveller(const mpi::Launcher &launcher, Bootstrap &bootstrap)
      : launcher(launcher), point(*launcher.rendezvousPoint), bootstrap(bootstrap) {}

  Status gather(std::chrono::nanoseconds patience) {
    auto end = Clock::now() + patience;
    std::string reason;
    do {
      if (Result<Descriptor> socket = reach(end); !socket) {
        reason = socket.error().message;
      } else if (std::optional<Status> outcome = talk(std::move(*socket), patience)) {
        return *outcome;
      } else {
        reason = "the program that listens there has closed the connection, or does not answer";
      }
      std::this_thread::sleep_for(kPause);
    } while (Clock::now() < end);
    return makeError("rank ", launcher.rank, " tried for ", secondsText(patience),
                     " to reach rank 0 at ", placeText(), ": ", reason);
  }

private:
  std::string placeText() const {
    return concat(point.host, " port ", point.port, " (MASTER_ADDR, ", point.portName, ")");
  }

  Result<Descriptor> reach(Clock::time_point end) const {
    Result<std::vector<Address>> addresses = resolve(point.host, point.port);
    return addresses ? atFirst(*addresses,
                               [&](const Address &address) {
                                 return connectTo(address, std::min(end, Clock::now() + kTry));
                               })
                     : addresses.error();
  }

  /// Returns nothing if it is worth another try.
  std::optional<Status> talk(Descriptor socket, std::chrono::nanoseconds patience) {
    Address own = ownAddress(socket), first = peerAddress(socket);
    Result<Descriptor> listener =
        isLocalName(point.host) ? listenAt(own.withPort(0)) : listenAnywhere(0);
    if (!listener) {
      return makeError("rank ", launcher.rank,
                       " cannot listen for other ranks: ", listener.error().message);
    }
    Hello hello;
    hello.port = ownAddress(*listener).port();
    hello.rank = uint32_t(launcher.rank);
    hello.size = uint32_t(launcher.size);
    hello.key = keyOf(point.run);
    auto bytes = std::span(reinterpret_cast<const char *>(&hello), sizeof hello);
    auto end = Clock::now() + patience + kMargin;
    AnswerHead head;
    if (!sendAll(socket, bytes, end) ||
        !receiveAll(socket, std::span(reinterpret_cast<char *>(&head), sizeof head), end)) {
      return std::nullopt;
    }
    return hear(head, std::move(socket), std::move(*listener), first);
  }

  Status hear(const AnswerHead &head, Descriptor socket, Descriptor listener,
              const Address &first) {
    size_t rosterBytes = sizeof(uint64_t) + size_t(launcher.size) * sizeof(Address::Packed);
    bool ok = head.magic == Hello::kMagic && head.bytes <= std::max(kMostReason, rosterBytes);
    std::vector<char> content(ok ? head.bytes : 0);
    ok = ok && receiveAll(socket, content, Clock::now() + kTry);
    if (ok && head.kind == AnswerHead::Kind::Over) {
      return Error(); // Rank 0 says why.
    }
    if (ok && head.kind == AnswerHead::Kind::Refused) {
      return makeError("rank 0 at ", placeText(), " has sent this process, rank ", launcher.rank,
                       ", away: ", std::string_view(content.data(), content.size()));
    }
    if (!ok || head.kind != AnswerHead::Kind::Roster ||
        !decodeRoster(content, launcher.size, bootstrap.secret, bootstrap.addresses)) {
      return makeError("the program that listens at ", placeText(),
                       " is not rank 0 of a program made by weft");
    }
    for (Address &address : bootstrap.addresses) {
      // A loopback address is one of rank 0's machine: replace it by rank 0's address.
      address = address.isLoopback() ? first.withPort(address.port()) : address;
    }
    bootstrap.connections[0] = std::move(socket);
    bootstrap.listener.open(std::move(listener));
    return {};
  }

  const mpi::Launcher &launcher;
  const mpi::RendezvousPoint &point;
  Bootstrap &bootstrap;
};

} // namespace

Result<Bootstrap> weft::rt::tcp::gather(const mpi::Launcher &launcher,
                                        std::chrono::nanoseconds patience) {
  Bootstrap bootstrap;
  bootstrap.rank = launcher.rank;
  bootstrap.size = launcher.size;
  bootstrap.addresses.resize(size_t(launcher.size));
  bootstrap.connections.resize(size_t(launcher.size));
  allowManySockets();
  if (launcher.size == 1) {
    return bootstrap;
  }
  Status status = launcher.rank == 0 ? Host(launcher, bootstrap).gather(patience)
                                     : Traveller(launcher, bootstrap).gather(patience);
  if (!status) {
    return status.error();
  }
  return bootstrap;
}

std::vector<char> weft::rt::tcp::encodeRoster(uint64_t secret, std::span<const Address> addresses) {
  std::vector<char> bytes(sizeof secret + addresses.size() * sizeof(Address::Packed));
  std::memcpy(bytes.data(), &secret, sizeof secret);
  for (size_t i = 0; i < addresses.size(); ++i) {
    Address::Packed packed = addresses[i].pack();
    std::memcpy(bytes.data() + sizeof secret + i * sizeof packed, &packed, sizeof packed);
  }
  return bytes;
}

bool weft::rt::tcp::decodeRoster(std::span<const char> bytes, int64_t size, uint64_t &secret,
                                 std::vector<Address> &addresses) {
  if (bytes.size() != sizeof secret + size_t(size) * sizeof(Address::Packed)) {
    return false;
  }
  std::memcpy(&secret, bytes.data(), sizeof secret);
  addresses.assign(size_t(size), Address());
  for (size_t rank = 1; rank < addresses.size(); ++rank) {
    Address::Packed packed;
    std::memcpy(&packed, bytes.data() + sizeof secret + rank * sizeof packed, sizeof packed);
    addresses[rank] = Address(packed);
    if (addresses[rank].family() == 0) {
      return false;
    }
  }
  return true;
}
