//===- SimulatorWorld.cpp - communication between simulated devices -------===//
//
// Part of the Weft project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "testing/SimulatorWorld.h"

#include "backends/Reduce.h"
#include "testing/SimulatorDevice.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace weft::rt;
using namespace weft::rt::cuda;

uint64_t Exchange::readBytes(size_t ranks) const {
  uint64_t times = kind == Kind::ReduceScatter ? ranks : kind == Kind::Receive ? 0 : 1;
  return count * sizeOf(type) * times;
}

uint64_t Exchange::writtenBytes(size_t ranks) const {
  uint64_t times = kind == Kind::AllGather ? ranks : kind == Kind::Send ? 0 : 1;
  return count * sizeOf(type) * times;
}

std::string cuda::textOf(const Exchange &exchange) {
  static constexpr const char *names[] = {"all-reduce", "all-gather", "reduce-scatter", "send",
                                          "receive"};
  bool reduces =
      exchange.kind == Exchange::Kind::AllReduce || exchange.kind == Exchange::Kind::ReduceScatter;
  return concat(
      exchange.isOfGraph ? "a graph's " : "", names[size_t(exchange.kind)], " ",
      reduces ? concat(nameOf(exchange.reduction), " ") : "", nameOf(exchange.type), " of ",
      exchange.count,
      exchange.isPair()
          ? concat(exchange.kind == Exchange::Kind::Send ? " to " : " from ", exchange.peer)
          : "");
}

//===----------------------------------------------------------------------===//
// Rendezvous
//===----------------------------------------------------------------------===//

bool DeviceRendezvous::isComplete() const {
  return missing == 0 && std::all_of(parts.begin(), parts.end(), [](const Part &part) {
           return part.device->isBefore(part.place);
         });
}

static void reduce(const std::vector<DeviceRendezvous::Part> &parts, uint64_t skipped,
                   char *target) {
  const Exchange &exchange = parts[0].exchanges[0];
  auto count = int64_t(exchange.count);
  std::vector<char> sum(exchange.count * sizeOf(accumulatorOf(exchange.type)));
  auto operand = [&](size_t rank) {
    return parts[rank].device->placeOf(parts[rank].exchanges[0].from) + skipped;
  };
  beginReduction(exchange.type, sum.data(), operand(0), count);
  for (size_t rank = 1; rank < parts.size(); ++rank) {
    reduceInto(exchange.type, exchange.reduction, sum.data(), operand(rank), count);
  }
  endReduction(exchange.type, target, sum.data(), count);
}

/// Copies messages one by one, since no group sends bytes that it receives.
static void move(const DeviceRendezvous::Part &sender, const DeviceRendezvous::Part &receiver) {
  for (size_t i = 0; i < sender.exchanges.size(); ++i) {
    const Exchange &sent = sender.exchanges[i];
    std::memmove(receiver.device->placeOf(receiver.exchanges[i].to),
                 sender.device->placeOf(sent.from), sent.count * sizeOf(sent.type));
  }
}

void DeviceRendezvous::hold() {
  if (std::exchange(isHeld, true)) {
    return;
  }
  const Exchange &first = parts[0].exchanges[0];
  if (first.isPair()) {
    move(parts[0], parts[1]);
    return;
  }
  uint64_t bytes = first.count * sizeOf(first.type);
  // Results are separate, since an all-reduce may have one address for operand and result.
  std::vector<std::vector<char>> results;
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    std::vector<char> &result = results.emplace_back();
    switch (first.kind) {
    case Exchange::Kind::AllReduce:
    case Exchange::Kind::ReduceScatter:
      result.resize(bytes);
      reduce(parts, first.kind == Exchange::Kind::AllReduce ? 0 : rank * bytes, result.data());
      break;
    default:
      for (const Part &part : parts) {
        const char *operand = part.device->placeOf(part.exchanges[0].from);
        result.insert(result.end(), operand, operand + bytes);
      }
      break;
    }
  }
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    std::memcpy(parts[rank].device->placeOf(parts[rank].exchanges[0].to), results[rank].data(),
                results[rank].size());
  }
}

static void checkSame(const std::vector<Exchange> &ones, size_t rank,
                      const std::vector<Exchange> &others, size_t otherRank, const Clique &clique) {
  auto differ = [&](const std::string &other, const std::string &one) {
    misuse("ranks ", otherRank, " and ", rank, " of communicator ", clique.number,
           " do not agree: ", other, " and ", one);
  };
  for (size_t i = 0; i < std::min(ones.size(), others.size()); ++i) {
    const Exchange &one = ones[i], &other = others[i];
    bool isSame = one.type == other.type && one.count == other.count &&
                  one.isOfGraph == other.isOfGraph &&
                  (one.isPair() || (one.kind == other.kind && one.reduction == other.reduction));
    if (!isSame) {
      differ(textOf(other), textOf(one));
    }
  }
  if (ones.size() != others.size()) {
    differ(concat("a group with ", others.size(), " parts"), concat("one with ", ones.size()));
  }
}

static std::shared_ptr<DeviceRendezvous> makeRendezvous(size_t parts) {
  auto made = std::make_shared<DeviceRendezvous>();
  made->parts.resize(parts);
  made->missing = parts;
  return made;
}

static void fillPart(DeviceRendezvous &rendezvous, size_t number, Device *device,
                     const std::vector<Exchange> &exchanges) {
  rendezvous.parts[number].device = device;
  rendezvous.parts[number].exchanges = exchanges;
  --rendezvous.missing;
}

/// Holds a rendezvous alone: the rank gets its own data in place of the others', and drops
/// messages.
static std::shared_ptr<DeviceRendezvous> meetAlone(size_t parts, Device *device,
                                                   std::vector<Exchange> exchanges) {
  for (Exchange &exchange : exchanges) {
    if (exchange.isPair()) {
      exchange.from = exchange.to = std::max(exchange.from, exchange.to);
    }
  }
  std::shared_ptr<DeviceRendezvous> rendezvous = makeRendezvous(parts);
  for (size_t number = 0; number < parts; ++number) {
    fillPart(*rendezvous, number, device, exchanges);
  }
  return rendezvous;
}

std::shared_ptr<DeviceRendezvous> World::meet(Clique &clique, size_t rank,
                                              const std::vector<Exchange> &exchanges) {
  Device *device = clique.members[rank];
  const Exchange &exchange = exchanges[0];
  if (isAlone) {
    return meetAlone(exchange.isPair() ? 2 : clique.members.size(), device, exchanges);
  }
  if (exchange.isPair()) {
    bool sends = exchange.kind == Exchange::Kind::Send;
    auto peer = size_t(exchange.peer);
    auto &waiting = clique.pairs[sends ? std::pair(rank, peer) : std::pair(peer, rank)];
    size_t own = sends ? 0 : 1;
    // All waiting rendezvous have the same half.
    if (waiting.empty() || waiting.front()->parts[own].device) {
      waiting.push_back(makeRendezvous(2));
      fillPart(*waiting.back(), own, device, exchanges);
      return waiting.back();
    }
    std::shared_ptr<DeviceRendezvous> rendezvous = waiting.front();
    checkSame(exchanges, rank, rendezvous->parts[1 - own].exchanges, peer, clique);
    fillPart(*rendezvous, own, device, exchanges);
    waiting.pop_front();
    return rendezvous;
  }
  uint64_t number = clique.rendezvousOf[rank];
  std::shared_ptr<DeviceRendezvous> &rendezvous = clique.allRendezvous[number];
  if (!rendezvous) {
    rendezvous = makeRendezvous(clique.members.size());
  }
  for (size_t other = 0; other < rendezvous->parts.size(); ++other) {
    if (rendezvous->parts[other].device) {
      checkSame(exchanges, rank, rendezvous->parts[other].exchanges, other, clique);
    }
  }
  ++clique.rendezvousOf[rank];
  fillPart(*rendezvous, rank, device, exchanges);
  std::shared_ptr<DeviceRendezvous> found = rendezvous;
  if (found->missing == 0) {
    clique.allRendezvous.erase(number);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// The order in which ranks issue
//===----------------------------------------------------------------------===//

std::string World::textOf(const Issued &issued) {
  return issued.sender < 0 ? concat("to communicator ", issued.clique)
                           : concat("a transfer from rank ", issued.sender, " to rank ",
                                    issued.receiver, " of communicator ", issued.clique);
}

void World::checkOrder(Device &device, Device &other, const Issued &issued) {
  Order &order = orders[std::minmax(&device, &other)];
  if (order.ahead.empty() || order.leader == &device) {
    order.leader = &device;
    order.ahead.push_back(issued);
    return;
  }
  if (order.ahead.front() != issued) {
    misuse("device ", device.ordinal(), " issues ", textOf(issued), ", where device ",
           other.ordinal(), " has issued ", textOf(order.ahead.front()),
           ": both take part in both, and may wait for each other for ever");
  }
  order.ahead.pop_front();
}

void World::checkOrder(const Clique &clique, size_t rank, const std::vector<Exchange> &group) {
  const Exchange &first = group.front();
  bool isTransfer = first.isPair() && group.size() == 1, sends = first.kind == Exchange::Kind::Send;
  auto own = int64_t(rank);
  Issued issued = {clique.number};
  if (isTransfer) {
    issued = {clique.number, sends ? own : first.peer, sends ? first.peer : own};
  }
  for (size_t other = 0; !isAlone && other < clique.members.size(); ++other) {
    if (other != rank && (!isTransfer || int64_t(other) == first.peer)) {
      checkOrder(*clique.members[rank], *clique.members[other], issued);
    }
  }
}

void World::leave(Device *device) {
  std::erase(devices, device);
  std::erase_if(orders, [&](const auto &order) {
    return order.first.first == device || order.first.second == device;
  });
}

//===----------------------------------------------------------------------===//
// Rounds
//===----------------------------------------------------------------------===//

WorldId World::makeId() {
  WorldId id = {};
  ++ids;
  std::memcpy(id.bytes, &ids, sizeof ids);
  return id;
}

std::shared_ptr<Clique> World::makeClique(size_t ranks) {
  return std::make_shared<Clique>(++numbers, ranks);
}

std::shared_ptr<Clique> World::join(const WorldId &id, size_t ranks, size_t rank, Device &device) {
  uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof number);
  if (!isAlone && (number == 0 || number > ids)) {
    misuse("expected an id that was made, got another");
  }
  std::shared_ptr<Clique> &clique = joining[number];
  if (!clique) {
    clique = makeClique(ranks);
  }
  if (clique->members.size() != ranks) {
    misuse("ranks do not agree: a world of ", clique->members.size(), " and one of ", ranks);
  }
  if (clique->members[rank]) {
    misuse("rank ", rank, " has joined already");
  }
  clique->members[rank] = &device;
  return clique;
}

std::shared_ptr<Round> World::come(Clique &clique, size_t rank, const std::string &what) {
  uint64_t number = clique.roundsOf[rank]++;
  std::shared_ptr<Round> round = clique.rounds[number];
  if (!round) {
    round = std::make_shared<Round>();
    round->what = what;
    round->missing = isAlone ? 1 : clique.members.size();
    clique.rounds[number] = round;
  }
  if (round->what != what) {
    --clique.roundsOf[rank];
    misuse("ranks ", *round->come.begin(), " and ", rank, " of communicator ", clique.number,
           " do not agree: ", round->what, " and ", what);
  }
  round->come.insert(rank);
  if (--round->missing == 0) {
    clique.rounds.erase(number);
  }
  return round;
}

std::shared_ptr<Round> World::split(Clique &clique, size_t rank, int64_t color, int64_t key) {
  if (isAlone) {
    misuse("a device that is alone has no ranks to split");
  }
  std::shared_ptr<Round> round = come(clique, rank, "a split");
  round->colors[color].emplace(key, rank);
  if (round->missing == 0) {
    for (const auto &[name, ranks] : round->colors) {
      round->made[name] = makeClique(ranks.size());
      size_t number = 0;
      for (const auto &[place, member] : ranks) {
        round->made[name]->members[number++] = clique.members[member];
      }
    }
  }
  return round;
}

//===----------------------------------------------------------------------===//
// Work of all devices
//===----------------------------------------------------------------------===//

bool World::helpOthers(const Device &own) {
  return std::any_of(devices.begin(), devices.end(),
                     [&](Device *device) { return device != &own && device->advance(); });
}

bool World::wait(std::chrono::milliseconds limit) {
  // The calling function of the table holds the lock, and releases it.
  std::unique_lock lock(mutex, std::adopt_lock);
  bool isNotified = changed.wait_for(lock, limit) == std::cv_status::no_timeout;
  lock.release();
  return isNotified;
}
