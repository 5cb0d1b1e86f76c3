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

/// The refusals in a row after which a rank believes that its secret is another than rank 0's: a
/// listener may also close a connection because it has too many.
constexpr int kRefusals = 3;

/// Returns a hash (FNV-1a) of the run's name.
uint64_t hashOf(const std::string &run) {
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

/// Accepts the other ranks at rank 0.
class Host {
public:
  Host(const mpi::Launcher &launcher, const Secret &secret, Bootstrap &bootstrap)
      : launcher(launcher), point(*launcher.rendezvousPoint), secret(secret), bootstrap(bootstrap) {
  }

  Status gather(std::chrono::nanoseconds patience) {
    Result<Descriptor> listener = listenFor(point.host, point.port);
    if (!listener) {
      return makeError("rank 0 cannot listen for the other ranks at port ", point.port, " (",
                       point.portName, "): ", listener.error().message,
                       point.portName == "WEFT_PORT" ? "" : "; WEFT_PORT may name another");
    }
    bootstrap.listener.open(std::move(*listener), secret.key(), Claim::Purpose::Rendezvous);
    Status status = await(Clock::now() + patience, patience);
    bootstrap.listener.close();
    return status ? tellAll() : status;
  }

private:
  Status await(Clock::time_point end, std::chrono::nanoseconds patience) {
    while (come + 1 < launcher.size) {
      bootstrap.listener.look(
          [this](Descriptor socket, const Claim &claim) { receive(std::move(socket), claim); });
      if (int64_t gone = whoIsGone()) {
        return giveUp(makeError("rank ", gone, " is gone: its process at ",
                                bootstrap.addresses[size_t(gone)].text(),
                                " has ended before all ranks had come"));
      }
      if (Clock::now() > end) {
        return giveUp(makeError("waited ", secondsText(patience), " at port ", point.port, " (",
                                point.portName, ") for ", missingText(), refusalText()));
      }
      if (come + 1 < launcher.size) {
        waitFor(bootstrap.listener.descriptor(), POLLIN, std::min(end, Clock::now() + kPause));
      }
    }
    return {};
  }

  void receive(Descriptor socket, const Claim &claim) {
    std::string reason;
    Address from = peerAddress(socket);
    if (claim.run != hashOf(point.run)) {
      reason = concat("another run uses this port, '", point.run, "' by TORCHELASTIC_RUN_ID");
    } else if (claim.size != launcher.size) {
      reason = concat("its WORLD_SIZE is ", claim.size, ", that of rank 0 is ", launcher.size);
    } else if (claim.rank == 0 || claim.rank >= claim.size) {
      reason = concat("rank 0 is there already, got another RANK ", claim.rank);
    } else if (bootstrap.connections[claim.rank]) {
      reason = concat("there is a RANK ", claim.rank, " already, from ",
                      peerAddress(bootstrap.connections[claim.rank]).text());
    }
    if (!reason.empty()) {
      refusal = concat("; a process from ", from.text(), " was sent away: ", reason);
      answer(socket, AnswerHead::Kind::Refused, reason);
      return;
    }
    bootstrap.addresses[claim.rank] = from.withPort(claim.port);
    bootstrap.connections[claim.rank] = std::move(socket);
    ++come;
  }

  /// Describes the last process that was refused, by its claims or else by its proof.
  std::string refusalText() const {
    const std::string &unproven = bootstrap.listener.refusal();
    return !refusal.empty() || unproven.empty() ? refusal : concat(unproven, "; ", secret.text());
  }

  /// Returns a rank that had come and whose process has ended, or 0. A rank sends nothing until it
  /// is answered, so a readable connection is a closed one.
  int64_t whoIsGone() const {
    std::vector<pollfd> entries;
    entries.reserve(bootstrap.connections.size());
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
    Result<Bytes32> run = randomBytes();
    if (!run) {
      return giveUp(run.error());
    }
    bootstrap.runKey = secret.keyOf(*run);
    std::vector<char> roster = encodeRoster(*run, bootstrap.addresses);
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
  const Secret &secret;
  Bootstrap &bootstrap;
  int64_t come = 0;
  /// Describes the last refused process that knew the secret.
  std::string refusal;
};

/// Connects another rank to rank 0.
class Traveller {
public:
  Traveller(const mpi::Launcher &launcher, const Secret &secret, Bootstrap &bootstrap)
      : launcher(launcher), point(*launcher.rendezvousPoint), secret(secret), bootstrap(bootstrap) {
  }

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
    ConnectorHandshake handshake(secret.key(), {.port = ownAddress(*listener).port(),
                                                .rank = uint32_t(launcher.rank),
                                                .size = uint32_t(launcher.size),
                                                .run = hashOf(point.run)});
    HandshakeResult outcome = performHandshake(socket, handshake, Clock::now() + kTry);
    refusals = outcome == HandshakeResult::Refused ? refusals + 1 : 0;
    if (outcome == HandshakeResult::Stranger) {
      return makeError("the program that listens at ", placeText(), " ", handshake.reason());
    }
    if (refusals == kRefusals) {
      return makeError("rank 0 at ", placeText(), " has sent this process, rank ", launcher.rank,
                       ", away: it has another secret, or none; ", secret.text());
    }
    AnswerHead head;
    if (outcome != HandshakeResult::Authenticated ||
        !receiveAll(socket, std::span(reinterpret_cast<char *>(&head), sizeof head),
                    Clock::now() + patience + kMargin)) {
      return std::nullopt;
    }
    return hear(head, std::move(socket), std::move(*listener), first);
  }

  Status hear(const AnswerHead &head, Descriptor socket, Descriptor listener,
              const Address &first) {
    size_t rosterBytes = sizeof(Bytes32) + size_t(launcher.size) * sizeof(Address::Packed);
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
    Bytes32 run;
    if (!ok || head.kind != AnswerHead::Kind::Roster ||
        !decodeRoster(content, launcher.size, run, bootstrap.addresses)) {
      return makeError("rank 0 at ", placeText(), " has sent an invalid answer");
    }
    bootstrap.runKey = secret.keyOf(run);
    for (Address &address : bootstrap.addresses) {
      // A loopback address is one of rank 0's machine: replace it by rank 0's address.
      address = address.isLoopback() ? first.withPort(address.port()) : address;
    }
    bootstrap.connections[0] = std::move(socket);
    bootstrap.listener.open(std::move(listener), bootstrap.runKey, Claim::Purpose::Messages);
    return {};
  }

  const mpi::Launcher &launcher;
  const mpi::RendezvousPoint &point;
  const Secret &secret;
  Bootstrap &bootstrap;
  /// The refusals in a row.
  int refusals = 0;
};

} // namespace

Result<Bootstrap> weft::rt::tcp::gather(const mpi::Launcher &launcher, const Secret &secret,
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
  Status status = launcher.rank == 0 ? Host(launcher, secret, bootstrap).gather(patience)
                                     : Traveller(launcher, secret, bootstrap).gather(patience);
  if (!status) {
    return status.error();
  }
  return bootstrap;
}

std::vector<char> weft::rt::tcp::encodeRoster(const Bytes32 &run,
                                              std::span<const Address> addresses) {
  std::vector<char> bytes(sizeof run + addresses.size() * sizeof(Address::Packed));
  std::memcpy(bytes.data(), &run, sizeof run);
  for (size_t i = 0; i < addresses.size(); ++i) {
    Address::Packed packed = addresses[i].pack();
    std::memcpy(bytes.data() + sizeof run + i * sizeof packed, &packed, sizeof packed);
  }
  return bytes;
}

bool weft::rt::tcp::decodeRoster(std::span<const char> bytes, int64_t size, Bytes32 &run,
                                 std::vector<Address> &addresses) {
  if (bytes.size() != sizeof run + size_t(size) * sizeof(Address::Packed)) {
    return false;
  }
  std::memcpy(&run, bytes.data(), sizeof run);
  addresses.assign(size_t(size), Address());
  for (size_t rank = 1; rank < addresses.size(); ++rank) {
    Address::Packed packed;
    std::memcpy(&packed, bytes.data() + sizeof run + rank * sizeof packed, sizeof packed);
    addresses[rank] = Address(packed);
    if (addresses[rank].family() == 0) {
      return false;
    }
  }
  return true;
}
